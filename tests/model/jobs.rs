//! The jobs that are enqueued: few ids, kinds, payloads and keys.

use proptest::{option, prelude::*, sample::select};
use sprag::{
    Codec, Envelope, Fingerprint, JobId, Kind, Partition, QueueName, Timestamp, Unique, When,
    model::{Mode, Replace},
};
use std::time::Duration;

pub(crate) const IDS: u8 = 7;
const KINDS: [&str; 2] = ["mail", "sms:a/b"];
const PAYLOADS: [&str; 3] = ["", "one", "two\n"];

pub(crate) fn id(number: u8) -> JobId {
    JobId::new(format!("job-{number}")).expect("id")
}

pub(crate) fn ids() -> impl Iterator<Item = JobId> {
    (0..IDS).map(id)
}

pub(crate) fn kind(number: u8) -> Kind {
    Kind::new(KINDS[usize::from(number)]).expect("kind")
}

pub(crate) fn fingerprint((kind, payload): (u8, u8)) -> Fingerprint {
    Fingerprint::of(KINDS[usize::from(kind)], PAYLOADS[usize::from(payload)].as_bytes())
}

/// A kind and a payload.
pub(crate) fn content() -> impl Strategy<Value = (u8, u8)> + Clone {
    (0..KINDS.len() as u8, prop_oneof![3 => Just(1), 1 => Just(0), 2 => Just(2)])
}

/// Ms by which time passes, leases end, jobs wait: few, so that moments coincide.
pub(crate) fn times() -> impl Strategy<Value = u64> + Clone {
    const HOUR: u64 = 3_600_000;
    prop_oneof![
        6 => select(vec![1_000, 60_000]),
        3 => select(vec![1, 500, 5_000, 30_000, HOUR]),
        1 => select(vec![24 * HOUR, 8 * 24 * HOUR, 91 * 24 * HOUR]),
    ]
}

/// When, in ms from now; `By` may be past.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum At {
    Now,
    In(u64),
    By(i64),
}

impl At {
    fn when(self, now: Timestamp) -> When {
        match self {
            Self::Now => When::Now,
            Self::In(delay) => When::In(ms(delay)),
            Self::By(by) => {
                When::At(Timestamp::from_millis(now.as_millis().saturating_add_signed(by)))
            }
        }
    }
}

fn later() -> impl Strategy<Value = At> + Clone {
    prop_oneof![
        3 => times().prop_map(At::In),
        2 => times().prop_map(|by| At::By(by.cast_signed())),
        1 => select(vec![0, -1, -60_000]).prop_map(At::By),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Holds {
    Lifecycle,
    Throttle(u64),
    Debounce(u64, Option<u64>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    /// None: the payload.
    pub(crate) name: Option<u8>,
    pub(crate) holds: Holds,
    pub(crate) any_kind: bool,
    pub(crate) replace: Vec<Replace>,
}

/// A job with every option.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) id: u8,
    pub(crate) content: (u8, u8),
    pub(crate) due: At,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u32,
    pub(crate) deadline: Option<At>,
    pub(crate) retention: Option<u64>,
    pub(crate) remember: Option<u64>,
    pub(crate) key: Option<Key>,
    /// Version, timeout, partition and header: what no script looks at.
    pub(crate) more: bool,
}

/// A job with nothing special.
pub(crate) const PLAIN: Job = Job {
    id: 0,
    content: (0, 1),
    due: At::Now,
    priority: 4,
    max_attempts: 2,
    deadline: None,
    retention: None,
    remember: None,
    key: None,
    more: false,
};

fn holds() -> impl Strategy<Value = Holds> {
    prop_oneof![
        Just(Holds::Lifecycle),
        times().prop_map(Holds::Throttle),
        (times(), option::of(times())).prop_map(|(window, wait)| Holds::Debounce(window, wait)),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    let fields = vec![Replace::Payload, Replace::RunAt, Replace::Priority, Replace::MaxAttempts];
    let replace = prop_oneof![Just(Vec::new()), proptest::sample::subsequence(fields, 0..=4)];
    let name = prop_oneof![4 => Just(Some(0)), 1 => Just(Some(1)), 1 => Just(None)];
    (name, holds(), proptest::bool::weighted(0.2), replace)
        .prop_map(|(name, holds, any_kind, replace)| Key { name, holds, any_kind, replace })
}

pub(crate) fn jobs() -> impl Strategy<Value = Job> {
    let due = prop_oneof![2 => Just(At::Now), 1 => later()];
    let priority = prop_oneof![2 => Just(4), 1 => select(vec![0, 9])];
    let kept = (option::weighted(0.3, times()), option::weighted(0.3, times()));
    let special = (option::weighted(0.25, later()), option::weighted(0.5, key()), any::<bool>());
    (0..IDS, content(), due, priority, 1..4u32, kept, special).prop_map(
        |(id, content, due, priority, max_attempts, kept, (deadline, key, more))| {
            let debounced = matches!(key, Some(Key { holds: Holds::Debounce(..), .. }));
            let due = if debounced { At::Now } else { due };
            let (retention, remember) = kept;
            Job {
                id,
                content,
                due,
                priority,
                max_attempts,
                deadline,
                retention,
                remember,
                key,
                more,
            }
        },
    )
}

/// Ids and contents where jobs move about.
pub(crate) const FEW: u8 = 3;
pub(crate) const FEW_CONTENTS: [(u8, u8); 2] = [(0, 1), (0, 2)];

/// Jobs that are in each other's way: now or in an hour, in three lanes, most with the same key.
pub(crate) fn few_jobs() -> impl Strategy<Value = Job> {
    let due = prop_oneof![3 => Just(At::Now), 2 => Just(At::In(3_600_000))];
    let priority = prop_oneof![2 => Just(4), 1 => select(vec![0, 3])];
    let deadline = option::weighted(0.1, select(vec![At::In(1_000), At::In(60_000)]));
    let replace = select(vec![
        vec![],
        vec![Replace::RunAt],
        vec![Replace::Priority],
        vec![Replace::RunAt, Replace::Priority],
    ]);
    let key = replace.prop_map(|replace| Key {
        name: Some(0),
        holds: Holds::Lifecycle,
        any_kind: false,
        replace,
    });
    let key = option::weighted(0.75, key);
    (0..FEW, select(FEW_CONTENTS.to_vec()), due, priority, deadline, key).prop_map(
        |(id, content, due, priority, deadline, key)| Job {
            id,
            content,
            due,
            priority,
            deadline,
            key,
            ..PLAIN
        },
    )
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Key {
    fn unique(&self) -> Unique {
        let name = self.name.map(|name| ["key", "key 2%"][usize::from(name)]);
        let unique = name.map_or_else(Unique::by_payload, Unique::key);
        let unique = unique.replace(self.replace.clone()).mode(match self.holds {
            Holds::Lifecycle => Mode::Lifecycle,
            Holds::Throttle(window) => Mode::Throttle { window: ms(window) },
            Holds::Debounce(window, wait) => {
                Mode::Debounce { window: ms(window), max_wait: wait.map(ms) }
            }
        });
        if self.any_kind { unique.any_kind() } else { unique }
    }
}

impl Job {
    pub(crate) fn envelope(&self, queue: &QueueName, now: Timestamp) -> Envelope {
        let payload = PAYLOADS[usize::from(self.content.1)];
        let mut job = Envelope::builder(queue.clone(), kind(self.content.0))
            .id(id(self.id))
            .payload(payload, Codec::Raw)
            .run_at(self.due.when(now))
            .priority(self.priority)
            .max_attempts(self.max_attempts);
        if let Some(deadline) = self.deadline {
            job = job.deadline(deadline.when(now));
        }
        if let Some(retention) = self.retention {
            job = job.retention(ms(retention));
        }
        if let Some(remember) = self.remember {
            job = job.remember(ms(remember));
        }
        if let Some(key) = &self.key {
            job = job.unique(key.unique());
        }
        if self.more {
            let partition = Partition::new("tenant ü").expect("partition");
            job = job.version(2).timeout(ms(9)).partition(partition).header("a=b", "c\nd e");
        }
        job.build().expect("within its bounds")
    }
}
