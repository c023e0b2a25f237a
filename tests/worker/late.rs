//! Claims that are answered late.

use crate::{
    bench::{Bench, Log, Task, Working, client, default_queue, ms, succeed, worker},
    support::{Proxy, key},
};
use sprag::{Context, Verdict, WorkerId};
use std::time::{Duration, Instant};

/// Runs for a moment, unless it is told to stop.
async fn for_a_moment(_: Task, context: Context) -> Result<(), Verdict> {
    tokio::select! {
        () = tokio::time::sleep(ms(400)) => Ok(()),
        reason = context.cancelled() => Err(Verdict::discard(format!("told {reason}"))),
    }
}

#[tokio::test]
async fn a_job_claimed_by_a_repeat_of_many_seconds_is_not_taken_for_lost() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let builder = worker(&client(&proxy.url()), &log, for_a_moment).lease(ms(1_000));
    let working = Working::start(builder);
    bench.until_blocked(1).await;
    proxy.on("claim").times(u64::MAX).answer_error("BUSY Redis is busy running a script.");
    bench.enqueue(&["a"]).await;
    tokio::time::sleep(ms(2_000)).await;
    assert!(proxy.struck("claim") > 0);
    proxy.disarm();
    bench.until_done().await;
    let report = working.stop().await;
    assert_eq!((report.completed, report.requeued, report.lost), (1, 0, 0));
    assert_eq!((log.all(), bench.info().await.completed_today), (vec!["start a".to_owned()], 1));
}

#[tokio::test]
async fn a_job_in_hand_does_not_wait_for_the_claim_of_another_queue() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let through = client(&proxy.url());
    let nobody = WorkerId::new("nobody").expect("id");
    let claimed = through.store().claim(&default_queue(), &nobody, 1, ms(30_000)).await;
    claimed.expect("the script is loaded");
    // The first round asks both queues.
    proxy.on("claim").after(1).hold_reply();
    bench.task("a").queue("one").await.expect("admitted");
    let enqueued = Instant::now();
    let builder = worker(&through, &log, for_a_moment).concurrency(4);
    let working = Working::start(builder.queue("one").queue("two"));
    let delay = log.wait("start a", 1).await.saturating_duration_since(enqueued);
    assert!(delay < ms(1_000), "{delay:?}");
    proxy.wait_struck("claim", 1).await;
    proxy.release();
    assert_eq!(working.stop().await.completed, 1);
}

#[tokio::test]
async fn the_grace_of_a_worker_ends_in_time_though_its_claim_is_not_answered() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let handler = {
        let log = log.clone();
        move |_: Task, context: Context| {
            let log = log.clone();
            async move {
                log.add(&format!("told {}", context.cancelled().await));
                Ok(())
            }
        }
    };
    let builder = worker(&client(&proxy.url()), &log, handler).concurrency(2).grace(ms(300));
    let working = Working::start(builder);
    bench.enqueue(&["a"]).await;
    log.wait("start a", 1).await;
    bench.until_blocked(1).await;
    proxy.on("claim").times(u64::MAX).answer_error("BUSY Redis is busy running a script.");
    bench.enqueue(&["b"]).await;
    proxy.wait_struck("claim", 1).await;
    working.shutdown.drain();
    let drained = Instant::now();
    let delay = log.wait("told shutdown", 1).await.saturating_duration_since(drained);
    assert!((ms(250)..Duration::from_secs(2)).contains(&delay), "{delay:?}");
    bench.until("it to be settled", |info| info.completed_today == 1).await;
    assert!(!working.has_ended(), "the claim may have been applied: it is repeated");
    proxy.disarm();
    let report = working.ended().await;
    assert_eq!((report.completed, log.count("start")), (1, 1));
    let info = bench.info().await;
    assert_eq!((info.pending, info.active), (1, 0), "what it brought went back");
}

/// A claim is out for so long that the worker waits for tokens meanwhile, and takes one: the claim looked
/// before that job came.
#[tokio::test]
async fn a_job_that_comes_while_a_claim_is_out_is_claimed_when_that_is_answered() {
    let (bench, log) = (Bench::new().await, Log::new());
    let proxy = Proxy::in_front_of(&bench.server).await;
    let working = Working::start(worker(&client(&proxy.url()), &log, succeed).concurrency(2));
    bench.enqueue(&["first"]).await;
    log.wait("start first", 1).await;
    bench.until_done().await;
    bench.until_blocked(1).await;
    // The sweep would find it, too.
    proxy.on("sweep").times(u64::MAX).answer_error("BUSY Redis is busy running a script.");
    proxy.on("claim").hold_reply();
    bench.client.store().wake(&default_queue()).await.expect("woken");
    proxy.wait_struck("claim", 1).await;
    bench.until_blocked(1).await;
    bench.enqueue(&["a"]).await;
    let token = key(&default_queue(), "wake");
    while bench.run::<u64>(&["LLEN", &token]).await > 0 {
        tokio::time::sleep(ms(5)).await;
    }
    bench.until_blocked(1).await;
    proxy.release();
    log.wait("start a", 1).await;
    bench.until_done().await;
    proxy.disarm();
    assert_eq!(working.stop().await.completed, 2);
}
