//! Errors: one object or one line on stderr, and an exit code by variant.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sprag::StoreError;
use std::{
    io::{ErrorKind, Write},
    process::ExitCode,
};

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store's answer, and the line of a file that it is about.
    Store { error: StoreError, line: Option<usize> },
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
    /// Writes the error down and answers the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let (object, code) = match self {
            Self::BrokenPipe => return ExitCode::SUCCESS,
            Self::Store { error, line } => (Object::of(error, *line), exit_code(error)),
            Self::Other(error) => (Object::plain("other", &format!("{error:#}")), 1),
        };
        object.say(json);
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
    if json {
        let first = text.lines().next().unwrap_or_default();
        Object::plain("invalid", first.strip_prefix("error: ").unwrap_or(first)).say(true);
    } else {
        let _ = writeln!(std::io::stderr(), "{}", redacted(text.trim_end()));
    }
    ExitCode::from(2)
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

    fn say(&self, json: bool) {
        let text = match (json, self.line) {
            (true, _) => serde_json::to_string(self).unwrap_or_default(),
            (false, Some(line)) => format!("sprag: line {line}: {}", self.message),
            (false, None) => format!("sprag: {}", self.message),
        };
        // If nobody reads stderr there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
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

/// The text without what stands between `://` and `@`: user and password of a URL. A URL may reach
/// an error text by ways that nobody thought of, such as a flag in the wrong place.
pub(crate) fn redacted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + 3);
        kept.push_str(before);
        let end = after.find(|c: char| c.is_whitespace()).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            // The form of a URL, in a text that explains it.
            Some(_) if after.starts_with("[user:password@]") => after,
            Some(at) => {
                kept.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_at_of_a_url_is_never_shown() {
        for (text, shown) in [
            ("no url", "no url"),
            ("redis://h:1/0", "redis://h:1/0"),
            ("redis://[user:password@]host", "redis://[user:password@]host"),
            ("'redis://:s3cret@h' found", "'redis://***@h' found"),
            ("a redis://u:p@ss/w@h b x://y:z@i", "a redis://***@h b x://***@i"),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }
}
