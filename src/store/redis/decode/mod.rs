//! The one place where scripts' answers become Rust: words and outcomes here, arrays in `replies`.

mod replies;

pub(super) use replies::{
    Broken, claim, days, job, page, quarantines, queue, queues, swept, woken,
};

use crate::{
    model::{JobId, QueueName, State, StoreError},
    store::{Change, Enqueued, Operation, Outcomes, Released},
};
use redis::Value;
use replies::number;

macro_rules! words {
    ($($word:ident $text:literal,)*) => {
        /// Every word that a script may answer. A state's word is the state's name in capitals.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Word { $($word,)* }

        impl Word {
            pub(in crate::store::redis) const ALL: &[&str] = &[$($text),*];

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

/// The enqueue tells that the queue is there. What it would refuse in any queue does not tell.
pub(super) fn is_there(lines: &[Line<'_>]) -> bool {
    let refused = lines.first().is_some_and(|line| line.word == Word::Refused);
    !refused && lines.iter().any(|line| line.word != Word::Invalid)
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
