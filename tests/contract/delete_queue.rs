//! A queue is deleted with all that is in it.

use crate::trial::*;
use sprag::{
    State, StoreError, Unique,
    model::Mode,
    store::{Page, Setting},
};

cases! {
    an_absent_queue_is_not_found,
    a_queue_with_unfinished_jobs_is_refused,
    a_queue_without_unfinished_jobs_is_deleted,
    a_forced_deletion_takes_everything,
    a_deleted_queue_is_not_listed,
    a_deleted_queue_hands_over_nothing,
    a_holder_of_a_deleted_job_is_rejected,
    a_holder_of_a_deleted_job_is_rejected_also_when_its_id_is_back,
    a_deleted_queue_can_be_made_again,
    a_deletion_forgets_all_settings,
    a_deletion_forgets_all_identities_keys_and_quarantines,
    a_deletion_forgets_the_counters,
    a_deletion_takes_the_token,
    a_deletion_leaves_other_queues,
}

fn absent(t: &Trial) -> StoreError {
    StoreError::NotFound(format!("queue {}", t.queue))
}

/// Deletes the queue, and lets a moment pass: a new fence is a later one by the clock.
async fn delete(t: &Trial) {
    assert_eq!(t.delete_queue(true).await, Ok(()));
    t.advance(ms(1)).await;
}

async fn an_absent_queue_is_not_found(t: Trial) {
    for force in [false, true] {
        assert_eq!(t.delete_queue(force).await, Err(absent(&t)));
    }
    t.enqueue(t.job()).await;
    delete(&t).await;
    assert_eq!(t.delete_queue(true).await, Err(absent(&t)));
}

async fn a_queue_with_unfinished_jobs_is_refused(t: Trial) {
    for state in UNFINISHED {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        let before = (t.info().await, t.show(&job).await);
        let text = "unfinished: 1; must be 0 unless forced";
        assert_eq!(t.delete_queue(false).await, Err(invalid(text)), "{state}");
        assert_eq!((t.info().await, t.show(&job).await), before);
    }
}

async fn a_queue_without_unfinished_jobs_is_deleted(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        assert_eq!(t.delete_queue(false).await, Ok(()), "{state}");
        assert_eq!(t.find(&job).await, Err(no_job(&job)));
    }
    let t = t.other_queue().await;
    t.limit(5).await;
    assert_eq!(t.delete_queue(false).await, Ok(()), "an empty one");
}

async fn a_forced_deletion_takes_everything(t: Trial) {
    for state in State::ALL {
        t.job_in(state, t.saying(state.as_str()).id(id(state.as_str()))).await;
        if state == State::Pending {
            t.claim(1).await;
        }
    }
    delete(&t).await;
    assert_eq!(t.store.queue(&t.queue).await, Err(absent(&t)));
    for state in State::ALL {
        let job = id(state.as_str());
        assert_eq!(t.find(&job).await, Err(no_job(&job)));
        assert_eq!(t.store.list(&t.queue, state, None, None, 10).await, Ok(Page::default()));
    }
    assert_eq!(t.sweep_after(91 * DAY).await, sprag::store::Swept::default());
}

async fn a_deleted_queue_is_not_listed(t: Trial) {
    t.enqueue(t.job()).await;
    delete(&t).await;
    assert!(!t.store.queues().await.expect("queues").contains(&t.queue));
}

async fn a_deleted_queue_hands_over_nothing(t: Trial) {
    t.enqueue(t.job()).await;
    delete(&t).await;
    assert_eq!(t.claim(10).await, []);
    assert!(t.store.queue(&t.queue).await.is_err(), "nor is it made");
}

async fn a_holder_of_a_deleted_job_is_rejected(t: Trial) {
    t.enqueue(t.job().retention(HOUR)).await;
    let held = t.claim_one().await;
    delete(&t).await;
    for verb in Fenced::all() {
        assert_eq!(verb.apply(&t, &held).await, Err(rejected(&held.id)), "{verb:?}");
        assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
    }
}

async fn a_holder_of_a_deleted_job_is_rejected_also_when_its_id_is_back(t: Trial) {
    t.enqueue(t.named("a")).await;
    let old = t.claim_one().await;
    delete(&t).await;
    t.enqueue(t.named("a")).await;
    let new = t.claim_one().await;
    for verb in Fenced::all() {
        assert_eq!(verb.apply(&t, &old).await, Err(rejected(&old.id)), "{verb:?}");
    }
    assert!(new.fence > old.fence);
    assert_eq!(t.complete(&new).await, Ok(()));
}

async fn a_deleted_queue_can_be_made_again(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.cancel(&id("b")).await.expect("cancelled");
    delete(&t).await;
    t.enqueue_named(&["b", "a"]).await;
    assert!(t.store.queues().await.expect("queues").contains(&t.queue));
    let info = t.info().await;
    assert_eq!((info.pending, info.cancelled, info.unfinished), (2, 0, 2));
    assert_eq!(t.claim_ids().await, ["b", "a"]);
}

async fn a_deletion_forgets_all_settings(t: Trial) {
    let settings = [
        Setting::Limit(Some(0)),
        Setting::Paused(true),
        Setting::Retention(State::Cancelled, Some(HOUR)),
        Setting::MaxArchived(Some(0)),
        Setting::CrashLimit(Some(1)),
    ];
    t.store.set(&t.queue, &settings).await.expect("set");
    delete(&t).await;
    let job = t.job_in(State::Cancelled, t.job()).await;
    assert_eq!(t.show(&job).await.evicted_at, Some(t.now().await + 7 * DAY));
    t.job_in(State::Archived, t.job()).await;
    t.job_in(State::Active, t.job()).await;
    let swept = t.vanish().await;
    assert_eq!((swept.evicted, swept.quarantined), (0, 0));
    let info = t.info().await;
    assert_eq!((info.limit, info.paused), (None, false));
}

async fn a_deletion_forgets_all_identities_keys_and_quarantines(t: Trial) {
    let throttle = Unique::key("k").mode(Mode::Throttle { window: DAY });
    t.enqueue(t.named("a").remember(DAY).unique(throttle)).await;
    t.complete(&t.claim_one().await).await.expect("completed");
    let closed = t.job_in(State::Quarantined, t.saying("closed")).await;
    let fingerprint = t.fingerprint(&closed).await;
    t.enqueue(t.job().unique(Unique::key("l"))).await;
    delete(&t).await;
    let other = t.saying("other").id(id("a"));
    t.enqueue(other.unique(Unique::key("k"))).await;
    t.enqueue(t.saying("closed").unique(Unique::key("l"))).await;
    assert_eq!(t.store.quarantines(&t.queue).await, Ok(vec![]));
    let open = Err(StoreError::NotFound(format!("fingerprint {fingerprint}")));
    assert_eq!(t.store.release(&t.queue, &fingerprint).await, open);
}

async fn a_deletion_forgets_the_counters(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    t.job_in(State::Active, t.job()).await;
    t.vanish().await;
    delete(&t).await;
    t.enqueue(t.job()).await;
    let today = t.today().await;
    assert_eq!((today.completed, today.crashed), (0, 0));
    assert_eq!(t.info().await.completed_today, 0);
}

async fn a_deletion_takes_the_token(t: Trial) {
    t.enqueue(t.job()).await;
    delete(&t).await;
    assert!(!t.token().await);
}

async fn a_deletion_leaves_other_queues(t: Trial) {
    let other = t.other_queue().await;
    for t in [&t, &other] {
        t.enqueue(t.named("a")).await;
    }
    delete(&t).await;
    assert_eq!(other.claim_ids().await, ["a"]);
}
