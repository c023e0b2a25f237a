//! Fetching: permits first, then one round trip fills all free slots over the queues; with nothing
//! to do it blocks on the wake tokens.

use super::{
    Context, Shared,
    calls::{Calls, Heard, Told},
    execute::execute,
    running::trusted,
    sources::{Queues, Sources},
};
use crate::{
    model::{MAX_BATCH, QueueName, StoreError},
    store::{Claimed, Held},
};
use futures_util::future::join_all;
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
/// Quiet, it waits so long for claims in flight: they may have been applied, and are repeated; but a
/// queue may be at a node that is away for good.
const LAST_CLAIMS: Duration = Duration::from_secs(10);
/// After so many wake tokens in a row, each of which led to jobs, all queues are asked again.
const HITS: u32 = 4;
/// After a failed wait the worker looks anew after so long.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

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
    claims: Calls<Claims, StoreError>,
    /// Queues that were to be asked while a claim of them was out: jobs may have come after it.
    to_ask_again: HashSet<QueueName>,
    told: Told,
    breadth: Breadth,
}

/// What a claim brought.
struct Claims {
    /// Each job comes with the time until which its lease may be trusted.
    jobs: Vec<(Claimed, Instant)>,
    /// There may be more to claim.
    more: bool,
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

impl Fetcher {
    pub(super) fn new(shared: Arc<Shared>, runs: TaskTracker) -> Self {
        let mut queues = shared.queues.subscribe();
        queues.mark_changed();
        Self {
            slots: Arc::new(Semaphore::new(shared.concurrency)),
            sources: Sources::new(shared.order),
            queues,
            blocked: None,
            claims: Calls::new(),
            to_ask_again: HashSet::new(),
            told: Told::default(),
            breadth: Breadth::default(),
            shared,
            runs,
        }
    }

    /// Claims and runs until the worker is quiet. A claim in flight then is still waited for, and what it
    /// brings goes back.
    pub(super) async fn run(mut self) {
        while let Some(slots) = self.free_slots().await {
            if !self.fill(slots).await {
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
        let last = async {
            while !self.claims.are_over() {
                let heard = self.claims.heard().await;
                self.take(heard, &mut Vec::new());
            }
        };
        if tokio::time::timeout(LAST_CLAIMS, last).await.is_err() {
            tracing::warn!("a claim in flight is given up; its jobs return when their leases end");
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
                heard = self.claims.heard() => {
                    self.take(heard, &mut Vec::new());
                }
            }
        };
        let more = std::iter::from_fn(|| self.slots.clone().try_acquire_owned().ok());
        Some(std::iter::once(first).chain(more).collect())
    }

    /// Claims for these slots: by weight first, then what is left over goes to queues with more. Answers
    /// whether all are taken.
    async fn fill(&mut self, mut slots: Vec<OwnedSemaphorePermit>) -> bool {
        let only = self.breadth.only();
        if self.queues.has_changed().unwrap_or(false) {
            self.sources.replace(&self.queues.borrow_and_update());
        }
        let only = only.and_then(|queue| self.place(&queue));
        let mut open: Vec<usize> = match only {
            Some(woken) => vec![woken],
            None => (0..self.sources.all.len()).collect(),
        };
        // What is out will not tell of jobs that came after it.
        let out = open.iter().map(|source| &self.sources.all[*source].queue);
        self.to_ask_again.extend(out.filter(|queue| self.claims.is_out(queue)).cloned());
        let mut found = HashSet::new();
        loop {
            open.retain(|source| self.claims.is_free(&self.sources.all[*source].queue));
            if slots.is_empty() || open.is_empty() || self.shared.shutdown.is_quiet() {
                break;
            }
            let (begun, mut asked) = (Instant::now(), HashSet::new());
            for (i, share) in self.sources.share_out(&open, slots.len()) {
                asked.insert(self.ask(i, share));
            }
            // Each is worked off as it comes: jobs in hand do not wait, unextended, for a claim that
            // is being repeated.
            let mut empty = HashSet::new();
            while let Some(heard) = self.claims.heard_in_round(begun).await {
                let Taken { queue, jobs, more } = self.take(heard, &mut slots);
                match (more, asked.contains(&queue)) {
                    // An earlier round gave up waiting for it.
                    (true, false) => open.extend(self.place(&queue)),
                    (true, true) => {}
                    (false, _) => drop(empty.insert(queue.clone())),
                }
                if jobs > 0 {
                    found.insert(queue);
                }
            }
            open.retain(|source| !empty.contains(&self.sources.all[*source].queue));
        }
        match only {
            Some(_) => self.breadth.asked_one(!found.is_empty()),
            None => self.breadth.asked_all(found.len()),
        }
        slots.is_empty()
    }

    /// Sends a claim. A queue that was not to be reached is asked for one job: others may have the slots by
    /// the time that it answers.
    fn ask(&mut self, source: usize, share: usize) -> QueueName {
        let queue = self.sources.all[source].queue.clone();
        let share = if self.claims.is_failing(&queue) { 1 } else { share };
        self.to_ask_again.remove(&queue);
        self.claims.make(&queue, claim(self.shared.clone(), queue.clone(), share));
        queue
    }

    fn place(&self, queue: &QueueName) -> Option<usize> {
        self.sources.all.iter().position(|source| source.queue == *queue)
    }

    /// Starts what a claim brought, in these slots as far as they go.
    fn take(
        &mut self,
        heard: Heard<Claims, StoreError>,
        slots: &mut Vec<OwnedSemaphorePermit>,
    ) -> Taken {
        let taken = match heard {
            Heard::Rested(queue) => Taken { queue, jobs: 0, more: true },
            Heard::Answer(queue, Ok(Claims { jobs, more })) => {
                let more = more || self.to_ask_again.remove(&queue);
                let count = jobs.len();
                self.told.forget(&queue);
                self.start(&queue, jobs, slots);
                Taken { queue, jobs: count, more }
            }
            Heard::Answer(queue, Err(error)) => {
                if self.told.is_due(&queue) {
                    tracing::error!(%queue, %error, "claims fail; trying again");
                }
                Taken { queue, jobs: 0, more: false }
            }
        };
        if taken.more {
            // Not only the queue that woke the worker has jobs.
            self.breadth.woken = None;
        }
        taken
    }

    fn start(
        &self,
        queue: &QueueName,
        jobs: Vec<(Claimed, Instant)>,
        slots: &mut Vec<OwnedSemaphorePermit>,
    ) {
        let is_quiet = self.shared.shutdown.is_quiet();
        let mut left = Vec::new();
        for (job, until) in jobs {
            // Those of a late claim come when its slots are others', perhaps.
            let slot = slots.pop().or_else(|| self.slots.clone().try_acquire_owned().ok());
            match slot.filter(|_| !is_quiet) {
                Some(slot) => {
                    let surroundings = self.shared.surroundings.clone();
                    let context = Context::new(job, self.shared.lease, surroundings);
                    self.shared.running.add(&context, until);
                    self.runs.spawn(execute(self.shared.clone(), context, slot));
                }
                None => left.push(held(&job)),
            }
        }
        if !left.is_empty() {
            self.runs.spawn(leave(self.shared.clone(), queue.clone(), left));
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
                heard = self.claims.heard() => {
                    if self.take(heard, &mut Vec::new()).more {
                        return;
                    }
                }
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

/// What came of a claim, or of the rest after one that failed.
struct Taken {
    queue: QueueName,
    jobs: usize,
    /// It is to be asked again.
    more: bool,
}

/// One claim.
async fn claim(shared: Arc<Shared>, queue: QueueName, count: usize) -> Result<Claims, StoreError> {
    let sent = Instant::now();
    let claim =
        shared.store().claim(&queue, &shared.id, count.min(MAX_BATCH), shared.lease).await?;
    shared.hooks.tell_all(&queue, claim.ended);
    let more = claim.more || claim.jobs.len() >= count;
    let until = trusted(sent, shared.lease);
    let jobs: Vec<_> = claim.jobs.into_iter().map(|job| (job, until)).collect();
    let is_late = sent.elapsed() > shared.lease / 3 && !jobs.is_empty();
    let jobs = if is_late { still_held(&shared, &queue, jobs).await } else { jobs };
    Ok(Claims { jobs, more })
}

/// A claim took so long, by its repeats, that nobody here knows how much of the leases is left: they
/// are extended before a handler starts that would be told to stop at once.
async fn still_held(
    shared: &Shared,
    queue: &QueueName,
    jobs: Vec<(Claimed, Instant)>,
) -> Vec<(Claimed, Instant)> {
    let held: Vec<_> = jobs.iter().map(|(job, _)| held(job)).collect();
    let until = trusted(Instant::now(), shared.lease);
    match shared.store().extend(queue, &held, shared.lease).await {
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

/// Puts jobs back that were claimed for slots which are gone, or while the worker became quiet.
async fn leave(shared: Arc<Shared>, queue: QueueName, held: Vec<Held>) {
    tracing::info!(%queue, jobs = held.len(), "claimed with no slot left for them; put back");
    if let Err(error) = shared.store().requeue(&queue, &held).await {
        tracing::error!(%queue, %error, "not put back; they return when their lease ends");
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
