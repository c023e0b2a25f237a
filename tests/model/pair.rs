//! Two stores, and a step on both.

use crate::{
    jobs::{Job, fingerprint, id, ids, ms},
    steps::{Call, Lost, Pick, Set, Step},
    support::{ANY_SCRIPT, Ground, Proxy, key_in},
};
use redis::AsyncCommands;
use sprag::{
    Envelope, Fence, JobId, ManualClock, MemoryStore, QueueName, RedisStore, Store, StoreError,
    Timestamp, WorkerId,
    store::{
        Archive, ArchiveReason, Claim, Complete, Held, Operation, Pace, Retry, Setting, Snooze,
    },
};
use std::{fmt::Debug, sync::Arc};

/// In the morning of a day, so that no short sequence begins with a change of day.
const START: Timestamp = Timestamp::from_millis(1_764_500_000_000);
/// Every so many steps everything is compared; after the others, what is counted.
const LOOK_EVERY: usize = 6;

/// What all sequences share.
pub(crate) struct Rig {
    ground: Arc<Ground>,
    direct: RedisStore,
    broken: Option<Broken>,
}

/// The store behind a proxy that loses answers. There is none in front of a cluster, of sentinels
/// and of TLS: there no answer is lost.
#[derive(Clone)]
struct Broken {
    proxy: Arc<Proxy>,
    store: RedisStore,
}

/// Both stores with the same queue.
pub(crate) struct Pair {
    pub(crate) memory: Arc<MemoryStore>,
    pub(crate) store: RedisStore,
    pub(crate) queue: QueueName,
    pub(crate) ground: Arc<Ground>,
    broken: Option<Broken>,
    clock: ManualClock,
    /// Every job that was ever handed over.
    once: Vec<Held>,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let ground = Arc::new(Ground::start().await);
        let direct = store(&ground, &ground.url);
        let broken = match ground.address() {
            Some(address) => {
                let proxy = Arc::new(Proxy::to(address).await);
                Some(Broken { store: store(&ground, &proxy.url()), proxy })
            }
            None => None,
        };
        Self { ground, direct, broken }
    }

    /// Does the steps one after another, on a queue that nobody else uses.
    pub(crate) async fn run(&self, steps: &[Step]) -> Result<(), String> {
        let clock = ManualClock::at(START);
        let queue = QueueName::new(format!("q{:x}", fastrand::u64(..))).expect("queue");
        let mut pair = Pair {
            memory: Arc::new(MemoryStore::with_clock(clock.clone())),
            store: self.direct.clone(),
            queue,
            ground: self.ground.clone(),
            broken: self.broken.clone(),
            clock,
            once: Vec::new(),
        };
        pair.set_clock().await;
        let result = self.walk(&mut pair, steps).await;
        pair.forget().await;
        result
    }

    async fn walk(&self, pair: &mut Pair, steps: &[Step]) -> Result<(), String> {
        for (number, step) in steps.iter().enumerate() {
            if step.call == Call::NewStore {
                pair.store = store(&self.ground, &self.ground.url);
            }
            let last = number + 1 == steps.len();
            let done = match pair.step(step).await {
                Ok(()) if last || number % LOOK_EVERY == 0 => pair.look().await,
                Ok(()) => pair.glance().await,
                differs => differs,
            };
            done.map_err(|why| format!("step {number}, {:?}:\n{why}", step.call))?;
        }
        Ok(())
    }
}

fn store(ground: &Ground, url: &str) -> RedisStore {
    let store = RedisStore::builder(url).namespace(ground.namespace.clone());
    store.virtual_clock().build().expect("store")
}

/// Both stores said the same.
pub(crate) fn same<T: Debug + PartialEq>(what: &str, memory: &T, redis: &T) -> Result<(), String> {
    if memory == redis {
        return Ok(());
    }
    Err(format!("{what}\n  memory {memory:?}\n  redis  {redis:?}"))
}

/// A step on both stores.
macro_rules! both {
    ($pair:ident, $lost:expr, $store:ident => $call:expr) => {{
        let memory = {
            let $store = &*$pair.memory;
            $call.await
        };
        let redis = {
            let $store = $pair.breaking($lost);
            $call.await
        };
        $pair.mend();
        same("the answer", &memory, &redis)?;
        memory
    }};
}

impl Pair {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn set_clock(&mut self) {
        let clock = self.key("clock");
        let mut node = self.ground.node_of(&clock).await;
        let _: () = node.set(clock, self.now().as_millis()).await.expect("SET");
    }

    /// So that the server does not fill up.
    async fn forget(&mut self) {
        let _: Result<(), StoreError> = self.store.delete_queue(&self.queue, true).await;
        let clock = self.key("clock");
        let _: () = self.ground.node_of(&clock).await.del(clock).await.expect("DEL");
    }

    pub(crate) fn key(&self, name: &str) -> String {
        key_in(&self.ground.namespace, &self.queue, name)
    }

    /// The store to call, with the fault armed for it.
    fn breaking(&self, lost: Option<(Lost, u64)>) -> &RedisStore {
        let (Some((how, calls)), Some(broken)) = (lost, &self.broken) else { return &self.store };
        let fault = broken.proxy.on(ANY_SCRIPT).after(calls);
        match how {
            Lost::Closed => fault.drop_reply(),
            Lost::Reset => fault.reset_reply(),
        }
        &broken.store
    }

    /// Nothing is lost any more.
    fn mend(&self) {
        if let Some(broken) = &self.broken {
            broken.proxy.disarm();
        }
    }

    async fn step(&mut self, Step { call, lost }: &Step) -> Result<(), String> {
        let (queue, lost) = (self.queue.clone(), *lost);
        match call {
            Call::Enqueue(jobs) => {
                let jobs = self.envelopes(jobs);
                drop(both!(self, lost, store => store.enqueue(&queue, &jobs)));
            }
            Call::EnqueueAtomic(jobs) => {
                let jobs = self.envelopes(jobs);
                drop(both!(self, lost, store => store.enqueue_atomic(&queue, &jobs)));
            }
            Call::Claim { worker, count, lease } => {
                let worker = WorkerId::new(format!("worker-{worker}")).expect("worker");
                let lease = ms(*lease);
                let claim = both!(self, lost, store => async {
                    let claim = store.claim(&queue, &worker, *count, lease).await;
                    claim.map(|claim| if lost.is_some() { told_once(claim) } else { claim })
                });
                self.handed_over(claim);
            }
            Call::Operate(operation, numbers) => {
                let operation: Operation = *operation;
                let ids: Vec<JobId> = numbers.iter().map(|number| id(*number)).collect();
                drop(both!(self, lost, store => store.operate(&queue, operation, &ids)));
            }
            Call::Set(settings) => {
                let settings: Vec<Setting> = settings.iter().map(|set| set.setting()).collect();
                drop(both!(self, lost, store => store.set(&queue, &settings)));
            }
            Call::Quarantine(content, reason) => {
                let content = fingerprint(*content);
                drop(both!(self, lost, store => store.quarantine(&queue, &content, *reason)));
            }
            Call::Release(content) => {
                let content = fingerprint(*content);
                drop(both!(self, lost, store => store.release(&queue, &content)));
            }
            Call::Sweep { now, seed } => self.sweep(*now, *seed, lost).await?,
            Call::List { state, kind, limit } => self.list(*state, *kind, *limit).await?,
            Call::Days(days) => drop(both!(self, lost, store => store.days(&queue, *days))),
            // It has no caller: a repeat finds no queue.
            Call::DeleteQueue { force } => {
                drop(both!(self, None, store => store.delete_queue(&queue, *force)));
            }
            Call::Advance(by) => {
                self.clock.advance(ms(*by));
                self.set_clock().await;
            }
            Call::FlushScripts => {
                let flush = redis::cmd("SCRIPT").arg("FLUSH").to_owned();
                for mut node in self.ground.nodes() {
                    let _: () = flush.query_async(&mut node).await.expect("SCRIPT FLUSH");
                }
            }
            Call::NewStore => {}
            of_holder => self.settle(of_holder, lost).await?,
        }
        Ok(())
    }

    async fn settle(&mut self, call: &Call, lost: Option<(Lost, u64)>) -> Result<(), String> {
        let queue = self.queue.clone();
        match call {
            Call::Extend(picks, lease) => {
                let held = self.picked(picks).await;
                drop(both!(self, lost, store => store.extend(&queue, &held, ms(*lease))));
            }
            Call::Complete(picks, result) => {
                let done = |held| Complete { held, result: result.map(Into::into) };
                let jobs: Vec<_> = self.picked(picks).await.into_iter().map(done).collect();
                drop(both!(self, lost, store => store.complete(&queue, &jobs)));
            }
            Call::Retry(picks, delay) => {
                let failed = |held| Retry { held, delay: ms(*delay), error: "ü \"no\"\n".into() };
                let jobs: Vec<_> = self.picked(picks).await.into_iter().map(failed).collect();
                drop(both!(self, lost, store => store.retry(&queue, &jobs)));
            }
            Call::Archive(picks, error) => {
                let reason = ArchiveReason::Discarded;
                let given_up = |held| Archive { held, reason, error: error.map(Into::into) };
                let jobs: Vec<_> = self.picked(picks).await.into_iter().map(given_up).collect();
                drop(both!(self, lost, store => store.archive(&queue, &jobs)));
            }
            Call::Snooze(picks, delay) => {
                let later = |held| Snooze { held, delay: ms(*delay) };
                let jobs: Vec<_> = self.picked(picks).await.into_iter().map(later).collect();
                drop(both!(self, lost, store => store.snooze(&queue, &jobs)));
            }
            Call::Requeue(picks) => {
                let held = self.picked(picks).await;
                drop(both!(self, lost, store => store.requeue(&queue, &held)));
            }
            Call::Progress(pick) => {
                for held in self.picked(&[*pick]).await {
                    drop(both!(self, lost, store => store.progress(&queue, &held, "{\"done\":1}")));
                }
            }
            other => return Err(format!("not a verb of holders: {other:?}")),
        }
        Ok(())
    }

    /// The stores draw the same random number: both draw in the thread of the test, before they
    /// wait for anything. A repeat finds less to do, but must see the same.
    async fn sweep(
        &mut self,
        now: bool,
        seed: u64,
        lost: Option<(Lost, u64)>,
    ) -> Result<(), String> {
        let pace = if now { Pace::Now } else { Pace::Shared };
        // Names that are drawn later must not come again with the seed.
        let afterwards = fastrand::u64(..);
        fastrand::seed(seed);
        let memory = self.memory.sweep(&self.queue, pace).await;
        fastrand::seed(seed);
        let redis = self.breaking(lost).sweep(&self.queue, pace).await;
        fastrand::seed(afterwards);
        self.mend();
        if lost.is_none() {
            return same("the answer", &memory, &redis);
        }
        let seen = |swept: sprag::store::Swept| (swept.claimable, swept.next_due);
        same("what it saw", &memory.map(seen), &redis.map(seen))
    }

    fn envelopes(&self, jobs: &[Job]) -> Vec<Envelope> {
        jobs.iter().map(|job| job.envelope(&self.queue, self.now())).collect()
    }

    fn handed_over(&mut self, claim: Result<Claim, StoreError>) {
        let jobs = claim.unwrap_or_default().jobs;
        self.once.extend(jobs.into_iter().map(|job| Held { id: job.id, fence: job.fence }));
    }

    async fn picked(&self, picks: &[Pick]) -> Vec<Held> {
        let mut held = Vec::new();
        for id in ids() {
            let holder = self.memory.show(&self.queue, &id).await.ok().and_then(|job| job.holder);
            held.extend(holder.map(|holder| Held { id, fence: holder.fence }));
        }
        let one_of = |held: &[Held], number: u8| {
            let count = held.len().max(1);
            held.get(usize::from(number) % count).cloned()
        };
        let pick = |pick: &Pick| match *pick {
            Pick::Held(number) => one_of(&held, number),
            Pick::Once(number) => one_of(&self.once, number),
            Pick::Never(number) => Some(Held { id: id(number), fence: Fence(u64::from(number)) }),
        };
        picks.iter().filter_map(pick).collect()
    }
}

/// The repeat of a claim does not tell again what ended.
fn told_once(claim: Claim) -> Claim {
    Claim { ended: Vec::new(), ..claim }
}

impl Set {
    fn setting(self) -> Setting {
        match self {
            Self::Limit(limit) => Setting::Limit(limit),
            Self::Paused(paused) => Setting::Paused(paused),
            Self::Retention(state, kept) => Setting::Retention(state, kept.map(ms)),
            Self::MaxArchived(most) => Setting::MaxArchived(most),
            Self::CrashLimit(limit) => Setting::CrashLimit(limit),
            Self::CrashWindow(window) => Setting::CrashWindow(window.map(ms)),
        }
    }
}
