//! Queues that come and go, and those that come first.

use crate::bench::{Bench, Log, Working, ms, succeed, worker};
use sprag::QueueName;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_queue_that_appears_later_is_served_and_one_that_is_deleted_is_dropped() {
    let (bench, log) = (Bench::new().await, Log::new());
    let working = Working::start(worker(&bench.client, &log, succeed).queue("mail-*"));
    bench.until_listed(1).await;
    for (name, queue) in [("other", "other"), ("a", "mail-eu"), ("b", "mail-us")] {
        bench.task(name).queue(queue).await.expect("admitted");
    }
    let enqueued = Instant::now();
    let delay = log.wait("start", 2).await.saturating_duration_since(enqueued);
    assert!(delay < Duration::from_secs(7), "{delay:?}");
    assert_eq!((log.count("start a"), log.count("start b")), (1, 1));
    bench.until_seen(|seen| seen.queues == ["mail-eu", "mail-us"]).await;
    bench.until_blocked(1).await;
    // Now it is woken for it.
    let enqueued = Instant::now();
    bench.task("c").queue("mail-us").await.expect("admitted");
    let delay = log.wait("start c", 1).await.saturating_duration_since(enqueued);
    assert!(delay < ms(1_000), "{delay:?}");

    let eu = QueueName::new("mail-eu").expect("queue");
    bench.client.store().delete_queue(&eu, true).await.expect("deleted");
    bench.until_seen(|seen| seen.queues == ["mail-us"]).await;
    let keys: Vec<String> = bench.run(&["KEYS", "sprag:{mail-eu}:*"]).await;
    assert_eq!(keys, Vec::<String>::new(), "serving it has not made it anew");
    assert_eq!(working.stop().await.completed, 3);
    assert_eq!(log.count("start other"), 0);
}

#[tokio::test]
async fn in_strict_order_the_second_queue_begins_when_the_first_has_nothing_left() {
    let (bench, log) = (Bench::new().await, Log::new());
    for queue in ["second", "first"] {
        for i in 0..30 {
            bench.task(&format!("{queue}-{i}")).queue(queue).await.expect("admitted");
        }
    }
    let builder = worker(&bench.client, &log, succeed).concurrency(4).strict_order();
    let working = Working::start(builder.queue("first").queue("second"));
    log.wait("start", 60).await;
    let starts = log.all();
    assert!(starts[..30].iter().all(|start| start.starts_with("start first")), "{starts:?}");
    assert_eq!(working.stop().await.completed, 60);
}
