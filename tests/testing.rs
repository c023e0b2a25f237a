//! The testing kit, as its users see it.

use sprag::{
    Client, Job, State, StoreError, Verdict, assert_enqueued, assert_not_enqueued, testing::Kit,
};
use std::time::Duration;

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Order {
    cents: u64,
}

impl Job for Order {
    const KIND: &'static str = "order";
    const QUEUE: &'static str = "orders";
    const ALIASES: &'static [&'static str] = &["purchase"];
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Invoice {
    cents: u64,
}

impl Job for Invoice {
    const KIND: &'static str = "invoice";
}

const MINUTE: Duration = Duration::from_secs(60);

/// A handler that enqueues what follows.
async fn order(job: Order, client: Client) -> Result<(), StoreError> {
    client.enqueue(Invoice { cents: job.cents }).delay(MINUTE).await?;
    Ok(())
}

async fn fail(_: Order) -> Result<(), Verdict> {
    Err(Verdict::retry_in(MINUTE, "no"))
}

#[tokio::test]
async fn draining_runs_what_is_due_and_what_that_enqueues() {
    let kit = Kit::new();
    let worker = kit.worker().handler(order).handler(async |_: Invoice| Ok::<_, Verdict>(()));
    let mut worker = worker.build().expect("valid");
    kit.client().enqueue(Order { cents: 5 }).await.expect("enqueued");
    assert_enqueued!(kit, Order { cents: 5 });
    assert_not_enqueued!(kit, Invoice { .. });

    assert_eq!(kit.drain(&mut worker).await.completed, 1);
    assert_not_enqueued!(kit, Order { .. });
    assert_enqueued!(kit, Invoice { cents } if *cents == 5);

    assert_eq!(kit.drain(&mut worker).await.completed, 0, "it is due in a minute");
    kit.advance(MINUTE).await;
    assert_eq!(kit.drain(&mut worker).await.completed, 1);
}

#[tokio::test]
async fn a_failed_attempt_waits_for_the_clock() {
    let kit = Kit::new();
    let mut worker = kit.worker().handler(fail).build().expect("valid");
    kit.client().enqueue(Order { cents: 5 }).max_attempts(3).await.expect("enqueued");
    for _ in 0..2 {
        assert_eq!(kit.drain(&mut worker).await.retried, 1);
        let [found] = &*kit.enqueued::<Order>().await else { panic!("one job") };
        assert_eq!((found.state, found.due_at), (State::Retry, Some(kit.now() + MINUTE)));
        kit.advance(MINUTE).await;
    }
    assert_eq!(kit.drain(&mut worker).await.archived, 1);
    assert_eq!(kit.enqueued::<Order>().await, []);
}

#[tokio::test]
async fn jobs_are_found_in_their_order_in_all_queues_and_under_former_names() {
    let kit = Kit::new();
    for (cents, queue) in [(1, "orders"), (2, "urgent"), (3, "orders")] {
        kit.client().enqueue(Order { cents }).queue(queue).await.expect("enqueued");
        kit.advance(MINUTE).await;
    }
    let found = kit.enqueued::<Order>().await;
    let jobs: Vec<_> = found.iter().map(|f| (f.job.cents, f.queue.as_str())).collect();
    assert_eq!(jobs, [(1, "orders"), (2, "urgent"), (3, "orders")]);
}

#[tokio::test]
#[should_panic(expected = "no job Order { cents: 6 } is enqueued; there are:\n  pending order in \
                           orders: {\"cents\":5}")]
async fn a_failed_assertion_says_what_there_is() {
    let kit = Kit::new();
    kit.client().enqueue(Order { cents: 5 }).await.expect("enqueued");
    assert_enqueued!(kit, Order { cents: 6 });
}
