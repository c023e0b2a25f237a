//! What was enqueued, as `claim`, `job list` and `job show` tell it: all that the record holds.

use crate::units;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
use sprag::{Envelope, Timestamp, Unique, When, model::Mode};
use std::collections::BTreeMap;

/// The fields of an envelope but its payload. What a job has not is not there.
#[derive(Serialize)]
pub(crate) struct EnvelopeFields<'a> {
    kind: &'a str,
    codec: &'static str,
    version: u32,
    enqueued_at: u64,
    /// When it was to be due, if that was later.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<u64>,
    priority: u8,
    max_attempts: u32,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remember_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<UniqueFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: &'a BTreeMap<String, String>,
}

/// The key and how it is held. What a duplicate replaces is the duplicate's affair: no record holds
/// it.
#[derive(Serialize)]
struct UniqueFields {
    /// Of one by payload: the fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Of one that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    any_kind: bool,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_wait_ms: Option<u64>,
}

impl UniqueFields {
    fn of(unique: &Unique) -> Self {
        let key = unique.given_key().unwrap_or_default();
        let text = std::str::from_utf8(key).ok().map(str::to_owned);
        let (mode, window, max_wait) = match unique.held() {
            Mode::Throttle { window } => ("throttle", Some(window), None),
            Mode::Debounce { window, max_wait } => ("debounce", Some(window), max_wait),
            _ => ("lifecycle", None, None),
        };
        Self {
            key_base64: text.is_none().then(|| BASE64_STANDARD.encode(key)),
            key: text,
            any_kind: unique.is_any_kind(),
            mode,
            window_ms: window.map(units::millis),
            max_wait_ms: max_wait.map(units::millis),
        }
    }
}

/// A moment of the record. A delay stands there as the moment that Redis made of it.
fn moment(when: When) -> Option<u64> {
    match when {
        When::At(at) => Some(at.as_millis()),
        When::Now | When::In(_) => None,
    }
}

impl<'a> EnvelopeFields<'a> {
    pub(crate) fn of(job: &'a Envelope, enqueued_at: Timestamp) -> Self {
        Self {
            kind: job.kind().as_str(),
            codec: job.codec().as_str(),
            version: job.version(),
            enqueued_at: enqueued_at.as_millis(),
            run_at: moment(job.run_at()),
            priority: job.priority(),
            max_attempts: job.max_attempts(),
            fingerprint: job.fingerprint().to_string(),
            timeout_ms: job.timeout().map(units::millis),
            deadline_at: job.deadline().and_then(moment),
            retention_ms: job.retention().map(units::millis),
            remember_ms: job.remember().map(units::millis),
            unique: job.unique().map(UniqueFields::of),
            partition: job.partition().map(sprag::Partition::as_str),
            headers: job.headers(),
        }
    }

    pub(crate) fn kind(&self) -> &str {
        self.kind
    }

    pub(crate) fn enqueued_at(&self) -> u64 {
        self.enqueued_at
    }
}
