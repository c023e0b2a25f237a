//! Backpressure is judged on the exact number of unfinished jobs.

use crate::trial::*;
use sprag::{State, StoreError, When, store::Setting};

cases! {
    a_full_queue_refuses_with_its_numbers,
    every_unfinished_state_counts,
    no_finished_state_counts,
    an_end_makes_room,
    a_move_between_unfinished_states_makes_no_room,
    a_limit_of_zero_admits_nothing,
    a_lowered_limit_removes_nothing,
    a_lifted_limit_admits_again,
    no_verb_but_enqueue_minds_the_limit,
    the_limit_is_shown,
    the_limit_is_at_most_what_lua_can_count,
}

fn full(t: &Trial, limit: u64, current: u64) -> StoreError {
    StoreError::Backpressure { queue: t.queue.to_string(), limit, current, incoming: 1 }
}

async fn a_full_queue_refuses_with_its_numbers(t: Trial) {
    t.limit(2).await;
    t.enqueue_named(&["a", "b"]).await;
    assert_eq!(t.offer(t.named("c")).await, Err(full(&t, 2, 2)));
    assert_eq!(t.find(&id("c")).await, Err(no_job(&id("c"))));
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn every_unfinished_state_counts(t: Trial) {
    for state in UNFINISHED {
        let t = t.other_queue().await;
        t.limit(1).await;
        t.job_in(state, t.job()).await;
        assert_eq!(t.offer(t.job()).await, Err(full(&t, 1, 1)), "{state}");
    }
}

async fn no_finished_state_counts(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        t.limit(1).await;
        t.job_in(state, t.job()).await;
        assert!(t.offer(t.saying("other")).await.is_ok(), "{state}");
    }
}

async fn an_end_makes_room(t: Trial) {
    t.limit(1).await;
    t.enqueue(t.job()).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    t.enqueue(t.job()).await;
    assert_eq!(t.offer(t.job()).await, Err(full(&t, 1, 1)));
}

async fn a_move_between_unfinished_states_makes_no_room(t: Trial) {
    t.limit(1).await;
    t.enqueue(t.job().run_at(When::In(secs(1)))).await;
    t.sweep_after(secs(1)).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    t.snooze(&t.claim_one().await, secs(1)).await.expect("snoozed");
    t.sweep_after(secs(1)).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(t.offer(t.job()).await, Err(full(&t, 1, 1)));
}

async fn a_limit_of_zero_admits_nothing(t: Trial) {
    t.limit(0).await;
    assert_eq!(t.offer(t.job()).await, Err(full(&t, 0, 0)));
}

async fn a_lowered_limit_removes_nothing(t: Trial) {
    t.enqueue_named(&["a", "b", "c"]).await;
    t.limit(1).await;
    assert_eq!(t.offer(t.job()).await, Err(full(&t, 1, 3)));
    assert_eq!(t.claim_ids().await, ["a", "b", "c"]);
}

async fn a_lifted_limit_admits_again(t: Trial) {
    t.limit(0).await;
    t.set(Setting::Limit(None)).await;
    assert_eq!(t.info().await.limit, None);
    t.enqueue(t.job()).await;
}

async fn no_verb_but_enqueue_minds_the_limit(t: Trial) {
    let scheduled = t.job_in(State::Scheduled, t.job()).await;
    t.job_in(State::Active, t.job()).await;
    t.limit(0).await;
    t.sweep_after(HOUR).await;
    assert_eq!(t.state(&scheduled).await, State::Pending);
    assert_eq!(t.claim(5).await.len(), 2);
}

async fn the_limit_is_shown(t: Trial) {
    t.limit(7).await;
    assert_eq!(t.info().await.limit, Some(7));
}

async fn the_limit_is_at_most_what_lua_can_count(t: Trial) {
    let most = 1 << 53;
    t.limit(most).await;
    assert_eq!(t.info().await.limit, Some(most));
    t.enqueue(t.job()).await;
    let error = t.store.set(&t.queue, &[Setting::Limit(Some(most + 1))]).await;
    let text = "limit: 9007199254740993; must be at most 9007199254740992";
    assert_eq!(error, Err(invalid(text)));
    assert_eq!(t.info().await.limit, Some(most));
}
