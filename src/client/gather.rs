//! Group commit: enqueues of one queue that come while a call is in flight leave together.
//!
//! Who is alone calls at once. Who comes while that call is in flight waits for its end, and leaves with
//! all who came meanwhile: one round trip, one run of the script, whose fixed part is most of what a
//! single job costs. As in databases that write their log for several transactions at once (DeWitt et
//! al., "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984); here the wait has a
//! bound, so that one call that hangs does not hold up the others. Calls are tasks of their own: a
//! caller that is not polled, or is dropped, holds up nobody.

use super::{enqueue::unsure, meters};
use crate::{
    model::{Envelope, JobId, MAX_BATCH, MAX_BATCH_BYTES, QueueName, StoreError},
    store::{Enqueued, Outcomes, Store},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    task::yield_now,
    time::sleep,
};

/// So many that wait are a good batch: they need not wait for the call in flight. So Redis runs one
/// call while this process reads the answers of another and prepares the next.
const FULL: usize = 32;
/// Calls of a queue that may be in flight.
const MAX_FLIGHTS: usize = 8;
/// A call that takes longer than this holds up nobody.
const HOLDS_FOR: Duration = Duration::from_millis(10);
/// What may wait or be in flight, for all queues together, in KiB. A job counts for one and its
/// payload. Who comes later waits for room.
const ROOM: usize = 64 << 10;

/// Where a client's jobs gather.
#[derive(Debug)]
pub(super) struct Gather {
    queues: Mutex<HashMap<QueueName, Waiting>>,
    room: Arc<Semaphore>,
}

/// One queue's jobs that wait for a call, and its calls in flight.
#[derive(Debug, Default)]
struct Waiting {
    jobs: Vec<Job>,
    flights: usize,
    /// Of these flights those for whose end the jobs wait.
    holding: usize,
}

#[derive(Debug)]
struct Job {
    envelope: Envelope,
    answer: oneshot::Sender<Answer>,
    room: Option<OwnedSemaphorePermit>,
}

/// What a waiting caller is told.
#[derive(Debug)]
enum Answer {
    Outcome(Result<Enqueued, StoreError>),
    /// Whoever was to call for it has ended: it was not sent.
    Unsent(Box<Envelope>),
}

impl Default for Gather {
    fn default() -> Self {
        Self { queues: Mutex::default(), room: Arc::new(Semaphore::new(ROOM)) }
    }
}

impl Gather {
    /// Enqueues one job, with others if they are there. Whoever stops to wait loses the answer; his
    /// job, once it waits here, is sent all the same.
    pub(super) async fn enqueue(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        mut envelope: Envelope,
    ) -> Result<Enqueued, StoreError> {
        let Ok(runtime) = Handle::try_current() else {
            return call_alone(store, envelope).await;
        };
        let id = envelope.id().clone();
        loop {
            let (answer, told) = oneshot::channel();
            let room = self.room_for(&envelope).await;
            if let Some(flight) = self.wait(store, Job { envelope, answer, room }) {
                runtime.spawn(flight.fly());
            }
            envelope = match told.await {
                Ok(Answer::Outcome(outcome)) => return outcome.map_err(|error| unsure(error, &id)),
                Ok(Answer::Unsent(envelope)) => *envelope,
                Err(_) => return Err(never_told(&id)),
            };
        }
    }

    async fn room_for(&self, envelope: &Envelope) -> Option<OwnedSemaphorePermit> {
        let kib = 1 + (envelope.payload().len() >> 10);
        // Never closed.
        self.room.clone().acquire_many_owned(kib as u32).await.ok()
    }

    /// Puts a job with those that wait. Answers the call that is to be made, if it should not wait.
    fn wait(self: &Arc<Self>, store: &Arc<dyn Store>, job: Job) -> Option<Flight> {
        let queue = job.envelope.queue().clone();
        let mut queues = self.lock();
        let waiting = queues.entry(queue.clone()).or_default();
        waiting.jobs.push(job);
        waiting.depart().then(|| {
            let (gather, store) = (self.clone(), store.clone());
            Flight { gather, store, queue, holds: true, ended: false }
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Waiting>> {
        // Each change is whole before anything can panic.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Whether those that wait leave now, in one more call.
    fn depart(&mut self) -> bool {
        let waits = self.jobs.is_empty() || self.holding > 0 && self.jobs.len() < FULL;
        if waits || self.flights == MAX_FLIGHTS {
            return false;
        }
        self.flights += 1;
        self.holding += 1;
        true
    }

    /// The first that fit into one call.
    fn batch(&mut self) -> Vec<Job> {
        let mut bytes = 0;
        let fits = |job: &&Job| {
            bytes += job.envelope.payload().len();
            bytes <= MAX_BATCH_BYTES
        };
        let count = self.jobs.iter().take(MAX_BATCH).take_while(fits).count();
        if count == self.jobs.len() {
            return std::mem::take(&mut self.jobs);
        }
        let later = self.jobs.split_off(count);
        std::mem::replace(&mut self.jobs, later)
    }
}

/// Calls for those who wait, until nobody does.
struct Flight {
    gather: Arc<Gather>,
    store: Arc<dyn Store>,
    queue: QueueName,
    /// Whether others wait for its end.
    holds: bool,
    ended: bool,
}

impl Flight {
    async fn fly(mut self) {
        while let Some(jobs) = self.next() {
            let alone = jobs.len() == 1;
            self.call(jobs).await;
            if !alone {
                // Those who were told have more to send, often.
                yield_now().await;
            }
        }
    }

    /// Those who wait now; None, and this flight has ended, if nobody does.
    fn next(&mut self) -> Option<Vec<Job>> {
        let mut queues = self.gather.lock();
        let waiting = queues.get_mut(&self.queue)?;
        if !self.holds {
            waiting.holding += 1;
            self.holds = true;
        }
        let jobs = waiting.batch();
        if jobs.is_empty() {
            self.ended = true;
            waiting.flights -= 1;
            waiting.holding -= 1;
            if waiting.flights == 0 {
                queues.remove(&self.queue);
            }
            return None;
        }
        Some(jobs)
    }

    /// One call, whose answers are handed out. If it takes long, the next to come need not wait for it.
    async fn call(&mut self, jobs: Vec<Job>) {
        let (envelopes, callers): (Vec<_>, Vec<_>) =
            jobs.into_iter().map(|job| (job.envelope, (job.answer, job.room))).unzip();
        let (store, queue) = (self.store.clone(), self.queue.clone());
        let mut call = store.enqueue(&queue, &envelopes);
        let outcomes = tokio::select! {
            biased;
            outcomes = &mut call => outcomes,
            // Made only if it is waited for: a store in memory answers without a timer.
            () = async { sleep(HOLDS_FOR).await } => {
                self.let_others_pass();
                call.await
            }
        };
        meters::enqueued(&envelopes, &outcomes);
        for ((answer, _room), outcome) in callers.into_iter().zip(each(outcomes, envelopes.len())) {
            // Who stopped to wait does not hear it.
            let _ = answer.send(Answer::Outcome(outcome));
        }
    }

    fn let_others_pass(&mut self) {
        let mut queues = self.gather.lock();
        let Some(waiting) = queues.get_mut(&self.queue) else { return };
        waiting.holding -= 1;
        self.holds = false;
        if waiting.depart() {
            let (gather, store) = (self.gather.clone(), self.store.clone());
            let queue = self.queue.clone();
            tokio::spawn(Self { gather, store, queue, holds: true, ended: false }.fly());
        }
    }
}

/// A flight that is broken off, by a runtime that ends, leaves its callers without an answer, and gives
/// those that wait their jobs back, so that they call by themselves.
impl Drop for Flight {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut queues = self.gather.lock();
        let Some(waiting) = queues.get_mut(&self.queue) else { return };
        waiting.flights -= 1;
        waiting.holding -= usize::from(self.holds);
        let back = std::mem::take(&mut waiting.jobs);
        if waiting.flights == 0 {
            queues.remove(&self.queue);
        }
        drop(queues);
        for job in back {
            let _ = job.answer.send(Answer::Unsent(Box::new(job.envelope)));
        }
    }
}

/// An outcome for each job of a call.
fn each(
    outcomes: Result<Outcomes<Enqueued>, StoreError>,
    jobs: usize,
) -> Box<dyn Iterator<Item = Result<Enqueued, StoreError>> + Send> {
    match outcomes {
        Ok(outcomes) if outcomes.len() == jobs => Box::new(outcomes.into_iter()),
        Ok(_) => {
            let text = "the store answered for fewer jobs than it was given";
            Box::new(std::iter::repeat_n(Err(StoreError::Backend(text.into())), jobs))
        }
        Err(error) => Box::new(std::iter::repeat_n(Err(error), jobs)),
    }
}

fn never_told(id: &JobId) -> StoreError {
    let text = "the runtime that made the call has ended".to_owned();
    unsure(StoreError::Unavailable(text), id)
}

/// Without a runtime there is nothing to share a call by.
async fn call_alone(store: &Arc<dyn Store>, envelope: Envelope) -> Result<Enqueued, StoreError> {
    let job = [envelope];
    let outcomes = store.enqueue(job[0].queue(), &job).await;
    meters::enqueued(&job, &outcomes);
    let outcome = each(outcomes, 1).next();
    outcome
        .unwrap_or_else(|| Err(StoreError::Backend("no outcome".into())))
        .map_err(|error| unsure(error, job[0].id()))
}
