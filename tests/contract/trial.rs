//! What a case holds: short verbs for one job, which expect the whole call to succeed.

use crate::{backend::Backend, checked::Checked};
use sprag::{
    Codec, Enqueued, Envelope, JobId, Kind, QueueName, State, Store, StoreError, Timestamp, When,
    WorkerId,
    model::EnvelopeBuilder,
    store::{Archive, ArchiveReason, Claimed, Complete, Held, Outcomes, Retry, Snooze, Swept},
};
use std::{sync::Arc, time::Duration};

pub(crate) use crate::{steer::Fenced, words::*};

#[derive(Clone)]
pub(crate) struct Trial {
    backend: Arc<dyn Backend>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) queue: QueueName,
    pub(crate) worker: WorkerId,
}

impl Trial {
    pub(crate) async fn on<B: Backend + 'static>() -> Self {
        let backend: Arc<dyn Backend> = Arc::new(B::start().await);
        let store = Arc::new(Checked { store: backend.store(), backend: backend.clone() });
        let (queue, worker) = (backend.queue().await, worker("worker:1"));
        Self { backend, store, queue, worker }
    }

    /// The same store, seen from another queue.
    pub(crate) async fn other_queue(&self) -> Self {
        Self { queue: self.backend.queue().await, ..self.clone() }
    }

    /// The same queue, seen by another worker.
    pub(crate) fn other_worker(&self) -> Self {
        Self { worker: worker("worker:2"), ..self.clone() }
    }

    /// The same queue, over connections of its own.
    pub(crate) fn apart(&self) -> Self {
        Self { store: self.store.apart(), ..self.clone() }
    }

    pub(crate) async fn advance(&self, by: Duration) {
        self.backend.advance(by).await;
    }

    /// The queue is lost from the list of queues.
    pub(crate) async fn lose_from_list(&self) {
        self.backend.lose_from_list(&self.queue).await;
    }

    /// Nothing is heard of any worker for so long.
    pub(crate) async fn age_beats(&self, by: Duration) {
        self.backend.age_beats(by).await;
    }

    pub(crate) async fn now(&self) -> Timestamp {
        self.backend.now().await
    }
}

/// Making jobs.
impl Trial {
    pub(crate) fn job(&self) -> EnvelopeBuilder {
        let kind = Kind::new("email:welcome").expect("kind");
        Envelope::builder(self.queue.clone(), kind).payload("hello", Codec::Raw)
    }

    pub(crate) fn named(&self, name: &str) -> EnvelopeBuilder {
        self.job().id(id(name))
    }

    /// A job of another content.
    pub(crate) fn saying(&self, payload: &str) -> EnvelopeBuilder {
        self.job().payload(payload.to_owned(), Codec::Raw)
    }

    pub(crate) fn jobs(&self, count: usize) -> Vec<Envelope> {
        (0..count).map(|_| build(self.job())).collect()
    }

    pub(crate) async fn offer(&self, job: EnvelopeBuilder) -> Result<Enqueued, StoreError> {
        only(self.offer_all(&[build(job)]).await)
    }

    pub(crate) async fn offer_all(&self, jobs: &[Envelope]) -> Outcomes<Enqueued> {
        self.store.enqueue(&self.queue, jobs).await.expect("enqueue")
    }

    pub(crate) async fn enqueue(&self, job: EnvelopeBuilder) -> JobId {
        let enqueued = self.offer(job).await.expect("admitted");
        assert!(!enqueued.existing, "{enqueued:?}");
        enqueued.id
    }

    pub(crate) async fn enqueue_named(&self, names: &[&str]) {
        for name in names {
            self.enqueue(self.named(name)).await;
        }
    }

    /// Makes a job and brings it into a state. Nothing else may be pending. Of a quarantined job
    /// the fingerprint stays closed.
    pub(crate) async fn job_in(&self, state: State, job: EnvelopeBuilder) -> JobId {
        let id = self
            .enqueue(match state {
                State::Scheduled => job.run_at(When::In(HOUR)),
                State::Completed => job.retention(HOUR),
                _ => job,
            })
            .await;
        match state {
            State::Scheduled | State::Pending => {}
            State::Cancelled => drop(self.cancel(&id).await.expect("cancelled")),
            State::Quarantined => {
                let fingerprint = self.fingerprint(&id).await;
                self.quarantine(&fingerprint).await;
                assert_eq!(self.claim(1).await, [], "it is met by a claim");
            }
            _ => {
                let held = self.claim_one().await;
                assert_eq!(held.id, id, "something else was pending");
                match state {
                    State::Retry => drop(self.retry(&held, HOUR).await.expect("retried")),
                    State::Completed => self.complete(&held).await.expect("completed"),
                    State::Archived => self.archive(&held).await.expect("archived"),
                    _ => {}
                }
            }
        }
        assert_eq!(self.state(&id).await, state);
        id
    }
}

/// Holding jobs.
impl Trial {
    /// Claims up to `count` jobs, as often as the store says that there is more.
    pub(crate) async fn claim(&self, count: usize) -> Vec<Claimed> {
        let mut jobs = Vec::new();
        loop {
            let left = count - jobs.len();
            let claim = self.store.claim(&self.queue, &self.worker, left, LEASE).await;
            let claim = claim.expect("claim");
            jobs.extend(claim.jobs);
            if !claim.more || jobs.len() == count {
                return jobs;
            }
        }
    }

    pub(crate) async fn claim_one(&self) -> Held {
        let mut jobs = self.claim(1).await;
        held(&jobs.pop().expect("something to claim"))
    }

    /// The ids that are claimed, in order, until nothing is left.
    pub(crate) async fn claim_ids(&self) -> Vec<String> {
        self.claim(1_000).await.iter().map(|job| job.id.to_string()).collect()
    }

    pub(crate) async fn extend(&self, held: &Held, lease: Duration) -> Result<(), StoreError> {
        only(
            self.store
                .extend(&self.queue, std::slice::from_ref(held), lease)
                .await
                .expect("extend"),
        )
    }

    pub(crate) async fn complete(&self, held: &Held) -> Result<(), StoreError> {
        self.complete_with(held, None).await
    }

    pub(crate) async fn complete_with(
        &self,
        held: &Held,
        result: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let done = Complete { held: held.clone(), result: result.map(Into::into) };
        only(self.store.complete(&self.queue, &[done]).await.expect("complete"))
    }

    pub(crate) async fn retry(&self, held: &Held, delay: Duration) -> Result<State, StoreError> {
        self.retry_with(held, delay, "boom").await
    }

    pub(crate) async fn retry_with(
        &self,
        held: &Held,
        delay: Duration,
        error: &str,
    ) -> Result<State, StoreError> {
        let failed = Retry { held: held.clone(), delay, error: error.to_owned() };
        only(self.store.retry(&self.queue, &[failed]).await.expect("retry"))
    }

    pub(crate) async fn archive(&self, held: &Held) -> Result<(), StoreError> {
        self.archive_with(held, ArchiveReason::Discarded, None).await
    }

    pub(crate) async fn archive_with(
        &self,
        held: &Held,
        reason: ArchiveReason,
        error: Option<&str>,
    ) -> Result<(), StoreError> {
        let given_up = Archive { held: held.clone(), reason, error: error.map(str::to_owned) };
        only(self.store.archive(&self.queue, &[given_up]).await.expect("archive"))
    }

    pub(crate) async fn snooze(&self, held: &Held, delay: Duration) -> Result<(), StoreError> {
        let later = Snooze { held: held.clone(), delay };
        only(self.store.snooze(&self.queue, &[later]).await.expect("snooze"))
    }

    pub(crate) async fn requeue(&self, held: &Held) -> Result<(), StoreError> {
        only(self.store.requeue(&self.queue, std::slice::from_ref(held)).await.expect("requeue"))
    }

    /// The holder vanishes: its lease runs out and is reclaimed.
    pub(crate) async fn vanish(&self) -> Swept {
        self.advance(LEASE).await;
        self.sweep().await
    }
}
