//! A full queue, and worker processes that drain it.

use crate::{
    child::{Child, Settings},
    jobs::{check_settled, fill, queue, until_empty},
    server::{Server, until_blocked},
};
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use sprag::Client;
use std::time::Instant;

/// A server, its queue, and the workers of it.
pub(crate) struct Site {
    pub(crate) client: Client,
    probe: MultiplexedConnection,
    workers: Vec<Child>,
    jobs: usize,
}

impl Site {
    /// The queue is full, and paused: workers are there, and wait. What it costs to start them is
    /// not measured.
    pub(crate) async fn open(
        server: &Server,
        jobs: usize,
        processes: usize,
        settings: &Settings,
    ) -> Self {
        let client = Client::connect(&server.url()).expect("client");
        client.inspector().pause(queue()).await.expect("pause");
        fill(&client, &queue(), jobs).await;
        let workers = (0..processes).map(|_| Child::start(&server.url(), settings)).collect();
        until_blocked(server, processes).await;
        Self { client, probe: server.connection().await, workers, jobs }
    }

    /// The workers' processes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.workers.iter().filter_map(Child::pid).collect()
    }

    pub(crate) async fn drain(&mut self) {
        self.client.inspector().resume(queue()).await.expect("resume");
        until_empty(&mut self.probe, &queue()).await;
    }

    /// Ends the workers. Panics unless they ran and completed all jobs, each once.
    pub(crate) async fn close(self) {
        let ran: u64 = join_all(self.workers.into_iter().map(Child::end)).await.into_iter().sum();
        assert_eq!(ran, self.jobs as u64, "every job ran once");
        check_settled(&self.client, &queue(), ran).await;
    }
}

/// Jobs per second that so many processes drain; jobs and processes are spread over the servers.
pub(crate) async fn rate(
    servers: &[Server],
    jobs: usize,
    processes: usize,
    settings: &Settings,
) -> f64 {
    let (jobs, processes) = (jobs / servers.len(), processes / servers.len());
    let mut sites = Vec::new();
    for server in servers {
        sites.push(Site::open(server, jobs, processes, settings).await);
    }
    let started = Instant::now();
    join_all(sites.iter_mut().map(Site::drain)).await;
    let seconds = started.elapsed().as_secs_f64();
    for site in sites {
        site.close().await;
    }
    (jobs * servers.len()) as f64 / seconds
}
