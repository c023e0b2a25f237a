//! A debounced job is due a window after its last event, and has the payload of that one.

use crate::trial::*;
use sprag::{
    JobId, State, Unique, When,
    model::{EnvelopeBuilder, Mode, Replace},
};
use std::time::Duration;

cases! {
    a_debounced_job_is_due_after_its_window,
    a_first_event_waits_at_most_the_longest_wait,
    a_debounced_job_comes_back_with_its_mode,
    ten_events_in_a_second_are_one_run_with_the_last_payload,
    a_steady_stream_runs_at_the_longest_wait,
    an_event_postpones_by_its_own_window,
    an_event_can_bring_the_job_forward,
    the_longest_wait_is_that_of_the_event,
    an_event_past_the_longest_wait_makes_the_job_pending,
    an_event_of_a_pending_job_replaces_the_payload_only,
    an_event_replaces_the_whole_content,
    an_event_replaces_what_it_asks_for_as_well,
    an_event_brings_no_time_of_its_own,
    an_event_wakes_nobody_unless_the_job_is_due_earlier,
    an_event_in_an_atomic_batch_replaces_nothing,
    an_event_writes_nothing_into_a_holder_of_another_mode,
    a_duplicate_of_another_mode_is_no_event,
}

const WINDOW: Duration = ms(500);

fn debounced(
    job: EnvelopeBuilder,
    window: Duration,
    max_wait: Option<Duration>,
) -> EnvelopeBuilder {
    job.unique(Unique::key("k").mode(Mode::Debounce { window, max_wait }))
}

fn event(t: &Trial, payload: &str) -> EnvelopeBuilder {
    debounced(t.saying(payload), WINDOW, None)
}

async fn payload(t: &Trial, job: &JobId) -> String {
    String::from_utf8(t.envelope(job).await.payload().to_vec()).expect("UTF-8")
}

async fn a_debounced_job_is_due_after_its_window(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    assert_eq!((t.state(&job).await, t.due_in(&job).await), (State::Scheduled, WINDOW));
    let due = t.now().await + WINDOW;
    assert_eq!(t.envelope(&job).await.run_at(), When::At(due));
    assert_eq!(t.sweep_after(WINDOW - ms(1)).await.promoted, 0);
    assert_eq!(t.sweep_after(ms(1)).await.promoted, 1);
}

async fn a_first_event_waits_at_most_the_longest_wait(t: Trial) {
    for (max_wait, due) in [(ms(200), ms(200)), (WINDOW, WINDOW), (secs(2), WINDOW)] {
        let t = t.other_queue().await;
        let job = t.enqueue(debounced(t.job(), WINDOW, Some(max_wait))).await;
        assert_eq!(t.due_in(&job).await, due);
    }
}

async fn a_debounced_job_comes_back_with_its_mode(t: Trial) {
    for max_wait in [None, Some(secs(2))] {
        let t = t.other_queue().await;
        let job = build(debounced(t.job(), WINDOW, max_wait));
        t.offer_all(std::slice::from_ref(&job)).await;
        assert_eq!(t.envelope(job.id()).await.unique(), job.unique());
    }
}

async fn ten_events_in_a_second_are_one_run_with_the_last_payload(t: Trial) {
    let job = t.enqueue(event(&t, "0")).await;
    for n in 1..10 {
        assert_eq!(t.sweep_after(ms(100)).await.promoted, 0);
        assert_eq!(t.offer(event(&t, &n.to_string())).await, Err(replaced(&job)));
    }
    assert_eq!(t.sweep_after(WINDOW - ms(1)).await.promoted, 0);
    assert_eq!(t.sweep_after(ms(1)).await.promoted, 1);
    let claimed = t.claim(10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].envelope.payload(), "9");
    assert_eq!(t.info().await.unfinished, 1);
}

async fn a_steady_stream_runs_at_the_longest_wait(t: Trial) {
    let mut runs = Vec::new();
    for n in 0..60_u32 {
        let _ = t.offer(debounced(t.saying(&n.to_string()), WINDOW, Some(secs(2)))).await;
        t.sweep_after(ms(100)).await;
        if let Some(job) = t.claim(1).await.pop() {
            t.complete(&held(&job)).await.expect("completed");
            runs.push(n);
        }
    }
    assert_eq!(runs, [19, 39, 59], "every two seconds");
}

async fn an_event_postpones_by_its_own_window(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.advance(ms(100)).await;
    let later = debounced(t.saying("2"), secs(9), None);
    assert_eq!(t.offer(later).await, Err(replaced(&job)));
    assert_eq!(t.due_in(&job).await, secs(9));
    let due = t.now().await + secs(9);
    assert_eq!(t.envelope(&job).await.run_at(), When::At(due));
}

async fn an_event_can_bring_the_job_forward(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.offer(debounced(t.saying("2"), ms(100), None)).await.expect_err("replaced");
    assert_eq!(t.due_in(&job).await, ms(100));
}

async fn the_longest_wait_is_that_of_the_event(t: Trial) {
    let job = t.enqueue(debounced(t.job(), WINDOW, Some(ms(600)))).await;
    t.advance(ms(400)).await;
    t.offer(debounced(t.saying("2"), WINDOW, Some(ms(700)))).await.expect_err("replaced");
    assert_eq!(t.due_in(&job).await, ms(300), "700 ms after the first event");
    t.offer(event(&t, "3")).await.expect_err("replaced");
    assert_eq!(t.due_in(&job).await, WINDOW, "without bound");
}

async fn an_event_past_the_longest_wait_makes_the_job_pending(t: Trial) {
    for wait in [ms(300), ms(400)] {
        let t = t.other_queue().await;
        let job = t.enqueue(event(&t, "1")).await;
        t.advance(ms(400)).await;
        t.token().await;
        let late = debounced(t.saying("2"), WINDOW, Some(wait));
        assert_eq!(t.offer(late).await, Err(replaced(&job)));
        let info = t.show(&job).await;
        assert_eq!((info.state, info.due_at), (State::Pending, None));
        assert!(t.token().await, "it is claimable");
        assert_eq!(t.info().await.unfinished, 1);
    }
}

async fn an_event_of_a_pending_job_replaces_the_payload_only(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.sweep_after(WINDOW).await;
    t.enqueue(t.named("behind")).await;
    assert_eq!(t.offer(event(&t, "2")).await, Err(replaced(&job)));
    assert_eq!((t.state(&job).await, payload(&t, &job).await), (State::Pending, "2".into()));
    assert_eq!(t.claim_ids().await, [job.to_string(), "behind".to_owned()], "in its place");
}

async fn an_event_replaces_the_whole_content(t: Trial) {
    let job = t.enqueue(event(&t, "1").header("a", "b").priority(7)).await;
    let second = build(event(&t, "[2]").payload("[2]", sprag::Codec::Json).version(3).priority(1));
    only(t.offer_all(std::slice::from_ref(&second)).await).expect_err("replaced");
    let now = t.envelope(&job).await;
    assert_eq!((now.payload(), now.codec(), now.version()), (second.payload(), second.codec(), 3));
    assert_eq!(now.fingerprint(), second.fingerprint());
    assert_eq!((now.priority(), now.headers().len()), (7, 1), "nothing else");
}

fn asking(t: &Trial, fields: impl Into<Vec<Replace>>) -> EnvelopeBuilder {
    let mode = Mode::Debounce { window: WINDOW, max_wait: None };
    t.saying("2").unique(Unique::key("k").mode(mode).replace(fields))
}

async fn an_event_replaces_what_it_asks_for_as_well(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    let asks = asking(&t, [Replace::Priority, Replace::MaxAttempts]).priority(9).max_attempts(3);
    assert_eq!(t.offer(asks).await, Err(replaced(&job)));
    let now = t.envelope(&job).await;
    assert_eq!((now.priority(), now.max_attempts(), now.payload().as_ref()), (9, 3, &b"2"[..]));
}

async fn an_event_brings_no_time_of_its_own(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    t.advance(ms(100)).await;
    assert_eq!(t.offer(asking(&t, [Replace::RunAt])).await, Err(replaced(&job)));
    assert_eq!((t.state(&job).await, t.due_in(&job).await), (State::Scheduled, WINDOW));
}

async fn an_event_wakes_nobody_unless_the_job_is_due_earlier(t: Trial) {
    t.enqueue(event(&t, "1")).await;
    t.token().await;
    t.advance(ms(100)).await;
    t.offer(event(&t, "2")).await.expect_err("replaced");
    assert!(!t.token().await);
    t.offer(debounced(t.saying("3"), ms(100), None)).await.expect_err("replaced");
    assert!(t.token().await);
}

async fn an_event_in_an_atomic_batch_replaces_nothing(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    let before = t.show(&job).await;
    let error = t.store.enqueue_atomic(&t.queue, &[build(event(&t, "2"))]).await;
    assert_eq!(error.expect_err("refused").error, duplicate(&job));
    assert_eq!(t.show(&job).await, before);
}

async fn an_event_writes_nothing_into_a_holder_of_another_mode(t: Trial) {
    for mode in [Mode::Lifecycle, Mode::Throttle { window: HOUR }] {
        let t = t.other_queue().await;
        let job = t.enqueue(t.saying("1").unique(Unique::key("k").mode(mode))).await;
        let before = t.show(&job).await;
        assert_eq!(t.offer(event(&t, "2")).await, Err(duplicate(&job)));
        assert_eq!(t.offer(asking(&t, [Replace::RunAt])).await, Err(duplicate(&job)));
        assert_eq!(t.show(&job).await, before, "{mode:?}");
        assert_eq!(t.offer(asking(&t, [Replace::Payload])).await, Err(replaced(&job)));
        assert_eq!(payload(&t, &job).await, "2", "{mode:?}");
    }
}

async fn a_duplicate_of_another_mode_is_no_event(t: Trial) {
    let job = t.enqueue(event(&t, "1")).await;
    for mode in [Mode::Lifecycle, Mode::Throttle { window: HOUR }] {
        let unique = Unique::key("k").mode(mode);
        let before = t.show(&job).await;
        t.advance(ms(1)).await;
        assert_eq!(t.offer(t.saying("2").unique(unique.clone())).await, Err(duplicate(&job)));
        assert_eq!(t.show(&job).await, before, "{mode:?}");
        let asks = t.saying("2").priority(9).unique(unique.replace([Replace::Priority]));
        assert_eq!(t.offer(asks).await, Err(replaced(&job)));
        let now = t.show(&job).await;
        assert_eq!((now.due_at, payload(&t, &job).await), (before.due_at, "1".into()), "{mode:?}");
    }
    assert_eq!(t.envelope(&job).await.priority(), 9);
}
