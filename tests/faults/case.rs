//! Every call that changes something, in the variants that take another way through its script.

use crate::{
    rig::{HOUR, LEASE, Rig, other_queue, queue},
    world::{World, fingerprint, fingerprint_of, id, worker},
};
use sprag::{
    JobId, RedisStore, State, Store,
    store::{
        Archive, ArchiveReason, Claim, Complete, Held, Operation, Pace, Retry, Setting, Snooze,
    },
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
    EnqueueThrottled: "enqueue",
    EnqueueDebounced: "enqueue",
    EnqueueDebouncedAgain: "enqueue",
    EnqueueRemembered: "enqueue",
    EnqueueDeadline: "enqueue",
    EnqueueQuarantined: "enqueue",
    EnqueueFreedKey: "enqueue",
    EnqueueBehindGhost: "enqueue",
    ReplaceInPending: "enqueue",
    ReplaceBehindGhost: "enqueue",
    ReplacePostpones: "enqueue",
    ReplaceInScheduled: "enqueue",
    ReplaceInRetry: "enqueue",
    ReplaceInRetryLater: "enqueue",
    AtomicAdmitted: "enqueue",
    AtomicDuplicate: "enqueue",
    AtomicBackpressure: "enqueue",
    ClaimOne: "claim",
    ClaimAll: "claim",
    ClaimTried: "claim",
    ClaimBroken: "claim",
    ClaimEmpty: "claim",
    ClaimExpired: "claim",
    ClaimQuarantined: "claim",
    ClaimDebounced: "claim",
    ClaimMarked: "claim",
    CompletePlain: "complete",
    CompleteTried: "complete",
    CompleteWithResult: "complete",
    CompleteStale: "complete",
    CompleteRemembered: "complete",
    CompleteKeptByQueue: "complete",
    CompleteClearsCrashes: "complete",
    CompleteWithProgress: "complete",
    CompleteWatched: "complete",
    CompleteKeptAndWatched: "complete",
    RetryLater: "retry",
    RetryExhausted: "retry",
    RetryExpired: "retry",
    ArchiveWithError: "archive",
    ArchiveWithKey: "archive",
    SnoozeOne: "snooze",
    SnoozeSoon: "snooze",
    RequeueAll: "requeue",
    RequeueBehindGhost: "requeue",
    CancelWaiting: "operate",
    CancelActive: "operate",
    CancelRefused: "operate",
    OperatorArchives: "operate",
    RunWaiting: "operate",
    RunBehindGhost: "operate",
    RerunFinished: "operate",
    RerunWithKey: "operate",
    RerunRefused: "operate",
    DeleteWaiting: "operate",
    DeleteFinished: "operate",
    DeleteRemembered: "operate",
    LimitSet: "set",
    LimitLifted: "set",
    LimitNewQueue: "set",
    SetAll: "set",
    Pause: "set",
    QuarantineOne: "quarantine",
    QuarantineAgain: "quarantine",
    QuarantineNewQueue: "quarantine",
    ReleaseInSlices: "release",
    ReleaseKeyTaken: "release",
    ReleaseNobody: "release",
    ReleaseBehindGhost: "release",
    Progress: "progress",
    ProgressStale: "progress",
    DeleteQueue: "delete_queue",
    DeleteQueueRefused: "delete_queue",
    Extend: "extend",
    WatchEnds: "watch_ends",
    WatchEndsNewQueue: "watch_ends",
    SweepPromotes: "sweep",
    SweepBehindGhosts: "sweep",
    SweepReclaims: "sweep",
    SweepEvicts: "sweep",
    SweepMends: "sweep",
    SweepMendsGhosts: "sweep",
    SweepInSlices: "sweep",
    SweepExpires: "sweep",
    SweepQuarantines: "sweep",
    SweepTimers: "sweep",
    SweepMaxArchived: "sweep",
    SweepDays: "sweep",
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
                let (operation, ids) = self.operation();
                text(store.operate(queue, operation, &ids).await)
            }
            "set" => self.set(store).await,
            "quarantine" => self.quarantine(store).await,
            "release" => self.release(store).await,
            "progress" => self.progress(store, world).await,
            "delete_queue" => text(store.delete_queue(queue, self == Self::DeleteQueue).await),
            "watch_ends" => {
                let new = self == Self::WatchEndsNewQueue;
                let queue = if new { other_queue() } else { queue.clone() };
                text(store.watch(&queue, HOUR).await)
            }
            "extend" => text(store.extend(queue, &world.all_held(), 2 * LEASE).await),
            _ => text(store.sweep(queue, Pace::Now).await),
        }
    }

    async fn claim(self, store: &RedisStore) -> String {
        let (queue, count) = match self {
            Self::ClaimOne | Self::ClaimTried => (queue(), 1),
            Self::ClaimEmpty => (other_queue(), 5),
            _ => (queue(), 100),
        };
        let claim = store.claim(&queue, &worker(), count, LEASE).await;
        // A repeat does not tell again what ended.
        text(claim.map(|claim| Claim { ended: Vec::new(), ..claim }))
    }

    fn complete(self, world: &World) -> Complete {
        let (name, result) = match self {
            Self::CompletePlain | Self::CompleteWithProgress | Self::CompleteWatched => {
                ("plain", None)
            }
            Self::CompleteKeptAndWatched => ("kept", None),
            Self::CompleteTried => ("tried", None),
            Self::CompleteRemembered => ("past", None),
            Self::CompleteKeptByQueue | Self::CompleteClearsCrashes => ("extra", None),
            Self::CompleteWithResult => ("kept", Some("{\"sent\":1}".into())),
            _ => return Complete { held: stale(world), result: None },
        };
        Complete { held: world.held(name), result }
    }

    fn retry(self, world: &World) -> Retry {
        let name = match self {
            Self::RetryLater => "tried",
            Self::RetryExpired => "short",
            _ => "last",
        };
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

    fn operation(self) -> (Operation, Vec<JobId>) {
        use Operation::{Archive, Cancel, Delete, Rerun, Run};
        let (operation, names): (_, &[&str]) = match self {
            Self::CancelWaiting => (Cancel, &["first", "urgent", "keyed", "later", "failed"]),
            Self::CancelActive => (Cancel, &["plain", "kept", "plain"]),
            Self::CancelRefused => (Cancel, &["done", "gone", "nobody"]),
            Self::OperatorArchives => (Archive, &["first", "later", "failed", "plain", "first"]),
            Self::RunWaiting => (Run, &["later", "failed", "first", "plain", "nobody"]),
            Self::RunBehindGhost => (Run, &["later"]),
            Self::RerunFinished => (Rerun, &["gone", "done", "gone"]),
            Self::RerunWithKey => (Rerun, &["was"]),
            Self::RerunRefused => (Rerun, &["was", "bad", "short", "first", "plain"]),
            Self::DeleteWaiting => (Delete, &["first", "urgent", "keyed", "later", "failed"]),
            Self::DeleteFinished => (Delete, &["gone", "done", "plain", "gone"]),
            _ => (Delete, &["past", "first"]),
        };
        (operation, names.iter().map(|name| id(name)).collect())
    }

    async fn set(self, store: &RedisStore) -> String {
        let limit = Setting::Limit(Some(7));
        match self {
            Self::LimitSet => text(store.set(&queue(), &[limit]).await),
            Self::LimitLifted => text(store.set(&queue(), &[Setting::Limit(None)]).await),
            Self::Pause => text(store.set(&queue(), &[Setting::Paused(true)]).await),
            Self::SetAll => {
                let settings = [
                    limit,
                    Setting::Paused(false),
                    Setting::Retention(State::Completed, Some(HOUR)),
                    Setting::Retention(State::Archived, None),
                    Setting::MaxArchived(Some(5)),
                    Setting::CrashLimit(Some(2)),
                    Setting::CrashWindow(Some(HOUR)),
                ];
                text(store.set(&queue(), &settings).await)
            }
            _ => text(store.set(&other_queue(), &[limit]).await),
        }
    }

    async fn quarantine(self, store: &RedisStore) -> String {
        let queue = if self == Self::QuarantineNewQueue { other_queue() } else { queue() };
        text(store.quarantine(&queue, &fingerprint("first"), Some("it kills")).await)
    }

    async fn release(self, store: &RedisStore) -> String {
        let payload = if self == Self::ReleaseInSlices { "all of them" } else { "for bad" };
        let payload = if self == Self::ReleaseNobody { "for nobody" } else { payload };
        text(store.release(&queue(), &fingerprint_of(payload)).await)
    }

    async fn progress(self, store: &RedisStore, world: &World) -> String {
        let held = if self == Self::Progress { world.held("plain") } else { stale(world) };
        text(store.progress(&queue(), &held, "{\"done\":5}").await)
    }
}

/// What nobody holds.
fn stale(world: &World) -> Held {
    Held { id: id("first"), ..world.held("plain") }
}

pub(crate) fn text<T: std::fmt::Debug>(answer: T) -> String {
    format!("{answer:?}")
}
