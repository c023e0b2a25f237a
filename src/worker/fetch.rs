//! Fetching: permits first, then one round trip fills all free slots over the queues; with nothing
//! to do it blocks on the wake tokens.

use super::{
    Context, Shared,
    execute::execute,
    running::trusted,
    sources::{Queues, Sources},
};
use crate::{
    model::{MAX_BATCH, QueueName, StoreError},
    store::{Claimed, Held},
};
use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::task::TaskTracker;

/// A block on the wake tokens ends by then: what is said of queues and connections is looked at anew.
/// It need not end sooner: a token that is lost with its taker costs no more than the time to the
/// next sweep, which sees what is claimable. An idle worker sends the fewer commands for it.
const BLOCK: Duration = Duration::from_secs(5);
/// At the worker's end its wake tokens are put back within so long, or not at all.
const PUT_BACK: Duration = Duration::from_millis(500);
/// After so many wake tokens in a row, each of which led to jobs, all queues are asked again.
const HITS: u32 = 4;
/// After a failed round the worker waits so long: the store has repeated the call by itself before.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// After more of them in a row twice as long each time, up to this: what repeats do not mend (a wrong
/// password) fails at once, and is logged each time.
const AFTER_FAILURES: Duration = Duration::from_secs(2);

type Blocked = JoinHandle<Result<Option<QueueName>, StoreError>>;

/// How a wait ended.
enum Woken {
    /// With a token of this queue.
    Token(QueueName),
    TimedOut,
    Failed,
}

pub(super) struct Fetcher {
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
    runs: TaskTracker,
    queues: watch::Receiver<Queues>,
    sources: Sources,
    /// A wait in flight. It is never dropped: it takes a token, and whoever takes one must look.
    blocked: Option<Blocked>,
    breadth: Breadth,
}

/// Whether a round asks all queues, or only the one whose token woke the worker: of a thousand queues
/// that were just emptied each may have a token left.
#[derive(Debug, Default)]
struct Breadth {
    woken: Option<QueueName>,
    /// The last round over all found jobs in one queue at most.
    all_quiet: bool,
    hits: u32,
}

impl Breadth {
    /// The queue that is asked alone, if one is.
    fn only(&mut self) -> Option<QueueName> {
        self.woken.take().filter(|_| self.all_quiet)
    }

    fn asked_all(&mut self, found: usize) {
        (self.all_quiet, self.hits) = (found <= 1, 0);
    }

    fn asked_one(&mut self, found: bool) {
        self.hits = if found { self.hits + 1 } else { 0 };
        self.all_quiet = self.hits < HITS;
    }
}

/// What a round of claims came to.
enum Round {
    /// Every queue that was asked had less than it was asked for.
    Empty,
    /// All slots are taken.
    Full,
    Failed,
}

impl Fetcher {
    pub(super) fn new(shared: Arc<Shared>, runs: TaskTracker) -> Self {
        let mut queues = shared.queues.subscribe();
        queues.mark_changed();
        Self {
            slots: Arc::new(Semaphore::new(shared.concurrency)),
            sources: Sources::new(shared.order),
            queues,
            blocked: None,
            breadth: Breadth::default(),
            shared,
            runs,
        }
    }

    /// Claims and runs until the worker is quiet. A claim in flight then is still answered, and what
    /// it brings goes back.
    pub(super) async fn run(mut self) {
        let mut after_failure = AFTER_FAILURE;
        while let Some(slots) = self.free_slots().await {
            let round = self.fill(slots).await;
            if let Round::Failed = round {
                tokio::select! {
                    () = self.shared.shutdown.quieted() => {}
                    () = tokio::time::sleep(after_failure) => {}
                }
                after_failure = (after_failure * 2).min(AFTER_FAILURES);
                continue;
            }
            after_failure = AFTER_FAILURE;
            if let Round::Empty = round {
                self.until_woken().await;
            }
        }
        if let Some(blocked) = self.blocked.take() {
            // Ended at once. A token that it may just have taken is another worker's: it is left
            // again, if that can be done in a moment; else the next sweep sees its jobs.
            blocked.abort();
            let store = self.shared.store();
            let wakes = self.sources.all.iter().map(|source| store.wake(&source.queue));
            let left = tokio::time::timeout(PUT_BACK, join_all(wakes)).await;
            if !left.is_ok_and(|left| left.iter().all(Result::is_ok)) {
                tracing::info!("wake tokens not put back; the next sweep of another worker looks");
            }
        }
    }

    /// Waits for a free slot and takes all that are free; none when the worker is quiet. A token that
    /// comes while all are taken goes back at once.
    async fn free_slots(&mut self) -> Option<Vec<OwnedSemaphorePermit>> {
        let first = loop {
            tokio::select! {
                biased;
                () = self.shared.shutdown.quieted() => return None,
                slot = self.slots.clone().acquire_owned() => break slot.ok()?,
                woken = woken(&mut self.blocked) => put_back(&self.shared, woken),
            }
        };
        let more = std::iter::from_fn(|| self.slots.clone().try_acquire_owned().ok());
        Some(std::iter::once(first).chain(more).collect())
    }

    /// Claims for these slots: by weight first, then what is left over goes to queues with more.
    async fn fill(&mut self, mut slots: Vec<OwnedSemaphorePermit>) -> Round {
        let only = self.breadth.only();
        if self.queues.has_changed().unwrap_or(false) {
            self.sources.replace(&self.queues.borrow_and_update());
        }
        let is_only = |name| self.sources.all.iter().position(|source| source.queue == name);
        let only = only.and_then(is_only);
        let mut open: Vec<usize> = match only {
            Some(woken) => vec![woken],
            None => (0..self.sources.all.len()).collect(),
        };
        let (mut failed, mut found) = (false, HashSet::new());
        while !slots.is_empty() && !open.is_empty() {
            let asked = self.sources.share_out(&open, slots.len());
            let claims = asked.into_iter().map(|(i, share)| {
                let claim = self.claim(&self.sources.all[i].queue, share);
                async move { (i, share, claim.await) }
            });
            // Each is worked off as it comes: jobs in hand do not wait, unextended, for a claim that
            // is being repeated.
            let mut claims: FuturesUnordered<_> = claims.collect();
            while let Some((i, share, claim)) = claims.next().await {
                let (jobs, more) = claim.unwrap_or_else(|()| {
                    failed = true;
                    (Vec::new(), false)
                });
                if !jobs.is_empty() {
                    found.insert(i);
                }
                if jobs.len() < share && !more {
                    open.retain(|source| *source != i);
                }
                let taken = slots.split_off(slots.len().saturating_sub(jobs.len()));
                self.start(&self.sources.all[i].queue, jobs, taken).await;
            }
            if self.shared.shutdown.is_quiet() {
                break;
            }
        }
        match only {
            Some(_) => self.breadth.asked_one(!found.is_empty()),
            None => self.breadth.asked_all(found.len()),
        }
        match (failed, slots.is_empty()) {
            (true, _) => Round::Failed,
            (false, true) => Round::Full,
            (false, false) => Round::Empty,
        }
    }

    /// One claim. Each job comes with the time until which its lease may be trusted.
    async fn claim(
        &self,
        queue: &QueueName,
        count: usize,
    ) -> Result<(Vec<(Claimed, Instant)>, bool), ()> {
        let Shared { id, lease, .. } = &*self.shared;
        let sent = Instant::now();
        match self.shared.store().claim(queue, id, count.min(MAX_BATCH), *lease).await {
            Ok(claim) => {
                self.shared.hooks.tell_all(queue, claim.ended);
                let until = trusted(sent, *lease);
                let jobs: Vec<_> = claim.jobs.into_iter().map(|job| (job, until)).collect();
                let is_late = sent.elapsed() > *lease / 3 && !jobs.is_empty();
                let jobs = if is_late { self.still_held(queue, jobs).await } else { jobs };
                Ok((jobs, claim.more))
            }
            Err(error) => {
                tracing::error!(%queue, %error, "claim failed; trying again");
                Err(())
            }
        }
    }

    /// A claim took so long, by its repeats, that nobody here knows how much of the leases is left:
    /// they are extended before a handler starts that would be told to stop at once.
    async fn still_held(
        &self,
        queue: &QueueName,
        jobs: Vec<(Claimed, Instant)>,
    ) -> Vec<(Claimed, Instant)> {
        let held: Vec<_> = jobs.iter().map(|(job, _)| held(job)).collect();
        let until = trusted(Instant::now(), self.shared.lease);
        match self.shared.store().extend(queue, &held, self.shared.lease).await {
            Ok(outcomes) => {
                let jobs = jobs.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
                jobs.map(|((job, _), _)| (job, until)).collect()
            }
            Err(error) => {
                tracing::warn!(%queue, jobs = jobs.len(), %error, "claimed late and not extended");
                jobs
            }
        }
    }

    async fn start(
        &self,
        queue: &QueueName,
        jobs: Vec<(Claimed, Instant)>,
        slots: Vec<OwnedSemaphorePermit>,
    ) {
        if self.shared.shutdown.is_quiet() && !jobs.is_empty() {
            let held: Vec<_> = jobs.iter().map(|(job, _)| held(job)).collect();
            tracing::info!(%queue, jobs = held.len(), "claimed while becoming quiet; put back");
            if let Err(error) = self.shared.store().requeue(queue, &held).await {
                tracing::error!(%queue, %error, "not put back; they return when their lease ends");
            }
            return;
        }
        for ((job, until), slot) in jobs.into_iter().zip(slots) {
            let context = Context::new(job, self.shared.lease, self.shared.surroundings.clone());
            self.shared.running.add(&context, until);
            self.runs.spawn(execute(self.shared.clone(), context, slot));
        }
    }

    /// Blocks until there may be something to claim. Every enqueue before the claim that found
    /// nothing has left a token that is still there, so nothing is missed in between.
    async fn until_woken(&mut self) {
        loop {
            self.block();
            tokio::select! {
                () = self.shared.shutdown.quieted() => return,
                // The sweep saw something claimable that no token told of.
                () = self.shared.look.notified() => return,
                woken = woken(&mut self.blocked) => match woken {
                    Woken::Token(queue) => {
                        self.sources.woken(&queue);
                        self.breadth.woken = Some(queue);
                        // It may also mean that something is due sooner than the sweep knows.
                        self.shared.sweep_soon.notify_one();
                        return;
                    }
                    // The sweep looks by itself, and more often.
                    Woken::TimedOut => {}
                    // After a reconnect, claim first: tokens may have gone with the connection.
                    Woken::Failed => return tokio::time::sleep(AFTER_FAILURE).await,
                },
            }
        }
    }

    fn block(&mut self) {
        if self.blocked.is_none() && !self.sources.all.is_empty() {
            let shared = self.shared.clone();
            let queues = self.sources.by_turns();
            self.blocked =
                Some(tokio::spawn(async move { shared.store().wait(&queues, BLOCK).await }));
        }
    }
}

/// The end of the wait in flight; never, if there is none. Safe to drop: the wait goes on.
async fn woken(blocked: &mut Option<Blocked>) -> Woken {
    let Some(wait) = blocked.as_mut() else { return std::future::pending().await };
    let answer = wait.await;
    *blocked = None;
    match answer {
        Ok(Ok(Some(queue))) => Woken::Token(queue),
        Ok(Ok(None)) => Woken::TimedOut,
        Ok(Err(error)) => {
            tracing::debug!(%error, "wait failed; looking again");
            Woken::Failed
        }
        Err(error) => {
            tracing::error!(%error, "wait ended by itself; looking again");
            Woken::Failed
        }
    }
}

/// A token that this worker cannot use goes back, for another one. In the background: the worker
/// has jobs to see to.
fn put_back(shared: &Arc<Shared>, woken: Woken) {
    if let Woken::Token(queue) = woken {
        let shared = shared.clone();
        tokio::spawn(async move {
            if let Err(error) = shared.store().wake(&queue).await {
                tracing::warn!(%queue, %error, "wake token lost; the next sweep sees its jobs");
            }
        });
    }
}

fn held(job: &Claimed) -> Held {
    Held { id: job.id.clone(), fence: job.fence }
}
