//! What a handler's error comes to, whatever its type.

use crate::bench::{Bench, HOUR, Task, ms, run, task};
use sprag::{State, Verdict, store::EndingReason, worker::Handler};
use std::{error::Error, fmt, time::Duration};

/// One run of `a` by this handler.
async fn after_one_run<Args: 'static>(handler: impl Handler<Args, Job = Task>) -> Bench {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    run(bench.worker().handler(handler)).await;
    bench
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("mailbox {0} is full")]
    Full(u32),
    #[error("while sending")]
    Sending(#[from] Verdict),
    #[error(transparent)]
    Other(#[from] Box<dyn Error + Send + Sync>),
}

#[tokio::test]
async fn an_error_of_any_type_is_a_failed_attempt_with_its_text() {
    type BoxError = Box<dyn Error + Send + Sync>;
    let causes = || anyhow::anyhow!("no route").context("while sending");
    let benches = [
        ("text", after_one_run(|_: Task| async { Err::<(), _>("text") }).await),
        ("owned", after_one_run(|_: Task| async { Err::<(), _>("owned".to_owned()) }).await),
        ("boxed", after_one_run(|_: Task| async { Err::<(), BoxError>("boxed".into()) }).await),
        (
            "mailbox 7 is full",
            after_one_run(|_: Task| async { Err::<(), _>(SendError::Full(7)) }).await,
        ),
        (
            "while sending: no route",
            after_one_run(move |_: Task| async move { Err::<(), _>(causes()) }).await,
        ),
    ];
    for (text, bench) in benches {
        assert_eq!(bench.told().await, (State::Retry, 1, Some(text.to_owned())));
        assert_eq!(bench.due_in().await, HOUR, "after the usual back-off");
    }
}

#[tokio::test]
async fn a_verdict_counts_inside_whatever_wraps_it() {
    let gone = || Verdict::discard("gone");
    let benches = [
        after_one_run(move |_: Task| async move { Err::<(), _>(gone()) }).await,
        after_one_run(move |_: Task| async move { Err::<(), _>(SendError::from(gone())) }).await,
        after_one_run(
            move |_: Task| async move { Err::<(), _>(SendError::Other(Box::new(gone()))) },
        )
        .await,
        after_one_run(move |_: Task| async move {
            Err::<(), _>(anyhow::Error::new(gone()).context("charging").context("job"))
        })
        .await,
        after_one_run(move |_: Task| async move { Err::<(), _>(std::io::Error::other(gone())) })
            .await,
    ];
    for bench in benches {
        let (reason, said) = bench.ending().await;
        assert_eq!(reason, EndingReason::Discarded);
        assert!(said.ends_with("gone"), "{said}");
        assert_eq!(said.matches("gone").count(), 1, "said once: {said}");
    }
}

#[tokio::test]
async fn each_verdict_does_what_it_says_from_inside_anyhow() {
    let wrapped = |verdict: fn() -> Verdict| {
        move |_: Task| async move { Err::<(), _>(anyhow::Error::new(verdict()).context("outer")) }
    };
    let bench = after_one_run(wrapped(|| Verdict::retry_in(2 * HOUR, "not yet"))).await;
    assert_eq!(bench.told().await, (State::Retry, 1, Some("outer: not yet".into())));
    assert_eq!(bench.due_in().await, 2 * HOUR);
    let bench = after_one_run(wrapped(|| Verdict::snooze(3 * HOUR))).await;
    assert_eq!(bench.told().await, (State::Scheduled, 0, None));
    assert_eq!(bench.due_in().await, 3 * HOUR);
    let bench = after_one_run(wrapped(|| Verdict::undecodable("no address in it"))).await;
    let ending = (EndingReason::Undecodable, "outer: no address in it".to_owned());
    assert_eq!(bench.ending().await, ending);
}

#[tokio::test]
async fn a_delay_out_of_bounds_does_not_keep_a_job_from_settling() {
    for (delay, due) in [(Duration::ZERO, ms(1)), (Duration::from_micros(1_500), ms(2))] {
        let snooze = move |_: Task| async move { Err::<(), _>(Verdict::snooze(delay)) };
        assert_eq!(after_one_run(snooze).await.due_in().await, due);
    }
    let forever = |_: Task| async { Err::<(), _>(Verdict::retry_in(Duration::MAX, "never")) };
    let years = after_one_run(forever).await.due_in().await.as_secs() / (365 * 24 * 3_600);
    assert_eq!(years, 10);
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_with_its_text() {
    let bench = after_one_run(|Task(name): Task| async move {
        assert_eq!(name, "b", "the wrong name");
        Ok::<_, Verdict>(())
    })
    .await;
    let (state, attempt, said) = bench.told().await;
    assert_eq!((state, attempt), (State::Retry, 1));
    let said = said.expect("a text");
    assert!(said.starts_with("panicked: ") && said.contains("the wrong name"), "{said}");

    let bench = after_one_run(|_: Task| async {
        if true {
            std::panic::panic_any(7_u8);
        }
        Ok::<_, Verdict>(())
    })
    .await;
    let said = bench.told().await.2.expect("a text");
    assert_eq!(said, "panicked: with a value that is no text");
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("do not ask")
    }
}

impl Error for Unspeakable {}

#[tokio::test]
async fn an_error_whose_text_panics_is_a_failed_attempt() {
    let bench = after_one_run(|_: Task| async { Err::<(), _>(Unspeakable) }).await;
    let (state, attempt, said) = bench.told().await;
    assert_eq!((state, attempt), (State::Retry, 1));
    assert_eq!(said.as_deref(), Some("panicked after the attempt: do not ask"));
}

#[tokio::test]
async fn a_backoff_that_panics_is_a_failed_attempt() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let handler = |_: Task| async { Err::<(), _>("no") };
    let report = run(bench.worker().backoff(|_| panic!("no idea")).handler(handler)).await;
    assert_eq!(report.retried, 1);
    let said = bench.told().await.2;
    assert_eq!(said.as_deref(), Some("panicked after the attempt: no idea"));
}

#[tokio::test]
async fn a_long_error_is_cut_with_a_mark_and_settles() {
    let bench = after_one_run(|_: Task| async { Err::<(), _>("ü".repeat(10_000)) }).await;
    let (state, _, said) = bench.told().await;
    assert_eq!(state, State::Retry);
    assert!(said.is_some_and(|said| said.len() <= 4_096 && said.ends_with("… (cut)")));
}
