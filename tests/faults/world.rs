//! The state that every case starts from: a job in every place, each with another option.

use crate::rig::{HOUR, LEASE, Rig, queue};
use sprag::{
    Codec, Envelope, JobId, Kind, RedisStore, Store, Unique, When, WorkerId,
    model::{EnvelopeBuilder, Fingerprint},
    store::{Claimed, Complete, Held, Pace, Retry},
};
use std::{collections::BTreeMap, time::Duration};

/// The jobs in a worker's hands, by name.
pub(crate) struct World(BTreeMap<&'static str, Held>);

impl World {
    /// Pending: `first` and `second` in the usual lane, behind the ghost of `gone`; `urgent`.
    /// `keyed` is pending and has the unique key `k`. Scheduled: `later`. Retry: `failed`.
    /// Held: `plain`; `kept` with a retention and a key; `last` on its last attempt; `tried` on its
    /// second. Finished: `done` and `gone` (cancelled).
    pub(crate) async fn build(rig: &Rig, store: &RedisStore) -> Self {
        rig.empty().await;
        let to_hold = [
            job("plain"),
            job("kept").retention(HOUR).unique(Unique::key("held")),
            job("last").max_attempts(1),
            job("tried"),
            job("failed"),
            job("done").retention(HOUR),
        ];
        enqueue(store, to_hold).await;
        let mut held = by_name(claim(store, 6).await);
        settle_some(store, &mut held).await;
        rig.advance(Duration::from_secs(1)).await;
        store.sweep(&queue(), Pace::Now).await.expect("sweep");
        held.extend(by_name(claim(store, 1).await));
        let waiting = [
            job("gone"),
            job("first"),
            job("second"),
            job("urgent").priority(7),
            job("keyed").unique(Unique::key("k")),
            job("later").run_at(When::In(HOUR)),
        ];
        enqueue(store, waiting).await;
        store
            .operate(&queue(), sprag::store::Operation::Cancel, &[id("gone")])
            .await
            .expect("cancel");
        Self(held)
    }

    /// Enqueues a job and claims it, before all others.
    pub(crate) async fn hold(
        &mut self,
        store: &RedisStore,
        name: &'static str,
        job: EnvelopeBuilder,
    ) {
        enqueue(store, [job.priority(9)]).await;
        self.hold_next(store, name).await;
    }

    /// Claims the next job, which has that name.
    pub(crate) async fn hold_next(&mut self, store: &RedisStore, name: &'static str) {
        let job = claim(store, 1).await.remove(0);
        assert_eq!(job.id.as_str(), name);
        self.0.insert(name, held(&job));
    }

    pub(crate) async fn complete(&mut self, store: &RedisStore, name: &str) {
        let done = Complete { held: self.0.remove(name).expect("held"), result: None };
        store.complete(&queue(), &[done]).await.expect("complete").remove(0).expect("completed");
    }

    pub(crate) fn held(&self, name: &str) -> Held {
        self.0[name].clone()
    }

    pub(crate) fn all_held(&self) -> Vec<Held> {
        self.0.values().cloned().collect()
    }
}

async fn settle_some(store: &RedisStore, held: &mut BTreeMap<&'static str, Held>) {
    let mut take = |name| held.remove(name).expect("held");
    let retry = |held, delay| Retry { held, delay, error: "boom".into() };
    let failed = [retry(take("tried"), Duration::from_secs(1)), retry(take("failed"), HOUR)];
    store.retry(&queue(), &failed).await.expect("retry");
    let done = Complete { held: take("done"), result: None };
    store.complete(&queue(), &[done]).await.expect("complete");
}

fn by_name(claimed: Vec<Claimed>) -> BTreeMap<&'static str, Held> {
    let names = ["plain", "kept", "last", "tried", "failed", "done"];
    let entry = |job: Claimed| {
        let name = names.into_iter().find(|name| job.id.as_str() == *name).expect("a known job");
        (name, Held { id: job.id, fence: job.fence })
    };
    claimed.into_iter().map(entry).collect()
}

pub(crate) fn id(name: &str) -> JobId {
    JobId::new(name).expect("id")
}

pub(crate) fn worker() -> WorkerId {
    WorkerId::new("worker:1").expect("worker")
}

pub(crate) fn job(name: &str) -> EnvelopeBuilder {
    let kind = Kind::new("email:welcome").expect("kind");
    Envelope::builder(queue(), kind).id(id(name)).payload(format!("for {name}"), Codec::Raw)
}

/// The fingerprint of a job by that name.
pub(crate) fn fingerprint(name: &str) -> Fingerprint {
    fingerprint_of(&format!("for {name}"))
}

pub(crate) fn fingerprint_of(payload: &str) -> Fingerprint {
    let job = job("any").payload(payload.to_owned(), Codec::Raw);
    job.build().expect("in bounds").fingerprint()
}

pub(crate) fn build(jobs: impl IntoIterator<Item = EnvelopeBuilder>) -> Vec<Envelope> {
    jobs.into_iter().map(|job| job.build().expect("in bounds")).collect()
}

/// Enqueues jobs, all of which must be admitted.
pub(crate) async fn enqueue(store: &RedisStore, jobs: impl IntoIterator<Item = EnvelopeBuilder>) {
    let outcomes = store.enqueue(&queue(), &build(jobs)).await.expect("enqueue");
    for outcome in outcomes {
        assert!(!outcome.expect("admitted").existing);
    }
}

/// Claims up to `count` jobs.
pub(crate) async fn claim(store: &RedisStore, count: usize) -> Vec<Claimed> {
    store.claim(&queue(), &worker(), count, LEASE).await.expect("claim").jobs
}

pub(crate) fn held(job: &Claimed) -> Held {
    Held { id: job.id.clone(), fence: job.fence }
}

pub(crate) fn names(jobs: &[Claimed]) -> Vec<&str> {
    jobs.iter().map(|job| job.id.as_str()).collect()
}
