//! What is counted and measured, by the `metrics` facade: an exporter of the program's choice, to be
//! installed before the worker starts, shows it; without one it costs next to nothing. Names after
//! the conventions of Prometheus; `kind` is bounded by the kinds that have a handler.

use super::CancelReason;
use crate::model::{Kind, QueueName};
use metrics::{Counter, Gauge, Histogram, Unit, counter, gauge, histogram};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Completed,
    Retried,
    Archived,
    Snoozed,
    Requeued,
    /// The settlement was refused or could not be delivered.
    Lost,
}

impl Outcome {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Completed, "completed"),
        (Self::Retried, "retried"),
        (Self::Archived, "archived"),
        (Self::Snoozed, "snoozed"),
        (Self::Requeued, "requeued"),
        (Self::Lost, "lost"),
    ];
}

/// The meters of one kind in one queue.
pub(super) struct Meter {
    processed: [Counter; Outcome::ALL.len()],
    pub(super) running: Gauge,
    run_seconds: Histogram,
    wait_seconds: Histogram,
}

impl Meter {
    fn new(queue: &QueueName, kind: &Kind) -> Self {
        let labels = [("queue", queue.to_string()), ("kind", kind.to_string())];
        let processed = |(_, outcome): (Outcome, &'static str)| {
            let [queue, kind] = labels.clone();
            counter!("sprag_jobs_processed_total", &[queue, kind, ("outcome", outcome.to_owned())])
        };
        Self {
            processed: Outcome::ALL.map(processed),
            running: gauge!("sprag_jobs_running", &labels),
            run_seconds: histogram!("sprag_job_run_seconds", &labels),
            wait_seconds: histogram!("sprag_job_wait_seconds", &labels),
        }
    }

    pub(super) fn processed(&self, outcome: Outcome) {
        self.processed[outcome as usize].increment(1);
    }

    pub(super) fn ran(&self, time: Duration) {
        self.run_seconds.record(time);
    }

    pub(super) fn waited(&self, time: Duration) {
        self.wait_seconds.record(time);
    }
}

/// All meters of a worker, made when first used.
#[derive(Default)]
pub(super) struct Meters(RwLock<HashMap<QueueName, HashMap<Kind, Arc<Meter>>>>);

impl Meters {
    pub(super) fn of(&self, queue: &QueueName, kind: &Kind) -> Arc<Meter> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = known.get(queue).and_then(|kinds| kinds.get(kind)) {
            return meter.clone();
        }
        drop(known);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let kinds = known.entry(queue.clone()).or_default();
        kinds.entry(kind.clone()).or_insert_with(|| Arc::new(Meter::new(queue, kind))).clone()
    }
}

/// A job of a kind without a handler here was put off.
pub(super) fn unhandled(queue: &QueueName) {
    counter!("sprag_jobs_unhandled_total", "queue" => queue.to_string()).increment(1);
}

/// A handler was told to stop.
pub(super) fn cancelled(queue: &QueueName, reason: CancelReason) {
    let labels = [("queue", queue.to_string()), ("reason", reason.as_str().to_owned())];
    counter!("sprag_jobs_cancelled_total", &labels).increment(1);
}

/// Handlers that were given up and still run.
pub(super) fn runaways() -> Gauge {
    gauge!("sprag_handlers_runaway")
}

/// What a sweep did.
pub(super) fn swept(queue: &QueueName, what: &'static str, jobs: u64) {
    if jobs > 0 {
        let labels = [("queue", queue.to_string()), ("what", what.to_owned())];
        counter!("sprag_jobs_swept_total", &labels).increment(jobs);
    }
}

/// Says to the exporter what each meter means. Called when a worker starts.
pub(super) fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_counter!(
        "sprag_jobs_enqueued_total",
        "Jobs that clients sent, by what became of them"
    );
    describe_counter!("sprag_jobs_processed_total", "Runs of handlers, by what they came to");
    describe_counter!("sprag_jobs_unhandled_total", "Jobs put off: no handler for their kind here");
    describe_counter!("sprag_jobs_cancelled_total", "Handlers told to stop, by reason");
    describe_counter!("sprag_jobs_swept_total", "Jobs that time moved, by what it did to them");
    describe_gauge!("sprag_jobs_running", "Handlers that run");
    describe_gauge!("sprag_handlers_runaway", "Handlers given up that still run");
    describe_histogram!("sprag_job_run_seconds", Unit::Seconds, "How long a handler ran");
    describe_histogram!(
        "sprag_job_wait_seconds",
        Unit::Seconds,
        "From being due, by the store's clock, to being claimed"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_stand_in_their_order() {
        for (place, (outcome, _)) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place);
        }
    }
}
