//! What a case needs besides the world.

use crate::{
    case::Case,
    rig::{HOUR, LEASE, Rig, queue},
    world::{World, claim, enqueue, fingerprint_of, id, job},
};
use sprag::{
    Codec, RedisStore, State, Store, Unique, When,
    model::Mode,
    store::{Operation, Pace, Retry, Setting},
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

impl Case {
    /// Builds the world and what this case needs besides.
    pub(crate) async fn prepare(self, rig: &Rig, store: &RedisStore) -> World {
        let mut world = World::build(rig, store).await;
        match self.script() {
            "enqueue" => self.prepare_enqueue(rig, store, &mut world).await,
            "claim" => self.prepare_claim(rig, store, &world).await,
            "sweep" => self.prepare_sweep(rig, store, &mut world).await,
            "operate" => self.prepare_operate(rig, store).await,
            "quarantine" | "release" => self.prepare_quarantine(rig, store).await,
            _ => self.prepare_settling(rig, store, &mut world).await,
        }
        match self {
            Self::EnqueueBackpressure | Self::AtomicBackpressure | Self::LimitLifted => {
                set(store, Setting::Limit(Some(11))).await;
            }
            Self::EnqueueQuarantined => close(store, "for bad").await,
            _ => {}
        }
        world
    }

    async fn prepare_claim(self, rig: &Rig, store: &RedisStore, world: &World) {
        match self {
            Self::ClaimTried => {
                store.requeue(&queue(), &[world.held("tried")]).await.expect("requeue");
            }
            Self::ClaimBroken => rig.on("HSET", "jobs", &["first", "nonsense"]).await,
            Self::ClaimExpired => {
                set(store, Setting::Retention(State::Completed, Some(HOUR))).await;
                let short = job("short").unique(Unique::key("short")).deadline(When::In(SECOND));
                enqueue(store, [short]).await;
                rig.advance(2 * SECOND).await;
            }
            Self::ClaimQuarantined => close(store, "for first").await,
            Self::ClaimDebounced => {
                let mode = Mode::Debounce { window: SECOND, max_wait: None };
                enqueue(store, [job("bounced").unique(Unique::key("d").mode(mode))]).await;
                rig.advance(2 * SECOND).await;
                store.sweep(&queue(), Pace::Now).await.expect("sweep");
            }
            Self::ClaimMarked => {
                add_ghost(rig, 4, "later").await;
                operate(store, Operation::Run, "later").await;
            }
            _ => {}
        }
    }

    async fn prepare_settling(self, rig: &Rig, store: &RedisStore, world: &mut World) {
        match self {
            Self::RequeueBehindGhost => add_ghost(rig, 4, "plain").await,
            Self::CompleteWatched | Self::CompleteKeptAndWatched => {
                store.watch(&queue(), HOUR).await.expect("watch");
            }
            Self::CompleteRemembered => {
                world.hold(store, "past", job("past").remember(HOUR)).await;
            }
            Self::CompleteKeptByQueue => {
                set(store, Setting::Retention(State::Completed, Some(HOUR))).await;
                world.hold(store, "extra", job("extra")).await;
            }
            Self::CompleteClearsCrashes => {
                world.hold(store, "extra", job("extra")).await;
                rig.advance(LEASE).await;
                store.sweep(&queue(), Pace::Now).await.expect("sweep");
                world.hold_next(store, "extra").await;
            }
            Self::CompleteWithProgress => {
                store.progress(&queue(), &world.held("plain"), "1").await.expect("progress");
            }
            Self::RetryExpired => {
                world.hold(store, "short", job("short").deadline(When::In(10 * SECOND))).await;
            }
            _ => {}
        }
    }

    async fn prepare_operate(self, rig: &Rig, store: &RedisStore) {
        let was = || job("was").unique(Unique::key("w"));
        match self {
            Self::RunBehindGhost => add_ghost(rig, 4, "later").await,
            Self::RerunWithKey => {
                enqueue(store, [was().deadline(When::In(24 * HOUR))]).await;
                operate(store, Operation::Cancel, "was").await;
            }
            Self::RerunRefused => {
                enqueue(store, [was(), job("bad"), job("short").deadline(When::In(SECOND))]).await;
                for name in ["was", "bad", "short"] {
                    operate(store, Operation::Archive, name).await;
                }
                enqueue(store, [job("is").unique(Unique::key("w"))]).await;
                close(store, "for bad").await;
                rig.advance(SECOND).await;
            }
            Self::DeleteRemembered => enqueue(store, [job("past").remember(HOUR)]).await,
            _ => {}
        }
    }

    async fn prepare_quarantine(self, rig: &Rig, store: &RedisStore) {
        match self {
            Self::QuarantineAgain => close(store, "for first").await,
            Self::ReleaseInSlices => {
                let bad =
                    |i| job(&format!("bad-{i}")).payload("all of them", Codec::Raw).priority(9);
                enqueue(store, (0..230).map(bad)).await;
                close(store, "all of them").await;
                assert_eq!(claim(store, 1).await.len(), 1, "behind those that it quarantines");
            }
            Self::ReleaseBehindGhost => {
                enqueue(store, [job("bad").priority(9)]).await;
                close(store, "for bad").await;
                claim(store, 1).await;
                add_ghost(rig, 9, "bad").await;
            }
            Self::ReleaseKeyTaken => {
                let key = || Unique::key("b");
                enqueue(store, [job("bad").priority(9).unique(key())]).await;
                close(store, "for bad").await;
                claim(store, 1).await;
                enqueue(store, [job("is").unique(key())]).await;
            }
            _ => {}
        }
    }

    async fn prepare_sweep(self, rig: &Rig, store: &RedisStore, world: &mut World) {
        match self {
            Self::SweepPromotes | Self::SweepEvicts => rig.advance(HOUR * 2).await,
            Self::SweepBehindGhosts => {
                for name in ["later", "failed", "plain"] {
                    add_ghost(rig, 4, name).await;
                }
                rig.advance(HOUR).await;
            }
            Self::SweepReclaims => rig.advance(LEASE).await,
            Self::SweepMends => rig.on("ZREM", "active", &["plain"]).await,
            Self::SweepMendsGhosts => {
                let waiting: Vec<_> = ["first", "second", "urgent", "keyed"].map(id).into();
                let outcomes = store.operate(&queue(), Operation::Delete, &waiting).await;
                assert!(outcomes.expect("operate").iter().all(Result::is_ok));
                rig.on::<()>("DEL", "pending:4", &[]).await;
                rig.on::<()>("DEL", "pending:7", &[]).await;
            }
            Self::SweepInSlices => {
                let later = |i| job(&format!("later-{i}")).run_at(When::In(HOUR));
                enqueue(store, (0..230).map(later)).await;
                rig.advance(HOUR).await;
            }
            Self::SweepExpires => {
                let ends = When::In(HOUR);
                world.hold(store, "again", job("again").deadline(ends)).await;
                let failed =
                    Retry { held: world.held("again"), delay: HOUR / 2, error: "boom".to_owned() };
                store.retry(&queue(), &[failed]).await.expect("retry");
                let jobs = [
                    job("waits").deadline(ends).unique(Unique::key("waits")),
                    job("due").deadline(ends).run_at(When::In(2 * HOUR)),
                ];
                enqueue(store, jobs).await;
                rig.advance(HOUR).await;
            }
            Self::SweepQuarantines => {
                set(store, Setting::CrashLimit(Some(1))).await;
                rig.advance(LEASE).await;
            }
            Self::SweepTimers => {
                let mode = Mode::Throttle { window: HOUR };
                let throttled = job("past").unique(Unique::key("t").mode(mode)).remember(HOUR);
                world.hold(store, "past", throttled).await;
                world.complete(store, "past").await;
                rig.advance(LEASE).await;
                store.sweep(&queue(), Pace::Now).await.expect("sweep");
                rig.advance(25 * HOUR).await;
            }
            Self::SweepMaxArchived => {
                enqueue(store, [job("aged").remember(24 * HOUR), job("new")]).await;
                for name in ["aged", "new"] {
                    operate(store, Operation::Archive, name).await;
                }
                set(store, Setting::MaxArchived(Some(1))).await;
            }
            Self::SweepDays => {
                rig.on::<()>("HSET", "stats", &["2020-01-01:completed", "5"]).await;
                rig.on::<()>("HDEL", "meta", &["stats_day"]).await;
            }
            _ => {}
        }
    }
}

async fn set(store: &RedisStore, setting: Setting) {
    store.set(&queue(), &[setting]).await.expect("set");
}

async fn close(store: &RedisStore, payload: &str) {
    store.quarantine(&queue(), &fingerprint_of(payload), None).await.expect("quarantine");
}

async fn operate(store: &RedisStore, operation: Operation, name: &str) {
    let outcomes = store.operate(&queue(), operation, &[id(name)]).await;
    outcomes.expect("operate").remove(0).expect("changed");
}

/// An entry that is to be skipped, of a job that is elsewhere.
pub(crate) async fn add_ghost(rig: &Rig, lane: u8, name: &str) {
    rig.on::<()>("LPUSH", &format!("pending:{lane}"), &[name]).await;
    rig.on::<()>("HSET", "ghosts", &[&format!("{lane}:{name}"), "1 -"]).await;
    rig.on::<()>("HINCRBY", "meta", &["ghosts", "1"]).await;
}
