//! A queue at work: nothing is told, nothing is changed.

use crate::support::{Keys, Server};
use sprag::{
    Codec, Envelope, JobId, Kind, QueueName, RedisStore, State, Store, StoreError, Unique, When,
    WorkerId,
    model::{Mode, Replace},
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
    if n.is_multiple_of(5) && !n.is_multiple_of(13) {
        job = job.run_at(When::In(Duration::from_millis(fastrand::u64(1..50))));
    }
    let key = |of: char| Unique::key(format!("{of}{}", fastrand::u64(0..40)));
    let window = Duration::from_millis(fastrand::u64(1..300));
    if n.is_multiple_of(4) {
        job = job.unique(key('l').replace([Replace::RunAt, Replace::Priority]));
    } else if n.is_multiple_of(11) {
        job = job.unique(key('t').mode(Mode::Throttle { window }));
    } else if n.is_multiple_of(13) {
        job = job.unique(key('d').mode(Mode::Debounce { window, max_wait: None }));
    }
    if n.is_multiple_of(9) {
        job = job.remember(window);
    }
    if n.is_multiple_of(7) {
        job = job.deadline(When::In(Duration::from_millis(fastrand::u64(100..20_000))));
    }
    if n.is_multiple_of(2) {
        job = job.retention(Duration::from_millis(fastrand::u64(100..3_000)));
    }
    job.build().expect("valid")
}

async fn produces(store: RedisStore, queue: QueueName, until: Instant, at_once: u64) {
    let mut n = 0;
    while Instant::now() < until {
        let jobs: Vec<_> = (n..n + at_once).map(|n| job(&queue, n + 1)).collect();
        n += at_once;
        for outcome in store.enqueue(&queue, &jobs).await.expect("enqueued") {
            assert!(matches!(outcome, Ok(_) | Err(StoreError::Duplicate { .. })), "{outcome:?}");
        }
        if at_once < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
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

/// Four tasks at work; the doctor looks, and is told to mend every other time.
async fn stays_healthy(backlog: u64, at_once: u64) {
    let server = Server::start().await;
    let store = || RedisStore::builder(server.url()).build().expect("a store");
    let queue = QueueName::new("q").expect("queue");
    let jobs: Vec<_> = (0..backlog).map(|n| job(&queue, 3 * n + 1)).collect();
    store().enqueue(&queue, &jobs).await.expect("enqueued");
    // Made, listed: the first look needs no patience.
    store().enqueue(&queue, &[job(&queue, 1)]).await.expect("enqueued");
    let until = Instant::now() + BUSY;
    let tasks = [
        tokio::spawn(produces(store(), queue.clone(), until, at_once)),
        tokio::spawn(works(store(), queue.clone(), until)),
        tokio::spawn(works(store(), queue.clone(), until)),
        tokio::spawn(steers(store(), queue.clone(), until)),
    ];
    let (mut doctor, mut looks) = (store().doctor(), 0);
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
    let left = doctor.examine(&queue, false).await.expect("examined");
    eprintln!("{looks} looks, {} jobs", left.jobs);
    assert!(looks >= 2, "{looks}");
    Keys::read(&mut server.connection().await, &queue).await.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_healthy_queue_that_grows_is_healthy() {
    stays_healthy(900, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_healthy_queue_whose_jobs_come_and_go_is_healthy() {
    stays_healthy(0, 3).await;
}

/// Prints how long calls took: `cargo test --release --test doctor huge -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "takes long: a measurement"]
async fn a_huge_queue_blocks_the_server_for_no_longer_than_10_ms() {
    let server =
        Server::with_args(&["--slowlog-log-slower-than", "5000", "--slowlog-max-len", "10000"])
            .await;
    let store = RedisStore::builder(server.url()).build().expect("a store");
    let queue = QueueName::new("q").expect("queue");
    let jobs = std::env::var("JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000_u64);
    for from in (0..jobs).step_by(1_000) {
        let slice: Vec<_> = (from..from + 1_000).map(|n| job(&queue, n)).collect();
        store.enqueue(&queue, &slice).await.expect("enqueued");
    }
    let mut connection = server.connection().await;
    redis::cmd("CONFIG").arg("RESETSTAT").query_async::<()>(&mut connection).await.expect("reset");
    redis::cmd("SLOWLOG").arg("RESET").query_async::<()>(&mut connection).await.expect("reset");
    let began = Instant::now();
    let found = store.doctor().examine(&queue, false).await.expect("examined");
    eprintln!("{} jobs in {:?}, findings: {:?}", found.jobs, began.elapsed(), found.findings);
    let stats: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.expect("stats");
    eprintln!("{:?}", stats.lines().find(|line| line.contains("evalsha")));
    type Entry = (u64, u64, u64, Vec<Vec<u8>>, redis::Value, redis::Value);
    let slow: Vec<Entry> = redis::cmd("SLOWLOG")
        .arg("GET")
        .arg(10_000)
        .query_async(&mut connection)
        .await
        .expect("log");
    let mut times: Vec<_> = slow.iter().map(|entry| entry.2).collect();
    times.sort_unstable();
    eprintln!("{} calls over 5 ms, the slowest (µs): {:?}", times.len(), times.last());
    for (_, _, time, words, ..) in slow.iter().filter(|entry| entry.2 >= 8_000) {
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        eprintln!("{time} {}", words.join(" "));
    }
    assert!(times.iter().all(|time| *time < 10_000), "{times:?}");
}
