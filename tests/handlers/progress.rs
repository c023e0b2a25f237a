//! What a handler says of its progress.

use crate::bench::{Bench, HOUR, Task, id, ms, queue, run, task};
use sprag::{
    Client, Context, Verdict,
    store::Pace,
    worker::{CancelReason, Progress},
};

/// What is shown of `a`, once it is so.
async fn shown(client: &Client, is_meant: impl Fn(&Progress) -> bool) -> Progress {
    let started = std::time::Instant::now();
    while started.elapsed() < std::time::Duration::from_secs(20) {
        let job = client.store().show(&queue(), &id("a")).await.expect("there");
        let progress = job.progress.map(|text| serde_json::from_str::<Progress>(&text));
        if let Some(Ok(progress)) = progress.filter(|p| p.as_ref().is_ok_and(&is_meant)) {
            return progress;
        }
        tokio::time::sleep(ms(5)).await;
    }
    panic!("never shown")
}

#[tokio::test]
async fn it_is_shown_while_the_job_runs_and_a_long_message_is_cut() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let handler = |_: Task, context: Context| async move {
        context.progress(3, 7, "é".repeat(5_000));
        let Progress { current, total, message } = shown(context.client(), |_| true).await;
        assert_eq!((current, total), (3, 7));
        assert!(message.len() <= 2_048 && message.starts_with('é'), "{}", message.len());
        Ok::<_, Verdict>(())
    };
    assert_eq!(run(bench.worker().handler(handler)).await.completed, 1);
    assert_eq!(bench.job().await.progress, None, "no more, when it is done");
}

#[tokio::test]
async fn it_is_said_from_any_thread() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let handler = |_: Task, context: Context| async move {
        let worker = context.clone();
        let thread = std::thread::spawn(move || worker.progress(1, 2, "half"));
        thread.join().map_err(|_| "panicked outside the runtime")?;
        shown(context.client(), |progress| progress.message == "half").await;
        Ok::<_, &str>(())
    };
    assert_eq!(run(bench.worker().handler(handler)).await.completed, 1);
}

#[tokio::test]
async fn a_reclaimed_job_tells_its_old_holder_at_its_next_progress() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let clock = bench.clock.clone();
    let handler = move |_: Task, context: Context| {
        let clock = clock.clone();
        async move {
            if context.crash() > 0 {
                return Ok("second");
            }
            // Its keeper does not find out for hours.
            Bench::until_leases_were_looked_at(context.client(), clock.now()).await;
            clock.advance(24 * HOUR);
            context.client().store().sweep(&queue(), Pace::Now).await?;
            context.progress(1, 1, "late");
            let told = tokio::time::timeout(ms(20_000), context.cancelled()).await;
            assert_eq!(told, Ok(CancelReason::LeaseLost));
            Ok::<_, sprag::StoreError>("first")
        }
    };
    let report = run(bench.worker().lease(24 * HOUR).handler(handler)).await;
    assert_eq!((report.completed, report.lost), (1, 1));
    assert_eq!(bench.result().await, r#""second""#);
}
