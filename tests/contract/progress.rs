//! What a running job says of its progress.

use crate::trial::*;
use sprag::{State, StoreError, store::Held};

cases! {
    progress_is_shown_as_it_was_said,
    the_last_word_counts,
    progress_changes_nothing_else,
    progress_is_at_most_4_kib,
    a_bound_is_judged_before_the_fence,
    whoever_does_not_hold_the_job_is_rejected,
    an_extension_keeps_the_progress,
    progress_is_gone_with_the_run,
    progress_is_gone_with_a_vanished_holder,
    progress_is_gone_with_an_operators_end,
    progress_of_one_job_is_not_anothers,
}

async fn say(t: &Trial, held: &Held, text: &str) -> Result<(), StoreError> {
    t.store.progress(&t.queue, held, text).await
}

async fn heard(t: &Trial, held: &Held) -> Option<String> {
    t.show(&held.id).await.progress
}

async fn progress_is_shown_as_it_was_said(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    assert_eq!(heard(&t, &held).await, None);
    let any: String = (0..=0x17f_u32).filter_map(char::from_u32).collect();
    for text in ["{\"done\":7,\"of\":9}", "", any.as_str()] {
        assert_eq!(say(&t, &held, text).await, Ok(()));
        assert_eq!(heard(&t, &held).await.as_deref(), Some(text));
    }
}

async fn the_last_word_counts(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    for n in 0..3 {
        say(&t, &held, &n.to_string()).await.expect("held");
    }
    assert_eq!(heard(&t, &held).await.as_deref(), Some("2"));
}

async fn progress_changes_nothing_else(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.advance(secs(1)).await;
    let (before, info) = (t.show(&held.id).await, t.info().await);
    say(&t, &held, "1").await.expect("held");
    let after = t.show(&held.id).await;
    assert_eq!(after.progress.as_deref(), Some("1"));
    assert_eq!((sprag::store::JobInfo { progress: None, ..after }, t.info().await), (before, info));
}

async fn progress_is_at_most_4_kib(t: Trial) {
    t.enqueue(t.job()).await;
    let (held, most) = (t.claim_one().await, "1".repeat(4_096));
    assert_eq!(say(&t, &held, &most).await, Ok(()));
    let text = "progress: 4097 bytes; must be at most 4096 bytes";
    assert_eq!(say(&t, &held, &"2".repeat(4_097)).await, Err(invalid(text)));
    assert_eq!(heard(&t, &held).await, Some(most), "nothing is written");
}

async fn a_bound_is_judged_before_the_fence(t: Trial) {
    t.enqueue(t.job()).await;
    let nobody = stale(&t.claim_one().await);
    let answer = say(&t, &nobody, &"2".repeat(4_097)).await;
    assert!(matches!(answer, Err(StoreError::Invalid(_))), "{answer:?}");
}

async fn whoever_does_not_hold_the_job_is_rejected(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    say(&t, &held, "1").await.expect("held");
    assert_eq!(say(&t, &stale(&held), "2").await, Err(rejected(&held.id)));
    assert_eq!(heard(&t, &held).await.as_deref(), Some("1"));
}

async fn an_extension_keeps_the_progress(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    say(&t, &held, "1").await.expect("held");
    t.extend(&held, LEASE).await.expect("extended");
    assert_eq!(heard(&t, &held).await.as_deref(), Some("1"));
}

async fn progress_is_gone_with_the_run(t: Trial) {
    for verb in Fenced::SETTLING {
        let t = t.other_queue().await;
        t.enqueue(t.job().retention(DAY)).await;
        let held = t.claim_one().await;
        say(&t, &held, "1").await.expect("held");
        verb.apply(&t, &held).await.expect("held");
        assert_eq!(heard(&t, &held).await, None, "{verb:?}");
        t.sweep_after(HOUR).await;
        t.claim(1).await;
        assert_eq!(heard(&t, &held).await, None, "nor is it there in the next: {verb:?}");
    }
}

async fn progress_is_gone_with_a_vanished_holder(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    say(&t, &held, "1").await.expect("held");
    t.vanish().await;
    assert_eq!((t.state(&held.id).await, heard(&t, &held).await), (State::Pending, None));
    t.claim_one().await;
    assert_eq!(heard(&t, &held).await, None);
}

async fn progress_is_gone_with_an_operators_end(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    say(&t, &held, "1").await.expect("held");
    t.cancel(&held.id).await.expect("cancelled");
    assert_eq!(heard(&t, &held).await, None);
}

async fn progress_of_one_job_is_not_anothers(t: Trial) {
    t.offer_all(&t.jobs(2)).await;
    let (one, other) = (t.claim_one().await, t.claim_one().await);
    say(&t, &one, "1").await.expect("held");
    assert_eq!(heard(&t, &other).await, None);
}
