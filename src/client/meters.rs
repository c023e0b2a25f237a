//! What producers count, by the `metrics` facade; see `docs/observability.md`.

use crate::{
    model::{Envelope, Kind, StoreError},
    store::{BatchError, Enqueued, Outcomes},
};
use metrics::counter;
use std::collections::HashMap;

/// What became of one job: one of nine words.
fn outcome(answer: Result<&Enqueued, &StoreError>) -> &'static str {
    match answer {
        Ok(Enqueued { existing: true, .. }) => "existing",
        Ok(_) => "enqueued",
        Err(StoreError::Duplicate { .. }) => "duplicate",
        Err(StoreError::IdConflict { .. }) => "id_conflict",
        Err(StoreError::Quarantined { .. }) => "quarantined",
        Err(StoreError::Backpressure { .. }) => "backpressure",
        Err(StoreError::Invalid(_)) => "invalid",
        Err(StoreError::Unavailable(_)) => "unavailable",
        Err(_) => "backend",
    }
}

/// Counts a call's jobs, which are all of one queue.
pub(super) fn enqueued(jobs: &[Envelope], answer: &Result<Outcomes<Enqueued>, StoreError>) {
    match answer {
        Ok(outcomes) => count(jobs, outcomes.iter().map(Result::as_ref).map(outcome)),
        Err(error) => count(jobs, std::iter::repeat(outcome(Err(error)))),
    }
}

/// Counts a batch that was taken or refused as a whole.
pub(super) fn enqueued_atomic(jobs: &[Envelope], answer: &Result<Vec<Enqueued>, BatchError>) {
    match answer {
        Ok(enqueued) => count(jobs, enqueued.iter().map(Ok).map(outcome)),
        Err(refused) => count(jobs, std::iter::repeat(outcome(Err(&refused.error)))),
    }
}

/// Nothing is kept between calls: a producer's kinds and queues are not bounded.
fn count(jobs: &[Envelope], outcomes: impl Iterator<Item = &'static str>) {
    let mut counts: HashMap<(&Kind, &str), u64> = HashMap::new();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        *counts.entry((job.kind(), outcome)).or_default() += 1;
    }
    for ((kind, outcome), jobs_counted) in counts {
        let labels = [
            ("queue", jobs[0].queue().to_string()),
            ("kind", kind.to_string()),
            ("outcome", outcome.to_owned()),
        ];
        counter!("sprag_jobs_enqueued_total", &labels).increment(jobs_counted);
    }
}
