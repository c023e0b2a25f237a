//! Several queues.

use crate::bench::{Bench, Log, Task, Working, id, ms, succeed, until_cancelled, worker};
use sprag::{Context, QueueName, Worker};
use std::time::Instant;

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("queue")
}

/// `count` jobs, all in one call.
async fn fill(bench: &Bench, name: &str, count: usize) {
    let task = |i| bench.task(&format!("{name}-{i}")).queue(queue(name)).envelope();
    let tasks: Vec<_> = (0..count).map(|i| task(i).expect("valid")).collect();
    bench.client.enqueue_envelopes(&tasks).await.expect("enqueue");
}

#[tokio::test]
async fn two_full_queues_share_the_slots_by_their_weights() {
    let (bench, log) = (Bench::new().await, Log::new());
    fill(&bench, "heavy", 120).await;
    fill(&bench, "light", 120).await;
    let builder = worker(&bench.client, &log, succeed).concurrency(8);
    let working = Working::start(builder.weighted_queue("heavy", 3).weighted_queue("light", 1));
    log.wait("start", 120).await;
    let starts = log.all();
    let heavy = starts[..120].iter().filter(|start| start.starts_with("start heavy")).count();
    assert!((80..=100).contains(&heavy), "{heavy} of 120 are of the queue of weight 3");
    log.wait("start", 240).await;
    assert_eq!(working.stop().await.completed, 240);
}

#[tokio::test]
async fn what_one_queue_leaves_goes_to_the_other() {
    let (bench, log) = (Bench::new().await, Log::new());
    fill(&bench, "light", 4).await;
    let builder = worker(&bench.client, &log, until_cancelled).concurrency(4).grace(ms(1));
    let working = Working::start(builder.weighted_queue("empty", 9).weighted_queue("light", 1));
    log.wait("start light", 4).await;
    assert_eq!(working.stop().await.completed, 4);
}

#[tokio::test]
async fn a_worker_is_woken_for_each_of_its_queues() {
    let (bench, log) = (Bench::new().await, Log::new());
    let names = ["one", "two", "three"];
    let builder = worker(&bench.client, &log, succeed);
    let working = Working::start(names.iter().fold(builder, |b, name| b.queue(name)));
    for name in names.iter().rev() {
        bench.until_blocked(1).await;
        let enqueued = Instant::now();
        fill(&bench, name, 1).await;
        let delay = log.wait(&format!("start {name}"), 1).await.saturating_duration_since(enqueued);
        assert!(delay < ms(1_000), "{name}: {delay:?}");
    }
    assert_eq!(working.stop().await.completed, 3);
}

/// CASES 34.
#[tokio::test]
async fn the_same_id_in_two_queues_is_two_jobs_and_cancelling_one_leaves_the_other_alone() {
    let (bench, log) = (Bench::new().await, Log::new());
    let handler = {
        let log = log.clone();
        move |_: Task, context: Context| {
            let log = log.clone();
            async move {
                let queue = context.queue().clone();
                log.add(&format!("run {queue}"));
                context.cancelled().await;
                log.add(&format!("told {queue}"));
                Ok::<_, std::io::Error>(())
            }
        }
    };
    let builder = Worker::builder(&bench.client).handler(handler).lease(ms(1_000)).grace(ms(1));
    let working = Working::start(builder.queue("one").queue("two"));
    for name in ["one", "two"] {
        bench.task("same").queue(queue(name)).await.expect("admitted");
    }
    log.wait("run", 2).await;
    bench
        .client
        .store()
        .operate(&queue("one"), sprag::store::Operation::Cancel, &[id("same")])
        .await
        .expect("cancel");
    log.wait("told one", 1).await;
    assert_eq!(log.count("told two"), 0);
    let report = working.stop().await;
    assert_eq!((report.completed, report.lost), (1, 1));
}

/// Each emptied queue may have a wake token left, which leads to a look at that queue alone.
#[tokio::test]
async fn many_emptied_queues_are_not_all_asked_for_each_token() {
    const QUEUES: usize = 200;
    let (bench, log) = (Bench::new().await, Log::new());
    for i in 0..QUEUES {
        fill(&bench, &format!("q{i}"), 3).await;
    }
    let before = bench.sent("evalsha").await;
    let builder = worker(&bench.other_client(), &log, succeed).concurrency(20);
    let working = Working::start((0..QUEUES).fold(builder, |b, i| b.queue(format!("q{i}"))));
    log.wait("start", 3 * QUEUES).await;
    // Nobody has a token left.
    bench.until_blocked(1).await;
    let calls = bench.sent("evalsha").await - before;
    // A few per queue: sweeps, claims, completions, and a claim for the token.
    assert!(calls < 20 * QUEUES as u64, "{calls} calls for {QUEUES} queues");
    assert_eq!(working.stop().await.completed, 3 * QUEUES as u64);
}

/// A queue that always has a token does not keep the tokens of others waiting: each has its turn.
#[tokio::test]
async fn a_busy_queue_does_not_keep_another_waiting() {
    const TOKENS: usize = 20_000;
    let (bench, log) = (Bench::new().await, Log::new());
    let builder = worker(&bench.other_client(), &log, succeed);
    let working = Working::start(builder.queue("busy").queue("calm"));
    bench.until_blocked(1).await;
    let tokens = vec!["1"; TOKENS];
    let push: u64 = bench.run(&[&["RPUSH", "sprag:{busy}:wake"], &tokens[..]].concat()).await;
    assert_eq!(push, TOKENS as u64);
    bench.task("a").queue("calm").await.expect("admitted");
    log.wait("start a", 1).await;
    let left: usize = bench.run(&["LLEN", "sprag:{busy}:wake"]).await;
    assert!(left > TOKENS / 2, "{left} tokens are left when the other queue's job starts");
    let _: u64 = bench.run(&["DEL", "sprag:{busy}:wake"]).await;
    assert_eq!(working.stop().await.completed, 1);
}
