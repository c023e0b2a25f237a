//! The one place where scripts' answers become Rust: words, outcomes, claims, views.

use crate::{
    Undecodable,
    model::{Fence, Fingerprint, JobId, QueueName, State, StoreError, Timestamp, WorkerId, record},
    store::{
        Change, Claim, Claimed, Day, Ending, EndingReason, Enqueued, Failure, Holder, JobInfo,
        Listed, Operation, Outcomes, Page, Quarantine, QueueInfo, Released, Swept,
    },
};
use bytes::Bytes;
use redis::Value;
use std::time::Duration;

macro_rules! words {
    ($($word:ident $text:literal,)*) => {
        /// Every word that a script may answer. A state's word is the state's name in capitals.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Word { $($word,)* }

        impl Word {
            #[cfg(test)]
            pub(super) const ALL: &[&str] = &[$($text),*];

            fn of(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$word),)* _ => None }
            }
        }
    };
}

words! {
    Archived "ARCHIVED",
    Backpressure "BACKPRESSURE",
    Changed "CHANGED",
    Conflict "CONFLICT",
    Duplicate "DUPLICATE",
    Existing "EXISTING",
    Expired "EXPIRED",
    Forbidden "FORBIDDEN",
    Gone "GONE",
    Invalid "INVALID",
    Late "LATE",
    Made "MADE",
    Missing "MISSING",
    Ok "OK",
    Pending "PENDING",
    Quarantined "QUARANTINED",
    Rare "RARE",
    Refused "REFUSED",
    Retry "RETRY",
    Scheduled "SCHEDULED",
    Stale "STALE",
    Unchanged "UNCHANGED",
}

/// The word of a status reply; none if the answer is data.
pub(super) fn status(answer: &Value) -> Option<Word> {
    match answer {
        Value::Okay => Some(Word::Ok),
        Value::SimpleString(text) => Word::of(text),
        _ => None,
    }
}

fn unknown(what: &str) -> StoreError {
    StoreError::Backend(format!("unknown answer of a script: {what}"))
}

fn state_of(word: &str) -> Result<State, StoreError> {
    State::ALL.into_iter().find(|s| s.word() == word).ok_or_else(|| unknown("a state"))
}

/// One line of an outcome text: `<count> <WORD> <details>`.
pub(super) struct Line<'a> {
    count: usize,
    word: Word,
    details: Vec<&'a str>,
}

/// The outcomes of a batch, a line a run.
pub(super) fn lines(answer: &Value) -> Result<Vec<Line<'_>>, StoreError> {
    let Value::BulkString(bytes) = answer else { return Err(unknown("no outcome text")) };
    let text = std::str::from_utf8(bytes).map_err(|_| unknown("not UTF-8"))?;
    text.lines().map(line).collect()
}

fn line(line: &str) -> Result<Line<'_>, StoreError> {
    let mut tokens = line.split_ascii_whitespace();
    let count = tokens.next().and_then(|count| count.parse().ok());
    let word = tokens.next().and_then(Word::of);
    match (count, word) {
        (Some(count), Some(word)) => Ok(Line { count, word, details: tokens.collect() }),
        _ => Err(unknown("not `<count> <WORD>`")),
    }
}

/// The script made the queue: it is to be registered.
pub(super) fn made(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| line.word == Word::Made)
}

/// An atomic batch was refused: the offender's index, if it is one job, and its line.
pub(super) fn refusal<'a>(lines: &'a [Line<'a>]) -> Option<(Option<usize>, &'a Line<'a>)> {
    let (first, offender) = (lines.first()?, lines.get(1)?);
    let index = first.details.first().and_then(|index| index.parse().ok());
    (first.word == Word::Refused).then_some((index, offender))
}

/// One result per item. `decide` gives the word a meaning for the verb; a word that it does not
/// know is `Backend`. There may be fewer results than `ids`, if the script says it ends early.
pub(super) fn outcomes<T>(
    lines: &[Line<'_>],
    ids: &[&JobId],
    decide: impl Fn(&Line<'_>, &JobId) -> Result<T, StoreError>,
) -> Result<Outcomes<T>, StoreError> {
    let total: usize = lines.iter().map(|line| line.count).sum();
    if total > ids.len() {
        return Err(unknown("more outcomes than jobs"));
    }
    let runs = lines.iter().flat_map(|line| std::iter::repeat_n(line, line.count));
    Ok(ids.iter().zip(runs).map(|(id, line)| decide(line, id)).collect())
}

/// What became of a job that was enqueued.
pub(super) fn enqueued(
    queue: &QueueName,
    line: &Line<'_>,
    id: &JobId,
) -> Result<Enqueued, StoreError> {
    let number = |i: usize| line.details.get(i).and_then(|n| n.parse::<u64>().ok());
    let admitted = |state, existing| Ok(Enqueued { id: id.clone(), state, existing });
    match (line.word, &*line.details) {
        (Word::Pending, []) => admitted(Some(State::Pending), false),
        (Word::Scheduled, []) => admitted(Some(State::Scheduled), false),
        (Word::Existing, [gone]) if Word::of(gone) == Some(Word::Gone) => admitted(None, true),
        (Word::Existing, [state]) => admitted(Some(state_of(state)?), true),
        (Word::Quarantined, [fingerprint]) => {
            Err(StoreError::Quarantined { fingerprint: (*fingerprint).to_owned() })
        }
        (Word::Invalid, ["deadline"]) => {
            Err(StoreError::Invalid("deadline: is past by the store's clock".into()))
        }
        (Word::Conflict, []) => Err(StoreError::IdConflict { job_id: id.to_string() }),
        (Word::Duplicate, [existing_id, replaced]) => Err(StoreError::Duplicate {
            existing_id: (*existing_id).to_owned(),
            replaced: *replaced == "1",
        }),
        (Word::Backpressure, [_, _, _]) => match (number(0), number(1), number(2)) {
            (Some(limit), Some(current), Some(incoming)) => {
                Err(StoreError::Backpressure { queue: queue.to_string(), limit, current, incoming })
            }
            _ => Err(unknown("BACKPRESSURE without numbers")),
        },
        (Word::Invalid, ["record"]) => {
            Err(StoreError::Invalid("record: not one that a script can read".into()))
        }
        _ => Err(unknown("a word that enqueue does not have")),
    }
}

/// A fenced verb that was done or refused.
pub(super) fn fenced(line: &Line<'_>, id: &JobId) -> Result<(), StoreError> {
    match line.word {
        Word::Ok => Ok(()),
        Word::Stale => Err(StoreError::LeaseRejected { job_id: id.to_string() }),
        _ => Err(unknown("a word that a fenced verb does not have")),
    }
}

/// Where a failed job went.
pub(super) fn retried(line: &Line<'_>, id: &JobId) -> Result<State, StoreError> {
    match line.word {
        Word::Retry => Ok(State::Retry),
        Word::Archived => Ok(State::Archived),
        _ => fenced(line, id).and(Err(unknown("a word that retry does not have"))),
    }
}

/// What an operator's verb did.
pub(super) fn operated(
    operation: Operation,
    line: &Line<'_>,
    id: &JobId,
) -> Result<Change, StoreError> {
    match (line.word, &*line.details) {
        (Word::Missing, []) => Err(StoreError::NotFound(format!("job {id}"))),
        (Word::Forbidden, [state]) => Err(operation.forbidden(state_of(state)?)),
        (Word::Expired, []) => {
            Err(StoreError::Invalid("deadline: is past; rerun needs one to come".into()))
        }
        (Word::Quarantined, [fingerprint]) => {
            Err(StoreError::Quarantined { fingerprint: (*fingerprint).to_owned() })
        }
        (Word::Duplicate, [existing_id, _]) => {
            Err(StoreError::Duplicate { existing_id: (*existing_id).to_owned(), replaced: false })
        }
        _ => changed(line),
    }
}

fn changed(line: &Line<'_>) -> Result<Change, StoreError> {
    match line.word {
        Word::Changed => Ok(Change::Changed),
        Word::Unchanged => Ok(Change::Unchanged),
        _ => Err(unknown("a word that an operator's verb does not have")),
    }
}

/// Whether a fingerprint was put into quarantine.
pub(super) fn quarantined(lines: &[Line<'_>]) -> Result<Change, StoreError> {
    let line = lines.iter().find(|line| line.count == 1).ok_or_else(|| unknown("no outcome"))?;
    changed(line)
}

/// Whether a queue was deleted; one that was not there counts as deleted.
pub(super) fn queue_deleted(lines: &[Line<'_>]) -> Result<(), StoreError> {
    match lines {
        [Line { word: Word::Ok | Word::Missing, .. }] => Ok(()),
        [Line { word: Word::Refused, details, .. }] => {
            let left = details.first().unwrap_or(&"some");
            Err(StoreError::Invalid(format!("unfinished: {left}; must be 0 unless forced")))
        }
        _ => Err(unknown("a word that delete does not have")),
    }
}

/// One slice of a release: whether the fingerprint was closed, and how many to pass over next.
pub(super) fn released(answer: &Value) -> Result<(bool, Released, Option<u64>), StoreError> {
    let Value::BulkString(bytes) = answer else { return Err(unknown("no release")) };
    let text = std::str::from_utf8(bytes).map_err(|_| unknown("not UTF-8"))?;
    let parts: Vec<_> = text.split(' ').collect();
    let [closed, released, archived, next] = *parts else { return Err(unknown("no release")) };
    let slice = Released { released: number(released)?, archived: number(archived)? };
    Ok((closed == "1", slice, if next == "-" { None } else { Some(number(next)?) }))
}

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

fn number<T: std::str::FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| unknown("no number"))
}

/// `<attempt> <crash>`. What somebody's hand has broken counts as none, as in the scripts: a job in
/// its holder's hands must not be lost for it.
fn tries(text: &str) -> (u32, u32) {
    let counts = text
        .split_once(' ')
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

/// What a claim handed over.
pub(super) fn claim(queue: &QueueName, answer: Value) -> Result<Claim, StoreError> {
    let mut reply = Elements::of(answer)?;
    let fence = Fence(number(&reply.text()?)?);
    let lease_expires_at = Timestamp::from_millis(reply.count()?);
    let more = reply.int()? == 1;
    let mut tried = Elements::of(reply.value()?)?;
    let mut jobs = Vec::with_capacity(reply.0.len() / 2);
    while reply.0.len() > 0 {
        let id = JobId::new(reply.text()?)?;
        let envelope = envelope(queue, &id, reply.bytes()?);
        jobs.push(Claimed { id, fence, attempt: 0, crash: 0, lease_expires_at, envelope });
    }
    while tried.0.len() > 0 {
        let (index, counts) = (tried.count()?, tries(&tried.text()?));
        let index = usize::try_from(index).map_err(|_| unknown("an index"))?;
        let job: &mut Claimed = jobs.get_mut(index).ok_or_else(|| unknown("an index"))?;
        (job.attempt, job.crash) = counts;
    }
    Ok(Claim { jobs, more })
}

/// One slice of a sweep, and whether it was full.
pub(super) fn swept(answer: Value) -> Result<(Swept, bool), StoreError> {
    let mut reply = Elements::of(answer)?;
    let again = reply.int()? == 1;
    let swept = Swept {
        promoted: reply.count()?,
        reclaimed: reply.count()?,
        quarantined: reply.count()?,
        expired: reply.count()?,
        evicted: reply.count()?,
        claimable: reply.int()? == 1,
        next_due: reply.optional()?.map(Duration::from_millis),
    };
    Ok((swept, again))
}

/// Everything known of a job.
pub(super) fn job(queue: &QueueName, id: &JobId, answer: Value) -> Result<JobInfo, StoreError> {
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
    let (attempt, crash) = tries(&reply.text_if_any()?.unwrap_or_default());
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

fn ending(text: &str) -> Result<Option<Ending>, StoreError> {
    let mut tokens = text.split(' ');
    let (Some(reason), Some(at)) = (tokens.next(), tokens.next()) else { return Ok(None) };
    let reason = EndingReason::ALL.into_iter().find(|known| known.as_str() == reason);
    Ok(Some(Ending {
        reason: reason.ok_or_else(|| unknown("an ending"))?,
        at: Timestamp::from_millis(number(at)?),
        worker: tokens.next().filter(|worker| *worker != "-").map(WorkerId::new).transpose()?,
    }))
}

/// A queue's counters.
pub(super) fn queue(queue: &QueueName, answer: Value) -> Result<QueueInfo, StoreError> {
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
pub(super) fn woken(answer: Value) -> Result<Option<String>, StoreError> {
    match answer {
        Value::Nil => Ok(None),
        answer => Elements::of(answer)?.text().map(Some),
    }
}

/// The members of the set of queues, sorted. A name that no queue can have is somebody else's.
pub(super) fn queues(answer: Value) -> Result<Vec<QueueName>, StoreError> {
    let mut names = Elements::of(answer)?;
    let mut queues = Vec::new();
    while names.0.len() > 0 {
        queues.extend(QueueName::new(names.text()?).ok());
    }
    queues.sort();
    Ok(queues)
}

/// A page of a listing.
pub(super) fn page(queue: &QueueName, answer: Value) -> Result<Page, StoreError> {
    let mut reply = Elements::of(answer)?;
    let cursor = Some(reply.text()?).filter(|cursor| !cursor.is_empty());
    let mut jobs = Vec::with_capacity(reply.0.len() / 3);
    while reply.0.len() > 0 {
        let id = JobId::new(reply.text()?)?;
        let time = reply.text()?;
        let at =
            (!time.is_empty()).then(|| number(&time).map(Timestamp::from_millis)).transpose()?;
        let header = [&reply.bytes()?[..], b"\n"].concat();
        let envelope = envelope(queue, &id, header.into());
        jobs.push(Listed { id, envelope, at });
    }
    Ok(Page { jobs, cursor })
}

/// A slice of the fingerprints in quarantine, and where the next one begins.
pub(super) fn quarantines(answer: Value) -> Result<(Option<String>, Vec<Quarantine>), StoreError> {
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
    for (name, value) in line.split(' ').filter_map(|field| field.split_once('=')) {
        match name {
            "since" => entry.since = Timestamp::from_millis(number(value).unwrap_or(0)),
            "crashes" => entry.crashes = number(value).unwrap_or(0),
            "sample" => entry.sample_id = JobId::new(value).ok(),
            "worker" => entry.worker = WorkerId::new(value).ok(),
            "reason" => entry.reason = Some(record::decoded(value)),
            // A later version's.
            _ => {}
        }
    }
    Some(entry)
}

/// Counters by day; `width` of them follow each day's name.
pub(super) fn days(answer: Value) -> Result<Vec<Day>, StoreError> {
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
