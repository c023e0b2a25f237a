//! A queue at work: nothing is told, nothing is changed.

use crate::support::{Keys, Server};
use sprag::{
    Codec, Envelope, JobId, Kind, QueueName, RedisStore, State, Store, StoreError, Unique, When,
    WorkerId,
    model::Replace,
    store::{Complete, Held, Operation, Pace, Retry, Snooze},
};
use std::time::{Duration, Instant};

const BUSY: Duration = Duration::from_secs(5);

fn job(queue: &QueueName, n: u64) -> Envelope {
    let kind = Kind::new("k").expect("kind");
    let mut job = Envelope::builder(queue.clone(), kind).payload(n.to_string(), Codec::Raw);
    if n.is_multiple_of(3) {
        job = job.priority(7);
    }
    if n.is_multiple_of(5) {
        job = job.run_at(When::In(Duration::from_millis(fastrand::u64(1..50))));
    }
    if n.is_multiple_of(4) {
        let unique = Unique::key(fastrand::u64(0..40).to_string());
        job = job.unique(unique.replace([Replace::RunAt, Replace::Priority]));
    }
    if n.is_multiple_of(7) {
        job = job.deadline(When::In(Duration::from_millis(fastrand::u64(100..20_000))));
    }
    if n.is_multiple_of(2) {
        job = job.retention(Duration::from_millis(fastrand::u64(100..3_000)));
    }
    job.build().expect("valid")
}

async fn produces(store: RedisStore, queue: QueueName, until: Instant) {
    let mut n = 0;
    while Instant::now() < until {
        let jobs: Vec<_> = (0..20)
            .map(|_| {
                n += 1;
                job(&queue, n)
            })
            .collect();
        for outcome in store.enqueue(&queue, &jobs).await.expect("enqueued") {
            assert!(matches!(outcome, Ok(_) | Err(StoreError::Duplicate { .. })), "{outcome:?}");
        }
    }
}

async fn works(store: RedisStore, queue: QueueName, until: Instant) {
    let worker = WorkerId::new(format!("w{}", fastrand::u32(..))).expect("worker");
    while Instant::now() < until {
        let lease = Duration::from_millis(if fastrand::bool() { 100 } else { 5_000 });
        let claim = store.claim(&queue, &worker, 15, lease).await.expect("claimed");
        let (mut done, mut failed, mut later, mut back) = (vec![], vec![], vec![], vec![]);
        for job in claim.jobs {
            let held = Held { id: job.id.clone(), fence: job.fence };
            match fastrand::u8(0..10) {
                0 => {
                    failed.push(Retry { held, delay: Duration::from_millis(20), error: "e".into() })
                }
                1 => later.push(Snooze { held, delay: Duration::from_millis(20) }),
                2 => back.push(held),
                3 if fastrand::u8(0..20) == 0 => {}
                _ => done.push(Complete { held, result: None }),
            }
        }
        store.complete(&queue, &done).await.expect("completed");
        store.retry(&queue, &failed).await.expect("retried");
        store.snooze(&queue, &later).await.expect("snoozed");
        store.requeue(&queue, &back).await.expect("requeued");
        store.sweep(&queue, Pace::Now).await.expect("swept");
    }
}

async fn steers(store: RedisStore, queue: QueueName, until: Instant) {
    while Instant::now() < until {
        for (state, operation) in [
            (State::Pending, Operation::Cancel),
            (State::Scheduled, Operation::Run),
            (State::Cancelled, Operation::Rerun),
            (State::Retry, Operation::Delete),
            (State::Active, Operation::Cancel),
            (State::Archived, Operation::Delete),
        ] {
            let page = store.list(&queue, state, None, None, 10).await.expect("listed");
            let ids: Vec<JobId> = page.jobs.into_iter().map(|job| job.id).collect();
            store.operate(&queue, operation, &ids).await.expect("operated");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_healthy_queue_under_load_is_healthy() {
    let server = Server::start().await;
    let store = || RedisStore::builder(server.url()).build().expect("a store");
    let queue = QueueName::new("q").expect("queue");
    let backlog: Vec<_> = (0..900).map(|n| job(&queue, 3 * n + 1)).collect();
    store().enqueue(&queue, &backlog).await.expect("enqueued");
    let until = Instant::now() + BUSY;
    let tasks = [
        tokio::spawn(produces(store(), queue.clone(), until)),
        tokio::spawn(works(store(), queue.clone(), until)),
        tokio::spawn(works(store(), queue.clone(), until)),
        tokio::spawn(steers(store(), queue.clone(), until)),
    ];
    let (doctor_of, mut looks) = (store(), 0);
    let mut doctor = doctor_of.doctor();
    while Instant::now() < until {
        let mend = looks % 2 == 1;
        let (queues, listing) = doctor.queues(&[], mend).await.expect("listed");
        assert_eq!((queues.len(), listing), (1, vec![]));
        let found = doctor.examine(&queue, mend).await.expect("examined");
        assert_eq!(found.findings, vec![], "look {looks}");
        looks += 1;
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    eprintln!("{looks} looks, {} jobs", doctor.examine(&queue, false).await.expect("ok").jobs);
    assert!(looks >= 3, "{looks}");
    Keys::read(&mut server.connection().await, &queue).await.check();
}

/// Prints how long calls took: `cargo test --release --test doctor huge -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "takes long: a measurement"]
async fn a_huge_queue_blocks_the_server_for_no_longer_than_10_ms() {
    let server = Server::with_args(&["--slowlog-log-slower-than", "2000"]).await;
    let store = RedisStore::builder(server.url()).build().expect("a store");
    let queue = QueueName::new("q").expect("queue");
    let jobs = std::env::var("JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000_u64);
    for from in (0..jobs).step_by(1_000) {
        let slice: Vec<_> = (from..from + 1_000).map(|n| job(&queue, n)).collect();
        store.enqueue(&queue, &slice).await.expect("enqueued");
    }
    let mut connection = server.connection().await;
    redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(&mut connection).await.expect("reset");
    let began = Instant::now();
    let found = store.doctor().examine(&queue, false).await.expect("examined");
    eprintln!("{} jobs in {:?}, findings: {:?}", found.jobs, began.elapsed(), found.findings);
    type Entry = (u64, u64, u64, Vec<Vec<u8>>, redis::Value, redis::Value);
    let slow: Vec<Entry> =
        redis::cmd("SLOWLOG").arg("GET").arg(128).query_async(&mut connection).await.expect("log");
    let mut times: Vec<_> = slow.iter().map(|entry| entry.2).collect();
    times.sort_unstable();
    eprintln!("{} calls over 2 ms, the slowest (µs): {:?}", times.len(), times.last());
    assert!(times.iter().all(|time| *time < 10_000), "{times:?}");
}
