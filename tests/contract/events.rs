//! What those who listen are told. A case that expects silence ends with something that is told.

use crate::{support::PATIENCE, trial::*};
use sprag::{
    Fence, JobId, State, StoreError, When,
    store::{Channel, Complete, Event, Events, Operation},
};

cases! {
    a_job_taken_out_of_its_holder_s_hands_is_told_with_its_fence,
    stopping_a_waiting_job_supersedes_nothing,
    an_end_is_told_only_while_somebody_watches,
    a_shorter_watch_does_not_end_a_longer_one,
    watching_makes_no_queue,
    a_watch_has_bounds,
    every_way_to_complete_is_told,
    every_way_to_fail_for_good_is_told,
    every_operator_s_end_is_told,
    an_end_by_deadline_is_told,
    an_end_by_quarantine_is_told,
    what_is_no_end_is_not_told,
    a_batch_tells_of_each_job_once,
    many_ends_are_all_told,
    all_who_listen_are_told_the_same,
    the_store_apart_is_the_same_store,
}

/// The next thing that is told.
async fn told(events: &mut Events) -> Event {
    let next = tokio::time::timeout(PATIENCE, events.next()).await.expect("something is told");
    next.expect("the subscription goes on")
}

impl Trial {
    async fn listen(&self, channel: Channel) -> Events {
        self.store.listen(channel).await.expect("listens")
    }

    /// Listens to ends, and has them told for an hour.
    async fn watch_ends(&self) -> Events {
        let events = self.listen(Channel::Done).await;
        self.store.watch(&self.queue, HOUR).await.expect("watches");
        events
    }

    fn ended(&self, id: &JobId, state: Option<State>) -> Event {
        Event::Ended { queue: self.queue.clone(), id: id.clone(), state }
    }

    fn superseded(&self, id: &JobId, fence: Fence) -> Event {
        Event::Superseded { queue: self.queue.clone(), id: id.clone(), fence }
    }

    /// Nothing was told before the end of another job.
    async fn nothing_was_told(&self, events: &mut Events) {
        let id = self.enqueue(self.saying("the end of it").priority(9)).await;
        let held = self.claim_one().await;
        assert_eq!(held.id, id);
        self.complete(&held).await.expect("completed");
        assert_eq!(told(events).await, self.ended(&id, Some(State::Completed)));
    }
}

async fn a_job_taken_out_of_its_holder_s_hands_is_told_with_its_fence(t: Trial) {
    let mut events = t.listen(Channel::Control).await;
    for operation in [Operation::Cancel, Operation::Archive] {
        t.enqueue(t.job()).await;
        let held = t.claim_one().await;
        t.operate(operation, &held.id).await.expect("stopped");
        assert_eq!(told(&mut events).await, t.superseded(&held.id, held.fence));
    }
}

async fn stopping_a_waiting_job_supersedes_nothing(t: Trial) {
    let mut events = t.listen(Channel::Control).await;
    for state in [State::Scheduled, State::Retry] {
        let id = t.job_in(state, t.job()).await;
        t.cancel(&id).await.expect("cancelled");
    }
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.cancel(&held.id).await.expect("cancelled");
    t.cancel(&held.id).await.expect("unchanged");
    assert_eq!(told(&mut events).await, t.superseded(&held.id, held.fence));
    t.job_in(State::Pending, t.named("other")).await;
    let other = t.claim_one().await;
    t.cancel(&other.id).await.expect("cancelled");
    assert_eq!(told(&mut events).await, t.superseded(&other.id, other.fence));
}

async fn an_end_is_told_only_while_somebody_watches(t: Trial) {
    let mut events = t.listen(Channel::Done).await;
    t.job_in(State::Completed, t.job()).await;
    t.store.watch(&t.queue, secs(60)).await.expect("watches");
    let id = t.job_in(State::Completed, t.job()).await;
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Completed)));
    t.advance(secs(60)).await;
    t.job_in(State::Completed, t.job()).await;
    t.job_in(State::Archived, t.job()).await;
    let _more = t.watch_ends().await;
    t.nothing_was_told(&mut events).await;
}

async fn a_shorter_watch_does_not_end_a_longer_one(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let mut events = t.watch_ends().await;
    t.store.watch(&t.queue, ms(1)).await.expect("watches");
    t.advance(secs(60)).await;
    t.nothing_was_told(&mut events).await;
}

async fn watching_makes_no_queue(t: Trial) {
    let mut events = t.watch_ends().await;
    assert!(matches!(t.store.queue(&t.queue).await, Err(StoreError::NotFound(_))));
    t.job_in(State::Completed, t.job()).await;
    t.store.watch(&t.queue, HOUR).await.expect("watches");
    t.nothing_was_told(&mut events).await;
}

async fn a_watch_has_bounds(t: Trial) {
    for for_ in [secs(0), std::time::Duration::from_micros(1_500)] {
        let watched = t.store.watch(&t.queue, for_).await;
        assert!(matches!(watched, Err(StoreError::Invalid(_))), "{watched:?}");
    }
}

async fn every_way_to_complete_is_told(t: Trial) {
    t.job_in(State::Completed, t.job()).await;
    let mut events = t.watch_ends().await;
    for retention in [None, Some(HOUR)] {
        let job = retention.map_or(t.job(), |kept| t.job().retention(kept));
        let id = t.enqueue(job).await;
        let held = t.claim_one().await;
        t.complete_with(&held, Some(b"1".to_vec())).await.expect("completed");
        assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Completed)));
    }
}

async fn every_way_to_fail_for_good_is_told(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let mut events = t.watch_ends().await;
    let late = t.job().deadline(When::In(secs(10)));
    for job in [t.job().max_attempts(1), late] {
        let id = t.enqueue(job).await;
        let held = t.claim_one().await;
        assert_eq!(t.retry(&held, secs(20)).await, Ok(State::Archived));
        assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Archived)));
    }
    let id = t.job_in(State::Archived, t.job()).await;
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Archived)));
}

async fn every_operator_s_end_is_told(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let mut events = t.watch_ends().await;
    let ends = [
        (Operation::Cancel, Some(State::Cancelled)),
        (Operation::Archive, Some(State::Archived)),
        (Operation::Delete, None),
    ];
    for (operation, end) in ends {
        for state in [State::Scheduled, State::Retry, State::Active, State::Pending] {
            if (operation, state) == (Operation::Delete, State::Active) {
                continue;
            }
            let id = t.job_in(state, t.job()).await;
            t.operate(operation, &id).await.expect("changed");
            assert_eq!(told(&mut events).await, t.ended(&id, end), "{operation:?} {state}");
        }
    }
}

async fn an_end_by_deadline_is_told(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let mut events = t.watch_ends().await;
    let short = || t.job().deadline(When::In(LEASE));
    let id = t.enqueue(short()).await;
    t.sweep_after(LEASE).await;
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Archived)), "by a sweep");
    let id = t.enqueue(short()).await;
    t.advance(LEASE).await;
    assert_eq!(t.claim(1).await, []);
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Archived)), "by a claim");
    let id = t.enqueue(short()).await;
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Archived)), "by a reclaim");
}

async fn an_end_by_quarantine_is_told(t: Trial) {
    t.job_in(State::Scheduled, t.job()).await;
    let mut events = t.watch_ends().await;
    let id = t.job_in(State::Quarantined, t.saying("met by a claim")).await;
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Quarantined)));
    t.set(sprag::store::Setting::CrashLimit(Some(1))).await;
    let id = t.enqueue(t.saying("kills")).await;
    t.claim_one().await;
    t.vanish().await;
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Quarantined)));
}

async fn what_is_no_end_is_not_told(t: Trial) {
    let finished = t.job_in(State::Completed, t.job()).await;
    let cancelled = t.job_in(State::Cancelled, t.job()).await;
    let bad = t.job_in(State::Quarantined, t.saying("bad")).await;
    let mut events = t.watch_ends().await;
    t.operate(Operation::Delete, &finished).await.expect("deleted");
    t.operate(Operation::Rerun, &cancelled).await.expect("rerun");
    t.release(&t.fingerprint(&bad).await).await;
    for job in t.claim(2).await {
        t.requeue(&held(&job)).await.expect("requeued");
    }
    let jobs = t.claim(2).await;
    t.snooze(&held(&jobs[0]), secs(1)).await.expect("snoozed");
    t.retry(&held(&jobs[1]), secs(1)).await.expect("retried");
    assert!(t.complete(&held(&jobs[0])).await.is_err());
    t.enqueue(t.job()).await;
    t.claim_one().await;
    assert_eq!(t.vanish().await.reclaimed, 1);
    t.claim(10).await;
    t.nothing_was_told(&mut events).await;
}

async fn a_batch_tells_of_each_job_once(t: Trial) {
    t.offer_all(&t.jobs(3)).await;
    let mut events = t.watch_ends().await;
    let claimed = t.claim(3).await;
    let mut done: Vec<_> =
        claimed.iter().map(|job| Complete { held: held(job), result: None }).collect();
    done.push(done[0].clone());
    t.store.complete(&t.queue, &done).await.expect("complete");
    for job in &claimed {
        assert_eq!(told(&mut events).await, t.ended(&job.id, Some(State::Completed)));
    }
    t.nothing_was_told(&mut events).await;
}

async fn many_ends_are_all_told(t: Trial) {
    t.offer_all(&t.jobs(1_000)).await;
    let mut events = t.watch_ends().await;
    let claimed = t.claim(1_000).await;
    let done: Vec<_> =
        claimed.iter().map(|job| Complete { held: held(job), result: None }).collect();
    t.store.complete(&t.queue, &done).await.expect("complete");
    for job in &claimed {
        assert_eq!(told(&mut events).await, t.ended(&job.id, Some(State::Completed)));
    }
}

async fn all_who_listen_are_told_the_same(t: Trial) {
    let other = t.other_queue().await;
    t.job_in(State::Scheduled, t.job()).await;
    let (mut first, mut second) = (t.watch_ends().await, t.listen(Channel::Done).await);
    drop(t.listen(Channel::Done).await);
    let mut control = t.listen(Channel::Control).await;
    let unwatched = other.job_in(State::Archived, other.job()).await;
    assert_eq!(other.state(&unwatched).await, State::Archived);
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    t.cancel(&held.id).await.expect("cancelled");
    for events in [&mut first, &mut second] {
        assert_eq!(told(events).await, t.ended(&held.id, Some(State::Cancelled)));
    }
    assert_eq!(told(&mut control).await, t.superseded(&held.id, held.fence), "and nothing else");
}

async fn the_store_apart_is_the_same_store(t: Trial) {
    let apart = t.apart();
    let id = apart.enqueue(t.job()).await;
    let mut events = apart.watch_ends().await;
    let held = t.claim_one().await;
    assert_eq!(held.id, id);
    apart.complete(&held).await.expect("completed");
    assert_eq!(told(&mut events).await, t.ended(&id, Some(State::Completed)));
}
