//! No product: the least that keeps a job in Redis until it is acknowledged, as a yardstick.
//! `LPUSH` to enqueue; `LMOVE` to a list of running jobs to fetch; `LREM` from it to acknowledge. All
//! acknowledgements and fetches that are due go in one pipeline, an idle worker waits in `BLMOVE`.
//! No ids, leases, retries, schedules or counters.
use compare_common::{Payload, Peer, handle};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Direction, cmd};
use tokio::sync::mpsc;

const PENDING: &str = "q:pending";
const RUNNING: &str = "q:running";

#[derive(Clone)]
struct Floor {
    conn: MultiplexedConnection,
    /// For the blocking command only.
    waiting: MultiplexedConnection,
}

impl Floor {
    /// Acknowledges what is done and fetches for all free slots.
    async fn step(&self, done: &[String], free: usize) -> Vec<String> {
        if done.is_empty() && free == 0 {
            return Vec::new();
        }
        let mut pipe = redis::pipe();
        for job in done {
            pipe.lrem(RUNNING, -1, job).ignore();
        }
        for _ in 0..free {
            pipe.lmove(PENDING, RUNNING, Direction::Right, Direction::Left);
        }
        let jobs: Vec<Option<String>> =
            pipe.query_async(&mut self.conn.clone()).await.expect("step");
        jobs.into_iter().flatten().collect()
    }

    async fn wait(&self) -> Option<String> {
        let mut call = cmd("BLMOVE");
        call.arg(PENDING).arg(RUNNING).arg("RIGHT").arg("LEFT").arg(5);
        call.query_async(&mut self.waiting.clone()).await.expect("BLMOVE")
    }
}

#[async_trait::async_trait]
impl Peer for Floor {
    async fn connect(url: &str, _conc: usize) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        let patient = AsyncConnectionConfig::new().set_response_timeout(None);
        let conn = client.get_multiplexed_async_connection();
        let waiting = client.get_multiplexed_async_connection_with_config(&patient);
        Self { conn: conn.await.expect("connect"), waiting: waiting.await.expect("connect") }
    }

    async fn enqueue(&self, payload: Payload) {
        self.enqueue_batch(vec![payload]).await;
    }

    async fn enqueue_batch(&self, payloads: Vec<Payload>) -> bool {
        let mut push = cmd("LPUSH");
        push.arg(PENDING);
        for payload in payloads {
            push.arg(serde_json::to_string(&payload).expect("JSON"));
        }
        let _: u64 = push.query_async(&mut self.conn.clone()).await.expect("LPUSH");
        true
    }

    async fn work(&self, conc: usize) {
        let (tx, mut rx) = mpsc::unbounded_channel();
        let (mut running, mut done) = (0, Vec::new());
        loop {
            while let Ok(job) = rx.try_recv() {
                done.push(job);
            }
            running -= done.len();
            let mut jobs = self.step(&done, conc - running).await;
            done.clear();
            if jobs.is_empty() && running == 0 {
                jobs.extend(self.wait().await);
            } else if jobs.is_empty() {
                done.extend(rx.recv().await);
            }
            running += jobs.len();
            for job in jobs {
                let tx = tx.clone();
                tokio::spawn(async move {
                    handle(serde_json::from_str(&job).expect("JSON")).await;
                    let _ = tx.send(job);
                });
            }
        }
    }
}

fn main() {
    compare_common::main::<Floor>();
}
