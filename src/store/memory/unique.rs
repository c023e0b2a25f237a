//! Unique keys: at most one job holds one.
//!
//! | mode | held | freed | taken again by rerun, release |
//! |---|---|---|---|
//! | lifecycle | until the job is finished | by its end | yes |
//! | debounce | until the first claim | by the claim, or its end before | yes, until the next claim |
//! | throttle | for a window after the enqueue | by time alone | no |

use super::{
    job::{Job, Place, Position, moment},
    queue::Queue,
};
use crate::model::{Envelope, JobId, Mode, Replace, State, Timestamp, record::unique_token};

/// Who holds a unique key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) holder: JobId,
    /// The end of a throttle's window; the holder may be gone before. None: the holder is there,
    /// unfinished, and frees the key itself.
    pub(super) until: Option<Timestamp>,
}

impl Key {
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|end| end <= now)
    }
}

/// Holding.
impl Queue {
    pub(super) fn key_holder(&self, token: &str, now: Timestamp) -> Option<&JobId> {
        self.keys.get(token).filter(|key| !key.is_over(now)).map(|key| &key.holder)
    }

    /// A new job takes its key.
    pub(super) fn take_key(&mut self, job: &Job, now: Timestamp) {
        let Some(token) = unique_token(&job.envelope) else { return };
        let until = match job.mode() {
            Some(Mode::Throttle { window }) => Some(now + window),
            _ => None,
        };
        self.keys.insert(token, Key { holder: job.id().clone(), until });
    }

    /// The key that a job takes again when it comes back, and who holds it now.
    pub(super) fn key_to_retake(&self, job: &Job, now: Timestamp) -> Option<&JobId> {
        match job.mode()? {
            Mode::Throttle { .. } => None,
            Mode::Lifecycle | Mode::Debounce { .. } => {
                self.key_holder(&unique_token(&job.envelope)?, now)
            }
        }
    }

    /// A job that comes back takes its free key again.
    pub(super) fn retake_key(&mut self, job: &Job, now: Timestamp) {
        if !matches!(job.mode(), Some(Mode::Throttle { .. })) {
            self.take_key(job, now);
        }
    }

    /// A job gives its key up, if it is the one that holds it.
    pub(super) fn free_key(&mut self, job: &Job) {
        let Some(token) = unique_token(&job.envelope) else { return };
        let held = |key: &Key| key.holder == *job.id() && key.until.is_none();
        if self.keys.get(&token).is_some_and(held) {
            self.keys.remove(&token);
        }
    }
}

/// Replacing.
impl Queue {
    /// Writes the fields of a duplicate into the holder of its key, if that is open to it; tells
    /// whether it is.
    pub(super) fn replace(&mut self, holder: &JobId, by: &Envelope, now: Timestamp) -> bool {
        let Some(found) = self.jobs.get(holder).filter(|job| is_open(job, by)) else {
            return false;
        };
        let event = Event::of(found, by);
        let fields = fields(by);
        if event.is_none() && fields.is_empty() {
            return false;
        }
        let due = match event {
            Some(event) => event.due(found, now),
            None => fields.contains(&Replace::RunAt).then(|| moment(by.run_at, now)),
        };
        let Some(mut job) = self.take(holder) else { return false };
        if fields.contains(&Replace::Payload) || event.is_some() {
            replace_payload(&mut job, by);
        }
        if fields.contains(&Replace::MaxAttempts) {
            job.envelope.max_attempts = by.max_attempts;
        }
        if fields.contains(&Replace::Priority) {
            replace_priority(&mut job, by.priority);
        }
        if let Some(due) = due {
            job.move_to(due, now);
        }
        self.put(job);
        true
    }
}

/// Whether a duplicate may write into the job that holds its key: one of its kind that waits. Of a
/// throttle key the holder may be gone, and its id another job's by now.
fn is_open(holder: &Job, by: &Envelope) -> bool {
    let waits = matches!(holder.state(), State::Pending | State::Scheduled | State::Retry);
    waits && holder.envelope.kind == by.kind && unique_token(&holder.envelope) == unique_token(by)
}

/// What the duplicate asks for. A debounced one has no time of its own.
fn fields(by: &Envelope) -> Vec<Replace> {
    let unique = by.unique.as_ref();
    let debounced = matches!(unique.map(|unique| unique.mode), Some(Mode::Debounce { .. }));
    let asked = unique.map_or(&[][..], |unique| &unique.replace);
    asked.iter().copied().filter(|field| !(debounced && *field == Replace::RunAt)).collect()
}

/// One more event of a debounced job: its window and longest wait.
#[derive(Clone, Copy)]
struct Event {
    window: std::time::Duration,
    max_wait: Option<std::time::Duration>,
}

impl Event {
    fn of(holder: &Job, by: &Envelope) -> Option<Self> {
        match (holder.mode(), by.unique.as_ref()?.mode) {
            (Some(Mode::Debounce { .. }), Mode::Debounce { window, max_wait }) => {
                Some(Self { window, max_wait })
            }
            _ => None,
        }
    }

    /// When the holder is due after it; a pending one stays where it is.
    fn due(self, holder: &Job, now: Timestamp) -> Option<Timestamp> {
        let latest = self.max_wait.map(|wait| holder.enqueued_at + wait);
        let due = latest.unwrap_or(now + self.window).min(now + self.window);
        matches!(holder.place, Place::Scheduled { .. }).then_some(due)
    }
}

/// The content by which the id is known stays the first.
fn replace_payload(job: &mut Job, by: &Envelope) {
    job.envelope.payload = by.payload.clone();
    job.envelope.codec = by.codec;
    job.envelope.version = by.version;
    job.envelope.fingerprint = by.fingerprint;
}

/// A pending job goes to the back of its new lane.
fn replace_priority(job: &mut Job, priority: u8) {
    if job.envelope.priority != priority && matches!(job.place, Place::Pending(_)) {
        job.place = Place::Pending(Position::Back);
    }
    job.envelope.priority = priority;
}
