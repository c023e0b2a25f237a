//! Array replies: claims, sweeps, and what is shown of jobs and queues.

use super::{Word, state_of, status, unknown};
use crate::{
    Undecodable,
    model::{Fence, Fingerprint, JobId, QueueName, State, StoreError, Timestamp, WorkerId, record},
    store::{
        Claim, Claimed, Day, Ended, Ending, EndingReason, Failure, Held, Holder, JobInfo, Listed,
        Page, Quarantine, QueueInfo, Swept,
    },
};
use bytes::Bytes;
use redis::Value;
use std::{collections::HashMap, time::Duration};

/// Takes an array reply apart, element by element.
struct Elements(std::vec::IntoIter<Value>);

impl Elements {
    fn of(answer: Value) -> Result<Self, StoreError> {
        match answer {
            Value::Array(values) => Ok(Self(values.into_iter())),
            _ => Err(unknown("no array")),
        }
    }

    fn value(&mut self) -> Result<Value, StoreError> {
        self.0.next().ok_or_else(|| unknown("a short array"))
    }

    fn bytes(&mut self) -> Result<Bytes, StoreError> {
        match self.value()? {
            Value::BulkString(bytes) => Ok(bytes.into()),
            _ => Err(unknown("no text")),
        }
    }

    fn bytes_if_any(&mut self) -> Result<Option<Bytes>, StoreError> {
        match self.value()? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes.into())),
            _ => Err(unknown("no text")),
        }
    }

    fn text_if_any(&mut self) -> Result<Option<String>, StoreError> {
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec());
        self.bytes_if_any()?.map(text).transpose().map_err(|_| unknown("not UTF-8"))
    }

    fn text(&mut self) -> Result<String, StoreError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| unknown("not UTF-8"))
    }

    fn int(&mut self) -> Result<i64, StoreError> {
        match self.value()? {
            Value::Int(number) => Ok(number),
            _ => Err(unknown("no number")),
        }
    }

    /// A number, of which -1 means that there is none.
    fn optional(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(u64::try_from(self.int()?).ok())
    }

    fn count(&mut self) -> Result<u64, StoreError> {
        // A counter that somebody's hand made negative is shown as none, doctor tells the rest.
        Ok(self.optional()?.unwrap_or(0))
    }
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| unknown("no number"))
}

/// `<attempt> <crash>`. What somebody's hand has broken counts as none, as in the scripts: a job in
/// its holder's hands must not be lost for it.
fn tries(text: &[u8]) -> (u32, u32) {
    let counts = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.split_once(' '))
        .and_then(|(attempt, crash)| Some((attempt.parse().ok()?, crash.parse().ok()?)));
    counts.unwrap_or_default()
}

fn envelope(
    queue: &QueueName,
    id: &JobId,
    bytes: Bytes,
) -> Result<(crate::model::Envelope, Timestamp), Undecodable> {
    record::decode(queue, id, bytes).map(|record| (record.envelope, record.enqueued_at))
}

/// A job that a script handed over though its record cannot be decoded: the script looks at a part
/// of the header only.
pub(in crate::store::redis) struct Broken {
    pub(in crate::store::redis) held: Held,
    pub(in crate::store::redis) why: Undecodable,
}

/// What a claim handed over.
pub(in crate::store::redis) fn claim(
    queue: &QueueName,
    answer: Value,
) -> Result<(Claim, Vec<Broken>), StoreError> {
    let mut reply = Elements::of(answer)?;
    let fence = Fence(number(&reply.text()?)?);
    let lease_expires_at = Timestamp::from_millis(reply.count()?);
    let more = reply.int()? == 1;
    let (mut tried, ended) = notes(Elements::of(reply.value()?)?)?;
    let mut jobs = Vec::with_capacity(reply.0.len() / 2);
    let mut broken = Vec::new();
    for index in 0.. {
        if reply.0.len() == 0 {
            break;
        }
        let id = JobId::new(reply.text()?)?;
        let (attempt, crash) = tried.remove(&index).unwrap_or_default();
        match envelope(queue, &id, reply.bytes()?) {
            Ok((envelope, enqueued_at)) => jobs.push(Claimed {
                id,
                fence,
                attempt,
                crash,
                lease_expires_at,
                envelope,
                enqueued_at,
            }),
            Err(why) => broken.push(Broken { held: Held { id, fence }, why }),
        }
    }
    if !tried.is_empty() {
        return Err(unknown("an index"));
    }
    Ok((Claim { jobs, more, ended }, broken))
}

/// Attempt and crash by place in the claim, of jobs that failed before.
type Tried = HashMap<i64, (u32, u32)>;

/// What a claim notes beside its jobs: who failed before, and who ended.
fn notes(mut notes: Elements) -> Result<(Tried, Vec<Ended>), StoreError> {
    let (mut tried, mut ended) = (Tried::new(), Vec::new());
    while notes.0.len() > 0 {
        match notes.value()? {
            Value::Int(index) => drop(tried.insert(index, tries(&notes.bytes()?))),
            Value::BulkString(id) => ended.push(end(id, &notes.text()?)?),
            _ => return Err(unknown("a note")),
        }
    }
    Ok((tried, ended))
}

/// A job that ended in nobody's hands.
fn end(id: Vec<u8>, reason: &str) -> Result<Ended, StoreError> {
    let id = String::from_utf8(id).map_err(|_| unknown("not UTF-8"))?;
    Ok(Ended::of(JobId::new(id)?, ending_reason(reason)?))
}

/// One slice of a sweep, and whether it was full.
pub(in crate::store::redis) fn swept(answer: Value) -> Result<(Swept, bool), StoreError> {
    let mut reply = Elements::of(answer)?;
    let again = reply.int()? == 1;
    let mut swept = Swept {
        promoted: reply.count()?,
        reclaimed: reply.count()?,
        quarantined: reply.count()?,
        expired: reply.count()?,
        evicted: reply.count()?,
        claimable: reply.int()? == 1,
        next_due: reply.optional()?.map(Duration::from_millis),
        ended: Vec::new(),
    };
    while reply.0.len() > 0 {
        swept.ended.push(end(reply.bytes()?.into(), &reply.text()?)?);
    }
    Ok((swept, again))
}

/// Everything known of a job.
pub(in crate::store::redis) fn job(
    queue: &QueueName,
    id: &JobId,
    answer: Value,
) -> Result<JobInfo, StoreError> {
    if status(&answer) == Some(Word::Missing) {
        return Err(StoreError::NotFound(format!("job {id}")));
    }
    let mut reply = Elements::of(answer)?;
    let state = match reply.value()? {
        Value::SimpleString(word) => state_of(&word)?,
        _ => return Err(unknown("no state")),
    };
    let time = reply.text()?;
    let time = (!time.is_empty()).then(|| number(&time).map(Timestamp::from_millis)).transpose()?;
    let envelope = envelope(queue, id, reply.bytes()?);
    let (attempt, crash) = tries(&reply.bytes_if_any()?.unwrap_or_default());
    let errors = failures(&reply.text_if_any()?.unwrap_or_default())?;
    let holder = holder(&reply.text_if_any()?.unwrap_or_default(), time)?;
    let result = reply.bytes_if_any()?;
    let ending = ending(&reply.text_if_any()?.unwrap_or_default())?;
    let progress = reply.text_if_any()?;
    let due_at = time.filter(|_| matches!(state, State::Scheduled | State::Retry));
    let evicted_at = time.filter(|_| !state.is_unfinished());
    let id = id.clone();
    Ok(JobInfo {
        id,
        state,
        envelope,
        attempt,
        crash,
        due_at,
        holder,
        progress,
        errors,
        result,
        ending,
        evicted_at,
    })
}

fn failures(lines: &str) -> Result<Vec<Failure>, StoreError> {
    let failure = |line| serde_json::from_str(line).map_err(|_| unknown("a failure"));
    lines.lines().map(failure).collect()
}

fn holder(entry: &str, lease: Option<Timestamp>) -> Result<Option<Holder>, StoreError> {
    let mut tokens = entry.split(' ');
    match (tokens.next(), tokens.next(), lease) {
        (Some(fence), Some(worker), Some(lease_expires_at)) => Ok(Some(Holder {
            worker: WorkerId::new(worker)?,
            fence: Fence(number(fence)?),
            lease_expires_at,
        })),
        _ => Ok(None),
    }
}

fn ending_reason(text: &str) -> Result<EndingReason, StoreError> {
    let known = EndingReason::ALL.into_iter().find(|known| known.as_str() == text);
    known.ok_or_else(|| unknown("an ending"))
}

fn ending(text: &str) -> Result<Option<Ending>, StoreError> {
    let mut tokens = text.split(' ');
    let (Some(reason), Some(at)) = (tokens.next(), tokens.next()) else { return Ok(None) };
    Ok(Some(Ending {
        reason: ending_reason(reason)?,
        at: Timestamp::from_millis(number(at)?),
        worker: tokens.next().filter(|worker| *worker != "-").map(WorkerId::new).transpose()?,
    }))
}

/// A queue's counters.
pub(in crate::store::redis) fn queue(
    queue: &QueueName,
    answer: Value,
) -> Result<QueueInfo, StoreError> {
    if status(&answer) == Some(Word::Missing) {
        return Err(StoreError::NotFound(format!("queue {queue}")));
    }
    let mut reply = Elements::of(answer)?;
    Ok(QueueInfo {
        queue: queue.to_string(),
        pending: reply.count()?,
        scheduled: reply.count()?,
        active: reply.count()?,
        retry: reply.count()?,
        completed: reply.count()?,
        archived: reply.count()?,
        cancelled: reply.count()?,
        quarantined: reply.count()?,
        unfinished: reply.count()?,
        limit: reply.optional()?,
        paused: reply.int()? == 1,
        oldest_pending_ms: reply.optional()?,
        completed_today: reply.count()?,
        failed_today: reply.count()?,
    })
}

/// The queue that a wake token was taken from: `[key, token]`, or nil after the timeout.
pub(in crate::store::redis) fn woken(answer: Value) -> Result<Option<String>, StoreError> {
    match answer {
        Value::Nil => Ok(None),
        answer => Elements::of(answer)?.text().map(Some),
    }
}

/// The members of the set of queues, sorted. A name that no queue can have is somebody else's.
pub(in crate::store::redis) fn queues(answer: Value) -> Result<Vec<QueueName>, StoreError> {
    let mut names = Elements::of(answer)?;
    let mut queues = Vec::new();
    while names.0.len() > 0 {
        let name = String::from_utf8(names.bytes()?.into()).ok();
        queues.extend(name.and_then(|name| QueueName::new(name).ok()));
    }
    queues.sort();
    Ok(queues)
}

/// A page of a listing.
pub(in crate::store::redis) fn page(queue: &QueueName, answer: Value) -> Result<Page, StoreError> {
    let mut reply = Elements::of(answer)?;
    let cursor = Some(reply.text()?).filter(|cursor| !cursor.is_empty());
    let mut jobs = Vec::with_capacity(reply.0.len() / 3);
    while reply.0.len() > 0 {
        let id = JobId::new(reply.text()?)?;
        let time = reply.text()?;
        let at =
            (!time.is_empty()).then(|| number(&time).map(Timestamp::from_millis)).transpose()?;
        let envelope = envelope(queue, &id, reply.bytes()?);
        jobs.push(Listed { id, envelope, at });
    }
    Ok(Page { jobs, cursor })
}

/// A slice of the fingerprints in quarantine, and where the next one begins.
pub(in crate::store::redis) fn quarantines(
    answer: Value,
) -> Result<(Option<String>, Vec<Quarantine>), StoreError> {
    let mut reply = Elements::of(answer)?;
    let cursor = Some(reply.text()?).filter(|cursor| cursor != "0");
    let mut slice = Vec::new();
    while reply.0.len() > 0 {
        slice.extend(quarantine(&reply.text()?, &reply.text()?));
    }
    Ok((cursor, slice))
}

/// What somebody's hand has broken is left out.
fn quarantine(fingerprint: &str, line: &str) -> Option<Quarantine> {
    let mut entry = Quarantine {
        fingerprint: Fingerprint::new(fingerprint).ok()?,
        since: Timestamp::from_millis(0),
        crashes: 0,
        sample_id: None,
        worker: None,
        reason: None,
    };
    let mut window = None;
    for (name, value) in line.split(' ').filter_map(|field| field.split_once('=')) {
        match name {
            "since" => entry.since = Timestamp::from_millis(number(value).unwrap_or(0)),
            "crashes" => entry.crashes = number(value).unwrap_or(0),
            "sample" => entry.sample_id = JobId::new(value).ok(),
            "worker" => entry.worker = WorkerId::new(value).ok(),
            "window" => window = number(value).ok().map(Duration::from_millis),
            "reason" => entry.reason = Some(record::decoded(value)),
            // A later version's.
            _ => {}
        }
    }
    // An operator's entry counts no crash.
    let crashed = entry.crashes > 0 && entry.reason.is_none();
    Some(if crashed { entry.for_crashes(window) } else { entry })
}

/// Counters by day; `width` of them follow each day's name.
pub(in crate::store::redis) fn days(answer: Value) -> Result<Vec<Day>, StoreError> {
    let mut reply = Elements::of(answer)?;
    let mut days = Vec::new();
    while reply.0.len() > 0 {
        days.push(Day {
            day: reply.text()?,
            completed: reply.count()?,
            failed: reply.count()?,
            crashed: reply.count()?,
            expired: reply.count()?,
            quarantined: reply.count()?,
        });
    }
    Ok(days)
}
