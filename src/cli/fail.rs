//! Errors: one object or one line on stderr, and an exit code by variant.

use crate::{out, redact::redacted};
use clap::error::{ContextKind, ContextValue, ErrorKind as ClapKind};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sprag::{Envelope, JobId, QueueName, StoreError};
use std::{
    io::{ErrorKind, Write},
    process::ExitCode,
};

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store's answer, and the line of a file that it is about.
    Store { error: StoreError, line: Option<usize> },
    /// An enqueue call failed on the way, and its jobs may be there or not: their ids, and their lines if
    /// they stand in a file.
    Unsure { error: StoreError, ids: Vec<JobId>, lines: Vec<usize> },
    /// Some of many were refused, each of which has been told of: the first one's error, and its
    /// line or id.
    Refused { error: StoreError, line: Option<usize>, id: Option<JobId>, refused: u64 },
    /// A wait was over before its job.
    TimedOut(String),
    /// Nobody reads on: a success.
    BrokenPipe,
    /// Anything else.
    Other(anyhow::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store { error, line: None }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Other(error.into()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<StoreError>() {
            Ok(error) => error.into(),
            Err(error) => Self::Other(error),
        }
    }
}

impl Failure {
    /// A call that enqueues this job failed.
    pub(crate) fn unsure(error: StoreError, job: &Envelope) -> Self {
        Self::unsure_lines(error, &[], std::slice::from_ref(job), None)
    }

    /// A call that enqueues these jobs of these lines failed; `line`: the first that is not told of.
    pub(crate) fn unsure_lines(
        error: StoreError,
        lines: &[usize],
        jobs: &[Envelope],
        line: Option<usize>,
    ) -> Self {
        let may_have = matches!(error, StoreError::Unavailable(_) | StoreError::Backend(_));
        if !may_have || error.wrote_nothing() {
            return Self::Store { error, line };
        }
        let ids = jobs.iter().map(|job| job.id().clone()).collect();
        Self::Unsure { error, ids, lines: lines.to_vec() }
    }

    /// Says what stands although the command failed. A pipe that nobody reads is no failure.
    pub(crate) fn although(self, what: String) -> Self {
        match self {
            Self::Other(error) => Self::Other(error.context(what)),
            failure => failure,
        }
    }

    /// Writes the error down and answers the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let (object, code) = match self {
            Self::BrokenPipe => return ExitCode::SUCCESS,
            Self::Store { error, line } => (Object::of(error, *line), exit_code(error)),
            Self::Unsure { error, ids, lines } => {
                (Object::unsure(error, ids, lines), exit_code(error))
            }
            // People have read the refusals on stderr already, and the summary.
            Self::Refused { error, .. } if !json => return ExitCode::from(exit_code(error)),
            Self::Refused { error, line, id, refused } => {
                (Object::refused(error, *line, id.as_ref(), *refused), exit_code(error))
            }
            Self::TimedOut(text) => (Object::plain("timed_out", text), 1),
            Self::Other(error) => (Object::plain("other", &format!("{error:#}")), 1),
        };
        object.say(json);
        if let (Self::Unsure { ids, lines, .. }, false) = (self, json) {
            lines.iter().zip(ids).for_each(|(line, id)| out::warn(&format!("line {line}: {id}")));
        }
        ExitCode::from(code)
    }
}

/// A command line that clap refuses; also `--help` and `--version`, which are successes.
pub(crate) fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        // Help that nobody reads on is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let not_utf_8 = std::env::args_os().skip(1).position(|arg| arg.to_str().is_none());
    match not_utf_8 {
        // Nothing is quoted: what is half legible may be a secret nevertheless.
        Some(place) if error.kind() == ClapKind::InvalidUtf8 || text.contains('\u{fffd}') => {
            let message = format!("invalid argument: number {} is not UTF-8", place + 1);
            Object::plain("invalid", &message).say(json);
        }
        _ if json => Object::plain("invalid", &usage_message(error, &text)).say(true),
        _ => {
            let _ = writeln!(std::io::stderr(), "{}", redacted(text.trim_end()));
        }
    }
    ExitCode::from(2)
}

/// All that clap says, on one line, but for the usage.
fn usage_message(error: &clap::Error, text: &str) -> String {
    if error.kind() == ClapKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing: see --help".to_owned();
    }
    let text = text.trim_end();
    let text = text.strip_suffix("For more information, try '--help'.").unwrap_or(text).trim_end();
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let text = text.strip_suffix(usage.trim_end()).unwrap_or(text);
    let text = redacted(text.strip_prefix("error: ").unwrap_or(text));
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").replace(" tip: ", "; tip: ")
}

/// What an error tells: variant, message, the variant's fields, and the line of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Object {
    error: &'static str,
    message: String,
    #[serde(flatten)]
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl Object {
    fn plain(error: &'static str, message: &str) -> Self {
        Self { error, message: redacted(message), fields: Map::new(), line: None }
    }

    pub(crate) fn of(error: &StoreError, line: Option<usize>) -> Self {
        let (name, fields) = match error {
            StoreError::Duplicate { existing_id, replaced } => {
                ("duplicate", json!({ "existing_id": existing_id, "replaced": replaced }))
            }
            StoreError::IdConflict { job_id } => ("id_conflict", json!({ "job_id": job_id })),
            StoreError::Quarantined { fingerprint } => {
                ("quarantined", json!({ "fingerprint": fingerprint }))
            }
            StoreError::Backpressure { queue, limit, current, incoming } => (
                "backpressure",
                json!({ "queue": queue, "limit": limit, "current": current, "incoming": incoming }),
            ),
            StoreError::LeaseRejected { job_id } => ("lease_rejected", json!({ "job_id": job_id })),
            StoreError::Unavailable(_) => ("unavailable", Value::Null),
            StoreError::NotFound(_) => ("not_found", Value::Null),
            StoreError::Invalid(_) => ("invalid", Value::Null),
            StoreError::Backend(_) => ("backend", Value::Null),
        };
        let fields = fields.as_object().cloned().unwrap_or_default();
        Self { fields, line, ..Self::plain(name, &error.to_string()) }
    }

    /// The same of a job that is one of many.
    pub(crate) fn of_job(error: &StoreError, id: &JobId) -> Self {
        Self::of(error, None).with("id", json!(id.as_str()))
    }

    /// The same of a queue that is one of many.
    pub(crate) fn of_queue(error: &StoreError, queue: &str) -> Self {
        let mut object = Self::of(error, None).with("queue", json!(queue));
        object.message = redacted(&format!("queue {queue}: {error}"));
        object
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    /// Of a command that did what it could.
    fn refused(error: &StoreError, line: Option<usize>, id: Option<&JobId>, refused: u64) -> Self {
        let mut object = Self::of(error, line).with("refused", json!(refused));
        if let Some(id) = id {
            object = object.with("id", json!(id.as_str()));
        }
        object.message = format!("{refused} refused; the first: {}", object.message);
        object
    }

    /// Says which jobs may be there or not.
    fn unsure(error: &StoreError, ids: &[JobId], lines: &[usize]) -> Self {
        let mut object = Self::of(error, lines.first().copied());
        let (name, value, hint) = match (ids, lines) {
            ([id], []) => {
                let hint = format!(
                    "the job may have been enqueued: the same command with --id {id} is safe"
                );
                ("id", json!(id.as_str()), hint)
            }
            _ => {
                let job = |(line, id): (&usize, &JobId)| json!({ "line": line, "id": id.as_str() });
                let jobs: Value = lines.iter().zip(ids).map(job).collect();
                let (first, last) = (lines.first().unwrap_or(&0), lines.last().unwrap_or(&0));
                let hint = format!("lines {first} to {last} may have been enqueued, by these ids");
                ("jobs", jobs, hint)
            }
        };
        object = object.with(name, value);
        object.message = format!("{}; {hint}", object.message);
        object
    }

    pub(crate) fn say(&self, json: bool) {
        let text = match (json, self.line) {
            (true, _) => serde_json::to_string(self).unwrap_or_default(),
            (false, Some(line)) => format!("sprag: line {line}: {}", self.message),
            (false, None) => format!("sprag: {}", self.message),
        };
        // If nobody reads stderr there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// If no queue could be looked at since none answered, that is the store's state.
pub(crate) fn unless_all_are_away(
    seen: usize,
    damaged: &[(QueueName, StoreError)],
) -> Result<(), Failure> {
    let away = |(_, error): &(_, _)| matches!(error, StoreError::Unavailable(_));
    match damaged.first() {
        Some((_, error)) if seen == 0 && damaged.iter().all(away) => Err(error.clone().into()),
        _ => Ok(()),
    }
}

/// Says what is wrong with each queue that could not be looked at; the others were shown.
pub(crate) fn damaged(queues: &[(QueueName, StoreError)], json: bool) -> ExitCode {
    for (queue, error) in queues {
        Object::of_queue(error, queue.as_str()).say(json);
    }
    ExitCode::from(queues.first().map_or(0, |(_, error)| exit_code(error)))
}

pub(crate) fn exit_code(error: &StoreError) -> u8 {
    match error {
        StoreError::Backend(_) => 1,
        StoreError::Invalid(_) => 2,
        StoreError::NotFound(_) => 3,
        StoreError::Duplicate { .. } => 4,
        StoreError::IdConflict { .. } => 5,
        StoreError::Quarantined { .. } => 6,
        StoreError::Backpressure { .. } => 7,
        StoreError::LeaseRejected { .. } => 8,
        StoreError::Unavailable(_) => 9,
    }
}
