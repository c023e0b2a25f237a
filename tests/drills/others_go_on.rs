//! A node of a cluster dies, nobody takes its place, and those who serve several queues go on with the others.

use crate::{
    lines::Lines,
    shift::{Shift, client},
    support::{Cluster, key},
    tries::Tomb,
};
use futures_util::{FutureExt, future::BoxFuture};
use sprag::{
    Context, Job, JobId, QueueName, RedisStore, State, Store, StoreError, Worker, WorkerId,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, unbounded_channel},
};
use tracing::Level;

/// A cluster that goes on without one of its nodes.
struct Bereft {
    cluster: Cluster,
    /// The node that is to die.
    dies: usize,
    /// A queue at another node, and one that dies with it.
    queues: [QueueName; 2],
}

impl Bereft {
    async fn start() -> Self {
        let setup = Cluster::setup(3, 0).args(["--cluster-require-full-coverage", "no"]);
        let cluster = setup.start().await;
        // Where the queues and the workers are listed: not the node that dies.
        let mut spared = Vec::new();
        for name in ["sprag:queues", "sprag:workers", "sprag:schema"] {
            spared.push(cluster.node_of_key(name).await);
        }
        let dies = (0..3).find(|node| !spared.contains(node));
        let Some(dies) = dies else { panic!("they are on all three nodes: {spared:?}") };
        let (mut lives, mut lost) = (None, None);
        for name in (0..100).map(|i| format!("q{i}")) {
            let queue = QueueName::new(name).expect("queue");
            let node = cluster.node_of_key(&key(&queue, "meta")).await;
            let place = if node == dies { &mut lost } else { &mut lives };
            place.get_or_insert(queue);
        }
        let queues = [lives.expect("of a hundred"), lost.expect("of a hundred")];
        Self { cluster, dies, queues }
    }
}

/// It waits for both; that of the dead node cannot be waited for.
#[tokio::test]
async fn a_wait_for_a_queue_that_is_lost_does_not_end_that_for_another() {
    let Bereft { mut cluster, dies, queues } = Bereft::start().await;
    let store = RedisStore::builder(cluster.url()).build().expect("store");
    assert_eq!(store.wait(&queues, Duration::from_millis(50)).await.expect("both live"), None);
    cluster.kill(dies);
    let waiting = tokio::spawn({
        let (store, queues) = (store.clone(), queues.clone());
        async move { store.wait(&queues, Duration::from_secs(10)).await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!waiting.is_finished(), "{:?}", waiting.await);
    let enqueued = Instant::now();
    store.wake(&queues[0]).await.expect("its node lives");
    let woken = waiting.await.expect("no panic").expect("its node lives");
    eprintln!("woken at a living node: {:?}", enqueued.elapsed());
    assert_eq!(woken.as_ref(), Some(&queues[0]));
    assert!(enqueued.elapsed() < Duration::from_millis(500), "{:?}", enqueued.elapsed());
    let alone = store.wait(&queues[1..], Duration::from_secs(10)).await;
    assert!(matches!(alone, Err(StoreError::Unavailable(_))), "{alone:?}");
}

/// A worker of two queues, of which one is at the dead node.
#[tokio::test]
async fn a_worker_of_a_queue_that_is_lost_goes_on_with_the_others() {
    let Bereft { mut cluster, dies, queues } = Bereft::start().await;
    let url = cluster.url();
    let served: Vec<_> = queues.iter().map(QueueName::as_str).collect();
    let shift = Shift::begin(client(&url), client(&url), &served).await;
    shift.until_flows().await;
    cluster.kill(dies);
    let tomb = Tomb::at(cluster.nodes[dies].server.port()).await;
    let killed = Instant::now();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (acked, ran) = shift.gaps(killed);
    let (tries, lines) = (tomb.knocks(), shift.lines.take());
    eprintln!(
        "a node lost for ever: longest gap of the others: acks {acked:?}, runs {ran:?}, tries {tries} in 4 s, \
         lines {}",
        lines.len()
    );
    assert!(acked < Duration::from_secs(3), "{acked:?}");
    assert!(tries <= 40 && lines.len() <= 12, "{tries}: {lines:#?}");
    assert!(ran < Duration::from_secs(3), "{ran:?}");
    let node = cluster.node_of_key(&key(&shift.queue, "meta")).await;
    assert_eq!(shift.ends_well(&cluster.nodes[node].server).await, 0);
}

/// Parts of a worker that a job passes: claim, settlement, and the sweep for what is due and for what a
/// vanished worker held. None waits for the lost queue's, of which a settlement is out, too.
#[tokio::test]
async fn jobs_of_the_other_queues_are_settled_and_swept_in_time_while_one_is_lost() {
    let Bereft { mut cluster, dies, queues: [lives, lost] } = Bereft::start().await;
    let url = cluster.url();
    let (producing, working) = (client(&url), client(&url));
    let (mut starts, end, handler) = held_in(lost.clone());
    let task = |name: &str| producing.enqueue(Errand(name.to_owned())).id(name);
    let nobody = WorkerId::new("nobody").expect("id");
    task("vanished").queue(&lives).await.expect("admitted");
    let lease = Duration::from_secs(2);
    producing.store().claim(&lives, &nobody, 1, lease).await.expect("claimed");
    let claimed = Instant::now();
    let builder = Worker::builder(&working).concurrency(4).handler(handler);
    let worker = builder.queue(lives.as_str()).queue(lost.as_str()).build().expect("worker");
    let (id, shutdown) = (worker.id().clone(), worker.shutdown());
    let ended = tokio::spawn(worker.run_until_shutdown());
    task("held").queue(&lost).await.expect("admitted");
    assert_eq!(starts.recv().await.as_deref(), Some("held"));
    cluster.kill(dies);
    end.notify_one();
    task("at-once").queue(&lives).await.expect("admitted");
    assert_eq!(starts.recv().await.as_deref(), Some("at-once"));
    let enqueued = Instant::now();
    task("due").queue(&lives).delay(Duration::from_secs(1)).await.expect("admitted");
    let (mut due, mut reclaimed) = (None, None);
    while due.is_none() || reclaimed.is_none() {
        match starts.recv().await.as_deref() {
            Some("due") => due = Some(enqueued.elapsed()),
            Some("vanished") => reclaimed = Some(claimed.elapsed()),
            other => panic!("{other:?}"),
        }
    }
    let settled = loop {
        let info = producing.store().queue(&lives).await.expect("it is there");
        if info.unfinished == 0 {
            break enqueued.elapsed();
        }
        assert!(enqueued.elapsed() < crate::support::PATIENCE, "{info:?} {id}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    eprintln!("of another queue: due {due:?}, reclaimed {reclaimed:?}, all settled {settled:?}");
    assert!(due < Some(Duration::from_secs(3)), "{due:?}");
    assert!(reclaimed < Some(Duration::from_secs(6)), "{reclaimed:?}");
    shutdown.abort();
    let report = ended.await.expect("no panic");
    assert_eq!((report.completed, report.lost), (3, 1), "{report:?}");
}

/// A node stands still; by the time that its claim is answered the slots are others'.
#[tokio::test]
async fn a_claim_that_is_late_and_finds_no_slot_left_puts_its_job_back() {
    let Bereft { cluster, dies, queues: [lives, lost] } = Bereft::start().await;
    let lines = Lines::up_to(Level::INFO);
    let url = cluster.url();
    let (producing, working) = (client(&url), client(&url));
    let (mut starts, end, handler) = held_in(lives.clone());
    let task = |name: &str| producing.enqueue(Errand(name.to_owned())).id(name);
    task("late").queue(&lost).await.expect("admitted");
    let worker = Worker::builder(&working).concurrency(2).handler(handler);
    let worker = worker.queue(lives.as_str()).queue(lost.as_str()).build().expect("worker");
    let shutdown = worker.shutdown();
    cluster.nodes[dies].server.pause();
    let ended = tokio::spawn(worker.run_until_shutdown());
    for name in ["a", "b"] {
        task(name).queue(&lives).await.expect("admitted");
    }
    for _ in 0..2 {
        let started = starts.recv().await.expect("runs");
        assert!(["a", "b"].contains(&&*started), "{started}");
    }
    cluster.nodes[dies].server.resume();
    let resumed = Instant::now();
    while !lines.take().iter().any(|line| line.contains("put back")) {
        assert!(resumed.elapsed() < crate::support::PATIENCE, "not put back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let id = JobId::new("late").expect("id");
    let job = loop {
        let job = producing.store().show(&lost, &id).await.expect("it is there");
        if job.state == State::Pending {
            break job;
        }
        assert!(resumed.elapsed() < crate::support::PATIENCE, "{job:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((job.attempt, job.crash), (0, 0));
    end.notify_waiters();
    assert_eq!(starts.recv().await.as_deref(), Some("late"));
    shutdown.drain();
    let report = ended.await.expect("no panic");
    assert_eq!((report.completed, report.lost), (3, 0), "{report:?}");
}

type Ran = BoxFuture<'static, Result<(), std::io::Error>>;

/// A handler that tells what it starts, and does not end jobs of this queue before it is let.
fn held_in(
    queue: QueueName,
) -> (UnboundedReceiver<String>, Arc<Notify>, impl Fn(Errand, Context) -> Ran + Clone + use<>) {
    let (started, starts) = unbounded_channel();
    let end = Arc::<Notify>::default();
    let let_end = end.clone();
    let handler = move |Errand(name): Errand, context: Context| {
        let (started, end, is_held) = (started.clone(), end.clone(), *context.queue() == queue);
        async move {
            // Who waits hears of the end whenever it comes.
            let ends = end.notified();
            started.send(name).expect("heard");
            if is_held {
                ends.await;
            }
            Ok(())
        }
        .boxed()
    };
    (starts, let_end, handler)
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Errand(String);

impl Job for Errand {
    const KIND: &'static str = "errand";
}
