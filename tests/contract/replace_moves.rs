//! Where a replaced due time or priority moves the job.

use crate::trial::*;
use sprag::{
    State, Unique, When,
    model::{EnvelopeBuilder, Replace},
};

cases! {
    a_pending_job_that_is_moved_later_is_scheduled,
    a_scheduled_job_moves_to_its_new_time,
    a_scheduled_job_that_is_due_now_is_pending_at_the_back,
    a_retry_job_that_is_moved_later_stays_in_retry,
    a_retry_job_that_is_due_now_is_pending,
    a_pending_job_that_is_due_now_keeps_its_place,
    a_pending_job_goes_to_the_back_of_its_new_lane,
    a_pending_job_of_the_same_priority_keeps_its_place,
    a_waiting_job_joins_its_new_lane_when_it_is_due,
    time_and_priority_are_replaced_together,
    a_job_moved_to_an_earlier_time_wakes,
}

fn keyed(job: EnvelopeBuilder) -> EnvelopeBuilder {
    job.unique(Unique::key("k"))
}

fn asking(job: EnvelopeBuilder, fields: impl Into<Vec<Replace>>) -> EnvelopeBuilder {
    job.unique(Unique::key("k").replace(fields))
}

/// Moves the holder by its due time.
async fn moved(t: &Trial, when: When) -> State {
    let answer = t.offer(asking(t.saying("x").run_at(when), [Replace::RunAt])).await;
    assert_eq!(answer, Err(replaced(&id("a"))));
    t.state(&id("a")).await
}

async fn prioritised(t: &Trial, priority: u8) {
    let by = asking(t.saying("x").priority(priority), [Replace::Priority]);
    assert_eq!(t.offer(by).await, Err(replaced(&id("a"))));
}

async fn a_pending_job_that_is_moved_later_is_scheduled(t: Trial) {
    t.enqueue(keyed(t.named("a"))).await;
    assert_eq!(moved(&t, When::In(ms(1))).await, State::Scheduled);
    let info = t.info().await;
    assert_eq!((info.pending, info.scheduled, info.unfinished), (0, 1, 1));
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.sweep_after(ms(1)).await.promoted, 1);
    assert_eq!(t.claim_ids().await, ["a"]);
}

async fn a_scheduled_job_moves_to_its_new_time(t: Trial) {
    t.job_in(State::Scheduled, keyed(t.named("a"))).await;
    for due in [secs(1), 2 * HOUR] {
        assert_eq!(moved(&t, When::In(due)).await, State::Scheduled);
        assert_eq!(t.due_in(&id("a")).await, due);
        assert_eq!(t.sweep().await.next_due, Some(due));
    }
    assert_eq!(t.info().await.unfinished, 1);
}

async fn a_scheduled_job_that_is_due_now_is_pending_at_the_back(t: Trial) {
    t.job_in(State::Scheduled, keyed(t.named("a"))).await;
    t.enqueue_named(&["b"]).await;
    let now = t.now().await;
    assert_eq!(moved(&t, When::At(now)).await, State::Pending);
    let info = t.show(&id("a")).await;
    assert_eq!((info.due_at, t.info().await.scheduled), (None, 0));
    assert_eq!(t.claim_ids().await, ["b", "a"]);
}

async fn a_retry_job_that_is_moved_later_stays_in_retry(t: Trial) {
    t.job_in(State::Retry, keyed(t.named("a"))).await;
    assert_eq!(moved(&t, When::In(secs(1))).await, State::Retry);
    assert_eq!(t.due_in(&id("a")).await, secs(1));
    let info = t.show(&id("a")).await;
    assert_eq!((info.attempt, info.errors.len()), (1, 1));
}

async fn a_retry_job_that_is_due_now_is_pending(t: Trial) {
    t.job_in(State::Retry, keyed(t.named("a"))).await;
    assert_eq!(moved(&t, When::Now).await, State::Pending);
    assert_eq!(t.claim(1).await[0].attempt, 1);
}

async fn a_pending_job_that_is_due_now_keeps_its_place(t: Trial) {
    t.enqueue(keyed(t.named("a"))).await;
    t.enqueue_named(&["b"]).await;
    assert_eq!(moved(&t, When::Now).await, State::Pending);
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn a_pending_job_goes_to_the_back_of_its_new_lane(t: Trial) {
    t.enqueue(keyed(t.named("a"))).await;
    t.enqueue(t.named("high").priority(9)).await;
    t.enqueue_named(&["b"]).await;
    prioritised(&t, 9).await;
    assert_eq!(t.info().await.pending, 3);
    assert_eq!(t.claim(2).await[1].id, id("a"));
    assert_eq!(t.claim_ids().await, ["b"]);
}

async fn a_pending_job_of_the_same_priority_keeps_its_place(t: Trial) {
    t.enqueue(keyed(t.named("a"))).await;
    t.enqueue_named(&["b"]).await;
    prioritised(&t, 4).await;
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn a_waiting_job_joins_its_new_lane_when_it_is_due(t: Trial) {
    for state in [State::Scheduled, State::Retry] {
        let t = t.other_queue().await;
        t.job_in(state, keyed(t.named("a"))).await;
        t.enqueue_named(&["b"]).await;
        prioritised(&t, 9).await;
        assert_eq!(t.state(&id("a")).await, state);
        t.sweep_after(HOUR).await;
        assert_eq!(t.claim_ids().await, ["a", "b"], "{state}");
    }
}

async fn time_and_priority_are_replaced_together(t: Trial) {
    let both = [Replace::RunAt, Replace::Priority];
    t.enqueue(keyed(t.named("a"))).await;
    t.enqueue_named(&["b"]).await;
    let later = t.saying("x").priority(9).run_at(When::In(secs(1)));
    assert_eq!(t.offer(asking(later, both)).await, Err(replaced(&id("a"))));
    assert_eq!(t.info().await.pending, 1);
    let now = t.saying("x").priority(9);
    assert_eq!(t.offer(asking(now, both)).await, Err(replaced(&id("a"))));
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn a_job_moved_to_an_earlier_time_wakes(t: Trial) {
    t.job_in(State::Scheduled, keyed(t.named("a"))).await;
    t.token().await;
    moved(&t, When::In(2 * HOUR)).await;
    assert!(!t.token().await);
    moved(&t, When::In(secs(1))).await;
    assert!(t.token().await, "due earlier");
    moved(&t, When::Now).await;
    assert!(t.token().await, "claimable");
}
