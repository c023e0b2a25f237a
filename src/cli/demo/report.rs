//! The table at the end.

use super::check::Verdict;
use crate::{args::Global, fail::Failure, out};

/// So many deviations are told one by one.
const SHOWN: usize = 20;

pub(super) fn tell(global: &Global, verdict: &Verdict) -> Result<(), Failure> {
    if global.json {
        return out::object(verdict);
    }
    let row =
        |name: &str, count: u64, note: &str| [name.to_owned(), count.to_string(), note.to_owned()];
    let debounced = format!("became {} run, with the last payload", verdict.debounced_runs);
    let poison = format!(
        "of one job, the last in {}; quarantined, then released and archived",
        verdict.poison_worker.as_deref().unwrap_or("nobody")
    );
    out::line("")?;
    out::table(
        ["", "", "how it is known"],
        vec![
            row("deliveries", verdict.deliveries, "lines of the file"),
            row("enqueued", verdict.enqueued, "ids that the producers were told"),
            row("joined as duplicates", verdict.joined, "same event, job already there"),
            row("completed", verdict.completed, "found in Redis id by id, and counted there once"),
            row("archived", verdict.archived, "receivers that always fail, or are gone"),
            row("retried", verdict.retried, "failed attempts that were followed by another"),
            row("crashed", verdict.crashed, "jobs running in the worker that was killed"),
            row("recovered", verdict.recovered, "of these ran again elsewhere and finished"),
            row("refused by backpressure", verdict.backpressure, "calls, each repeated later"),
            row("debounced events", verdict.debounced_events, &debounced),
            row("poison's crashes", verdict.poison_crashes, &poison),
            row("lost", verdict.lost, "accepted, but neither completed nor archived"),
            row("jobs/s", verdict.jobs_per_s, "handlers wait for receivers; see make bench"),
        ],
    )?;
    for deviation in verdict.deviations.iter().take(SHOWN) {
        out::line(&format!("WRONG: {deviation}"))?;
    }
    if verdict.deviations.len() > SHOWN {
        out::line(&format!("… and {} more", verdict.deviations.len() - SHOWN))?;
    }
    Ok(())
}
