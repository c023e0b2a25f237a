//! What is enqueued: one unit of work and how it is to be run.

use super::{
    Fingerprint, JobId, Kind, Mode, Partition, QueueName, StoreError, Timestamp, Unique, When, time,
};
use bytes::Bytes;
use std::{collections::BTreeMap, time::Duration};

/// Payloads are at most 1 MiB unless [`EnvelopeBuilder::max_payload`] says otherwise.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// An enqueue call carries at most 8 MiB; larger batches are split, so no payload may be larger.
pub const MAX_BATCH_BYTES: usize = 8 << 20;
/// A script call touches at most 1,000 jobs.
pub const MAX_BATCH: usize = 1_000;
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 16 << 10;
pub(crate) const DEFAULT_PRIORITY: u8 = 4;
pub(crate) const DEFAULT_MAX_ATTEMPTS: u32 = 25;
pub(crate) const DEFAULT_VERSION: u32 = 1;

/// How the payload is encoded.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// MessagePack with field names.
    #[default]
    MsgPack,
    /// JSON.
    Json,
    /// Bytes that only the handler understands.
    Raw,
}

impl Codec {
    pub(crate) const ALL: [Codec; 3] = [Codec::MsgPack, Codec::Json, Codec::Raw];

    /// The name used in records and by the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MsgPack => "msgpack",
            Self::Json => "json",
            Self::Raw => "raw",
        }
    }
}

/// A job as it was enqueued. Made by [`Envelope::builder`], which checks every bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub(crate) id: JobId,
    pub(crate) queue: QueueName,
    pub(crate) kind: Kind,
    pub(crate) payload: Bytes,
    pub(crate) codec: Codec,
    pub(crate) version: u32,
    pub(crate) run_at: When,
    pub(crate) priority: u8,
    pub(crate) max_attempts: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadline: Option<When>,
    pub(crate) retention: Option<Duration>,
    pub(crate) remember: Option<Duration>,
    pub(crate) unique: Option<Unique>,
    pub(crate) partition: Option<Partition>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) fingerprint: Fingerprint,
    /// Fields of the record that this version does not know, kept as they are.
    pub(crate) unknown: Vec<(String, String)>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $how:expr;)*) => {
        impl Envelope {
            $($(#[$doc])* pub fn $name(&self) -> $type { let get: fn(&Self) -> $type = $how; get(self) })*
        }
    };
}

getters! {
    /// Unique in its queue.
    id: &JobId => |e| &e.id;
    /// The queue.
    queue: &QueueName => |e| &e.queue;
    /// The type name, by which a handler is found.
    kind: &Kind => |e| &e.kind;
    /// The encoded payload.
    payload: &Bytes => |e| &e.payload;
    /// How the payload is encoded.
    codec: Codec => |e| e.codec;
    /// The version of the payload's type, 1 by default.
    version: u32 => |e| e.version;
    /// When the job is due, at once by default.
    run_at: When => |e| e.run_at;
    /// 0 to 9, higher first, 4 by default.
    priority: u8 => |e| e.priority;
    /// Failed attempts before the job is archived, 25 by default.
    max_attempts: u32 => |e| e.max_attempts;
    /// How long one attempt may take, unlimited by default.
    timeout: Option<Duration> => |e| e.timeout;
    /// When the job is no longer worth running.
    deadline: Option<When> => |e| e.deadline;
    /// How long the completed job is kept (default: not at all). An archived, quarantined or
    /// cancelled job is kept for its own default (90 d, 90 d, 7 d) or this, whichever is longer: a
    /// short retention does not eat what an operator is to look at.
    retention: Option<Duration> => |e| e.retention;
    /// How long the identity (id and content) outlives the record.
    remember: Option<Duration> => |e| e.remember;
    /// The unique key.
    unique: Option<&Unique> => |e| e.unique.as_ref();
    /// The tenant inside the queue: stored and shown.
    partition: Option<&Partition> => |e| e.partition.as_ref();
    /// Name to value, `traceparent` among them.
    headers: &BTreeMap<String, String> => |e| &e.headers;
    /// Derived from kind and payload.
    fingerprint: Fingerprint => |e| e.fingerprint;
}

impl Envelope {
    /// Starts an envelope with everything at its default and an empty payload.
    pub fn builder(queue: QueueName, kind: Kind) -> EnvelopeBuilder {
        EnvelopeBuilder {
            id: None,
            max_payload: MAX_PAYLOAD,
            envelope: Envelope {
                id: JobId::generate(),
                queue,
                kind,
                payload: Bytes::new(),
                codec: Codec::default(),
                version: DEFAULT_VERSION,
                run_at: When::Now,
                priority: DEFAULT_PRIORITY,
                max_attempts: DEFAULT_MAX_ATTEMPTS,
                timeout: None,
                deadline: None,
                retention: None,
                remember: None,
                unique: None,
                partition: None,
                headers: BTreeMap::new(),
                fingerprint: Fingerprint::of("", b""),
                unknown: Vec::new(),
            },
        }
    }

    /// Checks every bound but those that the field types hold already.
    pub(crate) fn check(&self, max_payload: usize) -> Result<(), StoreError> {
        if self.payload.len() > max_payload {
            let bytes = format!("{} bytes", self.payload.len());
            return Err(StoreError::invalid(
                "payload",
                bytes,
                &format!("at most {max_payload} bytes"),
            ));
        }
        if self.priority > 9 {
            return Err(StoreError::invalid("priority", self.priority, "0 to 9"));
        }
        if !(1..=1_000).contains(&self.max_attempts) {
            return Err(StoreError::invalid("max_attempts", self.max_attempts, "1 to 1000"));
        }
        let durations =
            [("timeout", self.timeout), ("retention", self.retention), ("remember", self.remember)];
        for (field, duration) in durations {
            duration.map_or(Ok(Duration::ZERO), |d| time::checked(field, d))?;
        }
        for (field, when) in [("run_at", Some(self.run_at)), ("deadline", self.deadline)] {
            match when {
                Some(When::In(delay)) if field == "run_at" => drop(time::checked("delay", delay)?),
                Some(When::In(delay)) => drop(time::checked(field, delay)?),
                Some(When::At(at)) => drop(time::checked_at(field, at)?),
                Some(When::Now) | None => {}
            }
        }
        if let Some(unique) = &self.unique {
            unique.check()?;
            if matches!(unique.mode, Mode::Debounce { .. }) && self.run_at != When::Now {
                return Err(StoreError::invalid(
                    "run_at",
                    "set",
                    "unset with debounce, which sets it",
                ));
            }
        }
        check_headers(&self.headers)
    }
}

fn header_bytes(headers: &BTreeMap<String, String>) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), StoreError> {
    if headers.len() > MAX_HEADERS {
        return Err(StoreError::invalid("headers", headers.len(), "at most 64"));
    }
    if headers.keys().any(String::is_empty) {
        return Err(StoreError::invalid("header name", "empty", "1 byte or more"));
    }
    let bytes = header_bytes(headers);
    if bytes > MAX_HEADER_BYTES {
        return Err(StoreError::invalid(
            "headers",
            format!("{bytes} bytes"),
            "at most 16384 bytes",
        ));
    }
    Ok(())
}

/// Builds an [`Envelope`]; [`build`](EnvelopeBuilder::build) checks it.
#[derive(Debug, Clone)]
#[must_use = "an envelope is made by build()"]
pub struct EnvelopeBuilder {
    id: Option<JobId>,
    max_payload: usize,
    envelope: Envelope,
}

impl EnvelopeBuilder {
    /// An id of the caller's own: 1 to 128 printable ASCII characters. Default: a new UUIDv7.
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Another queue.
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.envelope.queue = queue;
        self
    }

    /// The encoded payload and how it is encoded.
    pub fn payload(mut self, payload: impl Into<Bytes>, codec: Codec) -> Self {
        self.envelope.payload = payload.into();
        self.envelope.codec = codec;
        self
    }

    /// The version of the payload's type.
    pub fn version(mut self, version: u32) -> Self {
        self.envelope.version = version;
        self
    }

    /// When the job is due.
    pub fn run_at(mut self, when: When) -> Self {
        self.envelope.run_at = when;
        self
    }

    /// 0 to 9, higher first.
    pub fn priority(mut self, priority: u8) -> Self {
        self.envelope.priority = priority;
        self
    }

    /// 1 to 1,000.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.envelope.max_attempts = attempts;
        self
    }

    /// How long one attempt may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.envelope.timeout = Some(timeout);
        self
    }

    /// When the job is no longer worth running: it is archived then, unless it is running. One that
    /// is past by the store's clock is refused.
    pub fn deadline(mut self, when: When) -> Self {
        self.envelope.deadline = Some(when);
        self
    }

    /// How long the finished job is kept; see [`Envelope::retention`].
    pub fn retention(mut self, retention: Duration) -> Self {
        self.envelope.retention = Some(retention);
        self
    }

    /// How long the identity (id and content) outlives the record: whoever repeats an enqueue with
    /// the same id by himself, perhaps after the job is done and gone, is answered *existing*.
    pub fn remember(mut self, remember: Duration) -> Self {
        self.envelope.remember = Some(remember);
        self
    }

    /// The unique key.
    pub fn unique(mut self, unique: Unique) -> Self {
        self.envelope.unique = Some(unique);
        self
    }

    /// The tenant inside the queue.
    pub fn partition(mut self, partition: Partition) -> Self {
        self.envelope.partition = Some(partition);
        self
    }

    /// Adds a header, or replaces the one of that name.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.envelope.headers.insert(name.into(), value.into());
        self
    }

    /// Adds a header that nobody asked for: unless there is one of that name, and if there is room.
    pub(crate) fn spare_header(self, name: &str, value: impl FnOnce() -> String) -> Self {
        let headers = &self.envelope.headers;
        if headers.contains_key(name) || headers.len() >= MAX_HEADERS {
            return self;
        }
        let value = value();
        match header_bytes(headers) + name.len() + value.len() > MAX_HEADER_BYTES {
            true => self,
            false => self.header(name, value),
        }
    }

    /// Allows payloads of up to so many bytes, at most [`MAX_BATCH_BYTES`]. Default [`MAX_PAYLOAD`].
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Makes the envelope.
    ///
    /// # Errors
    /// `Invalid` naming field, value and bound.
    pub fn build(self) -> Result<Envelope, StoreError> {
        if self.max_payload > MAX_BATCH_BYTES {
            let bound = format!("at most {MAX_BATCH_BYTES} bytes");
            return Err(StoreError::invalid("max_payload", self.max_payload, &bound));
        }
        let mut envelope = self.envelope;
        envelope.check(self.max_payload)?;
        if let Some(id) = self.id {
            envelope.id = id;
        }
        envelope.fingerprint = Fingerprint::of(envelope.kind.as_str(), &envelope.payload);
        Ok(envelope)
    }
}

impl From<Timestamp> for When {
    fn from(at: Timestamp) -> Self {
        Self::At(at)
    }
}
