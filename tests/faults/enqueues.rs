//! What the cases of enqueue hand in.

use crate::{
    case::{Case, text},
    rig::{HOUR, LEASE, Rig, other_queue, queue},
    setup::add_ghost,
    world::{World, build, enqueue, id, job},
};
use sprag::{
    Codec, RedisStore, Store, Timestamp, Unique, When,
    model::{EnvelopeBuilder, Mode, Replace},
    store::{Operation, Retry},
};

/// Fields that say what to replace.
const ALL_BUT_TIME: [Replace; 3] = [Replace::Payload, Replace::Priority, Replace::MaxAttempts];

fn debounced(key: &str) -> Unique {
    Unique::key(key).mode(Mode::Debounce { window: LEASE, max_wait: Some(HOUR) })
}

/// A job that replaces the due time, and more, of the key's holder.
fn moves(key: &str, run_at: When) -> EnvelopeBuilder {
    let unique = Unique::key(key).replace([Replace::Payload, Replace::RunAt]);
    job("new").unique(unique).run_at(run_at)
}

impl Case {
    /// What a case of enqueue needs besides the world.
    pub(crate) async fn prepare_enqueue(self, rig: &Rig, store: &RedisStore, world: &mut World) {
        match self {
            Self::EnqueueDebouncedAgain => {
                enqueue(store, [job("bounced").unique(debounced("d"))]).await;
            }
            Self::EnqueueRemembered => {
                world.hold(store, "past", job("past").remember(HOUR)).await;
                world.complete(store, "past").await;
            }
            Self::EnqueueFreedKey => outlive_its_holder(rig, store).await,
            Self::EnqueueBehindGhost => add_ghost(rig, 4, "new-1").await,
            Self::ReplaceBehindGhost => add_ghost(rig, 8, "keyed").await,
            Self::ReplaceInScheduled => {
                let held = job("held").unique(Unique::key("s")).run_at(When::In(HOUR));
                enqueue(store, [held]).await;
            }
            Self::ReplaceInRetry | Self::ReplaceInRetryLater => {
                let failed =
                    Retry { held: world.held("kept"), delay: HOUR, error: "boom".to_owned() };
                store.retry(&queue(), &[failed]).await.expect("retry").remove(0).expect("held");
            }
            _ => {}
        }
    }

    fn given(self) -> Vec<EnvelopeBuilder> {
        let keyed = || job("new").unique(Unique::key("k"));
        let throttled =
            |name| job(name).unique(Unique::key("t").mode(Mode::Throttle { window: HOUR }));
        let other = |name| job(name).payload("else", Codec::Raw);
        match self {
            Self::EnqueuePlain | Self::EnqueueBehindGhost => vec![job("new-1"), job("new-2")],
            Self::EnqueueDuplicate | Self::AtomicDuplicate => vec![job("new-1"), keyed()],
            Self::EnqueueConflict => vec![job("new-1"), other("first")],
            Self::EnqueueExisting => {
                vec![job("first"), job("plain"), job("later").run_at(When::In(HOUR))]
            }
            Self::EnqueueNewQueue => vec![job("new-1").queue(other_queue()).priority(2)],
            Self::EnqueueThrottled => vec![throttled("new-1"), throttled("new-2")],
            Self::EnqueueDebounced => {
                let both = ["new-1", "new-2"].map(|name| job(name).unique(debounced("d")));
                both.into()
            }
            Self::EnqueueDebouncedAgain => vec![job("new-1").unique(debounced("d"))],
            Self::EnqueueRemembered => vec![job("past"), other("past"), job("new-1")],
            Self::EnqueueDeadline => vec![
                job("new-1").deadline(When::In(24 * HOUR)),
                job("new-2").deadline(When::At(Timestamp::from_millis(1))),
            ],
            Self::EnqueueQuarantined => vec![job("bad"), job("new-1")],
            Self::EnqueueFreedKey => vec![job("new-1").unique(Unique::key("f"))],
            Self::ReplaceInPending | Self::ReplaceBehindGhost => {
                let unique = Unique::key("k").replace(ALL_BUT_TIME);
                vec![job("new").unique(unique).priority(8).max_attempts(3)]
            }
            Self::ReplacePostpones => vec![moves("k", When::In(HOUR))],
            Self::ReplaceInScheduled => vec![moves("s", When::Now)],
            Self::ReplaceInRetry => vec![moves("held", When::Now)],
            Self::ReplaceInRetryLater => vec![moves("held", When::In(2 * HOUR))],
            _ => vec![
                job("new-1").run_at(When::In(LEASE)),
                job("new-2").priority(9).unique(Unique::key("free")),
                job("new-3").retention(HOUR),
            ],
        }
    }

    pub(crate) async fn enqueue(self, store: &RedisStore) -> String {
        let jobs = build(self.given());
        let queue = if self == Self::EnqueueNewQueue { other_queue() } else { queue() };
        match self {
            Self::AtomicAdmitted | Self::AtomicDuplicate | Self::AtomicBackpressure => {
                text(store.enqueue_atomic(&queue, &jobs).await)
            }
            _ => text(store.enqueue(&queue, &jobs).await),
        }
    }
}

/// The entry of the key `f` stays when its holder is cancelled, as if a script had died.
async fn outlive_its_holder(rig: &Rig, store: &RedisStore) {
    enqueue(store, [job("holder").unique(Unique::key("f"))]).await;
    let keys: Vec<String> = rig.on("HGETALL", "unique", &[]).await;
    let ours = keys.chunks(2).find(|pair| pair[1] == "holder").expect("its entry");
    let cancelled = store.operate(&queue(), Operation::Cancel, &[id("holder")]).await;
    cancelled.expect("cancel").remove(0).expect("cancelled");
    rig.on::<()>("HSET", "unique", &[&ours[0], "holder"]).await;
}
