//! Every call that changes something, in the variants that take another way through its script.

use crate::{
    rig::{HOUR, LEASE, Rig, other_queue, queue},
    world::{World, build, enqueue, id, job, worker},
};
use sprag::{
    RedisStore, Store, Unique, When,
    store::{Archive, ArchiveReason, Complete, Held, Pace, Retry, Snooze},
};

macro_rules! cases {
    ($($case:ident: $script:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Case { $($case,)* }

        impl Case {
            pub(crate) const ALL: &[Self] = &[$(Self::$case),*];

            /// The script that it calls.
            pub(crate) fn script(self) -> &'static str {
                match self { $(Self::$case => $script,)* }
            }
        }
    };
}

cases! {
    EnqueuePlain: "enqueue",
    EnqueueMixed: "enqueue",
    EnqueueNewQueue: "enqueue",
    EnqueueDuplicate: "enqueue",
    EnqueueConflict: "enqueue",
    EnqueueBackpressure: "enqueue",
    EnqueueExisting: "enqueue",
    AtomicAdmitted: "enqueue",
    AtomicDuplicate: "enqueue",
    AtomicBackpressure: "enqueue",
    ClaimOne: "claim",
    ClaimAll: "claim",
    ClaimTried: "claim",
    ClaimBroken: "claim",
    ClaimEmpty: "claim",
    CompletePlain: "complete",
    CompleteTried: "complete",
    CompleteWithResult: "complete",
    CompleteStale: "complete",
    RetryLater: "retry",
    RetryExhausted: "retry",
    ArchiveWithError: "archive",
    ArchiveWithKey: "archive",
    SnoozeOne: "snooze",
    SnoozeSoon: "snooze",
    RequeueAll: "requeue",
    RequeueBehindGhost: "requeue",
    CancelWaiting: "operate",
    CancelActive: "operate",
    CancelRefused: "operate",
    LimitSet: "set",
    LimitLifted: "set",
    LimitNewQueue: "set",
    Extend: "extend",
    SweepPromotes: "sweep",
    SweepReclaims: "sweep",
    SweepEvicts: "sweep",
    SweepMends: "sweep",
    SweepInSlices: "sweep",
}

impl Case {
    /// Whether a repeat's answer is the first one's. A sweep says what *it* did: a repeat does the rest.
    pub(crate) fn answers_the_same(self) -> bool {
        self.script() != "sweep"
    }

    /// A sweep's repeat is the next sweep, which may have work that this one made: does that first.
    pub(crate) async fn settle_down(self, rig: &Rig) {
        if self.script() == "sweep" {
            rig.direct().sweep(&queue(), Pace::Now).await.expect("sweep");
        }
    }

    /// Builds the world and what this case needs besides.
    pub(crate) async fn prepare(self, rig: &Rig, store: &RedisStore) -> World {
        let world = World::build(rig, store).await;
        match self {
            Self::EnqueueBackpressure | Self::AtomicBackpressure => {
                store
                    .set(&queue(), &[sprag::store::Setting::Limit(Some(11))])
                    .await
                    .expect("limit");
            }
            Self::LimitLifted => {
                store.set(&queue(), &[sprag::store::Setting::Limit(Some(11))]).await.expect("limit")
            }
            Self::ClaimTried => {
                store.requeue(&queue(), &[world.held("tried")]).await.expect("requeue");
            }
            Self::ClaimBroken => rig.on("HSET", "jobs", &["first", "nonsense"]).await,
            Self::RequeueBehindGhost => add_ghost(rig, "plain").await,
            Self::SweepPromotes | Self::SweepEvicts => rig.advance(HOUR * 2).await,
            Self::SweepReclaims => rig.advance(LEASE).await,
            Self::SweepMends => rig.on("ZREM", "active", &["plain"]).await,
            Self::SweepInSlices => {
                let later = |i| job(&format!("later-{i}")).run_at(When::In(HOUR));
                enqueue(store, (0..230).map(later)).await;
                rig.advance(HOUR).await;
            }
            _ => {}
        }
        world
    }

    /// Makes the call; the answer as a text.
    pub(crate) async fn call(self, store: &RedisStore, world: &World) -> String {
        let queue = &queue();
        match self.script() {
            "enqueue" => self.enqueue(store).await,
            "claim" => self.claim(store).await,
            "complete" => text(store.complete(queue, &[self.complete(world)]).await),
            "retry" => text(store.retry(queue, &[self.retry(world)]).await),
            "archive" => text(store.archive(queue, &[self.archive(world)]).await),
            "snooze" => {
                let delay = if self == Self::SnoozeSoon { LEASE } else { 2 * HOUR };
                text(store.snooze(queue, &[Snooze { held: world.held("tried"), delay }]).await)
            }
            "requeue" => text(store.requeue(queue, &self.returned(world)).await),
            "operate" => {
                text(store.operate(queue, sprag::store::Operation::Cancel, &self.cancelled()).await)
            }
            "set" => self.limit(store).await,
            "extend" => text(store.extend(queue, &world.all_held(), 2 * LEASE).await),
            _ => text(store.sweep(queue, Pace::Now).await),
        }
    }

    async fn enqueue(self, store: &RedisStore) -> String {
        let keyed = || job("new").unique(Unique::key("k"));
        let jobs = match self {
            Self::EnqueuePlain => vec![job("new-1"), job("new-2")],
            Self::EnqueueDuplicate | Self::AtomicDuplicate => vec![job("new-1"), keyed()],
            Self::EnqueueConflict => {
                vec![job("new-1"), job("first").payload("else", sprag::Codec::Raw)]
            }
            Self::EnqueueExisting => {
                vec![job("first"), job("plain"), job("later").run_at(When::In(HOUR))]
            }
            Self::EnqueueNewQueue => vec![job("new-1").queue(other_queue()).priority(2)],
            _ => vec![
                job("new-1").run_at(When::In(LEASE)),
                job("new-2").priority(9).unique(Unique::key("free")),
                job("new-3").retention(HOUR),
            ],
        };
        let queue = if self == Self::EnqueueNewQueue { other_queue() } else { queue() };
        match self {
            Self::AtomicAdmitted | Self::AtomicDuplicate | Self::AtomicBackpressure => {
                text(store.enqueue_atomic(&queue, &build(jobs)).await)
            }
            _ => text(store.enqueue(&queue, &build(jobs)).await),
        }
    }

    async fn claim(self, store: &RedisStore) -> String {
        let (queue, count) = match self {
            Self::ClaimOne | Self::ClaimTried => (queue(), 1),
            Self::ClaimEmpty => (other_queue(), 5),
            _ => (queue(), 100),
        };
        text(store.claim(&queue, &worker(), count, LEASE).await)
    }

    fn complete(self, world: &World) -> Complete {
        let (name, result) = match self {
            Self::CompletePlain => ("plain", None),
            Self::CompleteTried => ("tried", None),
            Self::CompleteWithResult => ("kept", Some("{\"sent\":1}".into())),
            _ => {
                return Complete {
                    held: Held { id: id("first"), ..world.held("plain") },
                    result: None,
                };
            }
        };
        Complete { held: world.held(name), result }
    }

    fn retry(self, world: &World) -> Retry {
        let name = if self == Self::RetryLater { "tried" } else { "last" };
        Retry { held: world.held(name), delay: LEASE, error: "boom".into() }
    }

    fn archive(self, world: &World) -> Archive {
        let (name, error) = match self {
            Self::ArchiveWithKey => ("kept", None),
            _ => ("plain", Some("no use".to_owned())),
        };
        Archive { held: world.held(name), reason: ArchiveReason::Discarded, error }
    }

    fn returned(self, world: &World) -> Vec<Held> {
        match self {
            Self::RequeueBehindGhost => vec![world.held("plain")],
            _ => world.all_held(),
        }
    }

    fn cancelled(self) -> Vec<sprag::JobId> {
        let names: &[&str] = match self {
            Self::CancelWaiting => &["first", "urgent", "keyed", "later", "failed"],
            Self::CancelActive => &["plain", "kept", "plain"],
            _ => &["done", "gone", "nobody"],
        };
        names.iter().map(|name| id(name)).collect()
    }

    async fn limit(self, store: &RedisStore) -> String {
        match self {
            Self::LimitSet => {
                text(store.set(&queue(), &[sprag::store::Setting::Limit(Some(7))]).await)
            }
            Self::LimitLifted => {
                text(store.set(&queue(), &[sprag::store::Setting::Limit(None)]).await)
            }
            _ => text(store.set(&other_queue(), &[sprag::store::Setting::Limit(Some(7))]).await),
        }
    }
}

/// An entry that is to be skipped, of a job that is held.
async fn add_ghost(rig: &Rig, name: &str) {
    rig.on::<()>("LPUSH", "pending:4", &[name]).await;
    rig.on::<()>("HSET", "ghosts", &[&format!("4:{name}"), "1"]).await;
    rig.on::<()>("HINCRBY", "meta", &["ghosts", "1"]).await;
}

fn text<T: std::fmt::Debug>(answer: T) -> String {
    format!("{answer:?}")
}
