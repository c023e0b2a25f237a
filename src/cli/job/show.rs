//! `sprag job show`.

use crate::{
    args::Global,
    connect,
    envelope::EnvelopeFields,
    fail::Failure,
    out,
    payload::{self, Shown},
    units,
};
use serde::Serialize;
use serde_json::value::RawValue;
use sprag::{
    JobId, QueueName, State,
    store::{EndingReason, Failure as Failed, JobInfo},
};

pub(super) async fn show(
    global: &Global,
    queue: &QueueName,
    id: &JobId,
    payload: bool,
) -> Result<(), Failure> {
    let job = connect::inspector(global)?.job(queue, id).await?;
    let answer = Answer::of(queue, &job, payload);
    if global.json { out::object(&answer) } else { answer.table() }
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    queue: &'a str,
    state: State,
    attempt: u32,
    crash: u32,
    #[serde(flatten)]
    envelope: Option<EnvelopeFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undecodable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<u64>,
    /// Who holds it, or held it when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<EndingReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted_at: Option<u64>,
    errors: Vec<FailedFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(flatten)]
    payload: Option<Shown>,
}

#[derive(Serialize)]
struct FailedFields<'a> {
    failed_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crash: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> FailedFields<'a> {
    fn of(failed: &'a Failed) -> Self {
        Self {
            failed_at: failed.at.as_millis(),
            attempt: failed.attempt,
            crash: failed.crash,
            worker: failed.worker.as_deref(),
            error: failed.error.as_deref(),
        }
    }

    fn line(&self) -> String {
        let what = match (self.attempt, self.crash) {
            (Some(attempt), _) => format!("attempt {attempt}: "),
            (None, Some(crash)) => format!("crash {crash}: "),
            (None, None) => String::new(),
        };
        let error = self.error.unwrap_or("its worker vanished");
        format!("{} {what}{error}", at(self.failed_at))
    }
}

impl<'a> Answer<'a> {
    fn of(queue: &'a QueueName, job: &'a JobInfo, payload: bool) -> Self {
        let envelope = job.envelope.as_ref().ok();
        let (holder, ending) = (job.holder.as_ref(), job.ending.as_ref());
        let ended_by = ending.and_then(|ending| ending.worker.as_ref());
        let result = job.result.as_deref().and_then(|text| std::str::from_utf8(text).ok());
        Self {
            id: job.id.as_str(),
            queue: queue.as_str(),
            state: job.state,
            attempt: job.attempt,
            crash: job.crash,
            envelope: envelope.map(|(envelope, at)| EnvelopeFields::of(envelope, *at)),
            undecodable: job.envelope.as_ref().err().map(ToString::to_string),
            due_at: job.due_at.map(|at| at.as_millis()),
            worker: holder.map(|h| &h.worker).or(ended_by).map(sprag::WorkerId::as_str),
            fence: holder.map(|holder| holder.fence.0),
            lease_expires_at: holder.map(|holder| holder.lease_expires_at.as_millis()),
            reason: ending.map(|ending| ending.reason),
            ended_at: ending.map(|ending| ending.at.as_millis()),
            evicted_at: job.evicted_at.map(|at| at.as_millis()),
            errors: job.errors.iter().map(FailedFields::of).collect(),
            result: result.and_then(payload::raw_json),
            progress: job.progress.as_deref().and_then(payload::raw_json),
            payload: envelope.filter(|_| payload).map(|(envelope, _)| Shown::of(envelope)),
        }
    }

    /// For people: the same names and values, below each other.
    fn table(mut self) -> Result<(), Failure> {
        // Texts that are shown as they are stored: no reader in between that has limits of its own.
        let (payload, result) = (self.payload.take(), self.result.take());
        let progress = self.progress.take();
        let object = serde_json::to_value(&self).map_err(anyhow::Error::from)?;
        let mut rows = Vec::new();
        for (name, value) in object.as_object().into_iter().flatten() {
            let text = match value {
                _ if name == "errors" => continue,
                serde_json::Value::String(text) => text.clone(),
                value if name.ends_with("_at") => value.as_u64().map_or(String::new(), at),
                value => value.to_string(),
            };
            rows.push((name.as_str(), text));
        }
        rows.extend(progress.iter().map(|told| ("progress", told.get().to_owned())));
        rows.extend(result.iter().map(|result| ("result", result.get().to_owned())));
        rows.extend(payload.iter().map(|payload| (payload.name(), payload.text().to_owned())));
        // The most telling first; the others in the order of the alphabet.
        let first = ["id", "queue", "kind", "state", "reason", "attempt", "crash"];
        let rank =
            |name: &str| first.iter().position(|known| *known == name).unwrap_or(first.len());
        rows.sort_by_key(|(name, _)| rank(name));
        rows.extend(self.errors.iter().map(|error| ("error", error.line())));
        out::pairs(rows)
    }
}

fn at(ms: u64) -> String {
    units::shown(sprag::Timestamp::from_millis(ms))
}
