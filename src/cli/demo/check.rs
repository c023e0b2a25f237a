//! The check: what producers were told, what handlers wrote down and what Redis holds must agree.

use super::{
    deliveries::{self, Delivery, MAX_ATTEMPTS, QUEUES},
    journal::{Answer, RAN, Ran, Reader, Step, TOLD, Told},
    place::Place,
    watch::{Killed, Run},
};
use anyhow::Context;
use futures_util::future::join_all;
use serde::Serialize;
use sprag::{
    JobId, RedisStore, State, Store, StoreError,
    store::{EndingReason, JobInfo, QueueInfo},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

/// Lookups in flight.
const LOOKUPS: usize = 50;

/// All that is known after the run.
pub(super) struct Facts {
    deliveries: Vec<Delivery>,
    told: Vec<Told>,
    ran: Vec<Ran>,
    killed: Killed,
    /// Every id that a producer was told was enqueued, with what Redis holds of it.
    pub(super) jobs: BTreeMap<String, Accepted>,
    queues: Vec<QueueInfo>,
    /// Completions that Redis counted, all queues.
    completions: u64,
}

pub(super) struct Accepted {
    pub(super) queue: String,
    line: usize,
    /// None: lost.
    pub(super) info: Option<JobInfo>,
}

/// The table.
#[derive(Debug, Default, Serialize)]
pub(super) struct Verdict {
    pub(super) deliveries: u64,
    pub(super) enqueued: u64,
    pub(super) joined: u64,
    pub(super) completed: u64,
    pub(super) archived: u64,
    pub(super) retried: u64,
    pub(super) crashed: u64,
    pub(super) recovered: u64,
    pub(super) backpressure: u64,
    pub(super) lost: u64,
    pub(super) jobs_per_s: u64,
    pub(super) duration_ms: u64,
    pub(super) debounced_events: u64,
    pub(super) debounced_runs: u64,
    pub(super) poison_crashes: u64,
    /// The last that it killed.
    pub(super) poison_worker: Option<String>,
    /// What is not as it should be.
    pub(super) deviations: Vec<String>,
}

impl Facts {
    pub(super) async fn gather(
        place: &Place,
        dir: &Path,
        deliveries: Vec<Delivery>,
        killed: Killed,
    ) -> anyhow::Result<Self> {
        let told: Vec<Told> = Reader::new(dir, TOLD).next()?;
        let ran = Reader::new(dir, RAN).next()?;
        let store = place.store()?;
        let mut queues = Vec::new();
        for (name, _) in QUEUES {
            queues.push(store.queue(&deliveries::queue(name)?).await?);
        }
        let jobs = look_up(&store, &told).await?;
        let completions = completions(place).await?;
        Ok(Self { deliveries, told, ran, killed, jobs, queues, completions })
    }

    /// A job that was running in the worker that was killed.
    pub(super) fn crashed(&self) -> Option<(&String, &Accepted)> {
        self.killed.runs.iter().find_map(|(id, _)| self.jobs.get_key_value(id))
    }

    /// A job that failed too often.
    pub(super) fn exhausted(&self) -> Option<(&String, &Accepted)> {
        self.jobs.iter().find(|(_, job)| job.reason() == Some(EndingReason::Exhausted))
    }
}

async fn look_up(store: &RedisStore, told: &[Told]) -> anyhow::Result<BTreeMap<String, Accepted>> {
    let accepted: Vec<_> = told
        .iter()
        .filter_map(|told| match &told.answer {
            Answer::Enqueued(id) => Some((id, told)),
            _ => None,
        })
        .collect();
    let mut jobs = BTreeMap::new();
    for slice in accepted.chunks(LOOKUPS) {
        for found in join_all(slice.iter().map(|(id, told)| one(store, id, told))).await {
            let (id, job) = found?;
            jobs.insert(id, job);
        }
    }
    Ok(jobs)
}

async fn one(store: &RedisStore, id: &str, told: &Told) -> anyhow::Result<(String, Accepted)> {
    let info = match store.show(&deliveries::queue(&told.queue)?, &JobId::new(id)?).await {
        Ok(info) => Some(info),
        Err(StoreError::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    Ok((id.to_owned(), Accepted { queue: told.queue.clone(), line: told.line, info }))
}

/// Redis counts each completion by the day; all days, should this one have just begun.
async fn completions(place: &Place) -> anyhow::Result<u64> {
    let mut connection = place.connection().await?;
    let mut sum = 0;
    for (queue, _) in QUEUES {
        let mut stats = redis::cmd("HGETALL");
        stats.arg(place.key(queue, "stats"));
        let stats: HashMap<String, u64> =
            stats.query_async(&mut connection).await.context("cannot read the statistics")?;
        sum += stats
            .iter()
            .filter(|(day, _)| day.ends_with(":completed"))
            .map(|(_, n)| n)
            .sum::<u64>();
    }
    Ok(sum)
}

impl Accepted {
    fn state(&self) -> Option<State> {
        self.info.as_ref().map(|info| info.state)
    }

    fn reason(&self) -> Option<EndingReason> {
        self.info.as_ref()?.ending.as_ref().map(|ending| ending.reason)
    }

    /// Attempts that failed, as Redis keeps them.
    fn failed_attempts(&self) -> usize {
        let errors = self.info.iter().flat_map(|info| &info.errors);
        errors.filter(|error| error.attempt.is_some()).count()
    }

    fn is_finished(&self) -> bool {
        matches!(self.state(), Some(State::Completed | State::Archived))
    }

    /// Whether it ended as its delivery must.
    fn ended_as(&self, delivery: &Delivery) -> bool {
        let due = match delivery {
            delivery if delivery.gone => (State::Archived, EndingReason::Discarded),
            delivery if delivery.fails >= MAX_ATTEMPTS => {
                (State::Archived, EndingReason::Exhausted)
            }
            _ => (State::Completed, EndingReason::Completed),
        };
        (self.state(), self.reason()) == (Some(due.0), Some(due.1))
    }
}

/// Counts, and looks for whatever is off.
pub(super) fn judge(facts: &Facts) -> Verdict {
    let mut verdict = count(facts);
    let deviations = &mut verdict.deviations;
    every_line_is_answered(facts, deviations);
    every_job_ends_as_it_must(facts, deviations);
    every_duplicate_joins_a_job(facts, deviations);
    no_job_is_completed_twice(facts, deviations);
    nothing_is_left(facts, deviations);
    every_job_of_the_killed_worker_ran_again(facts, deviations);
    verdict
}

fn count(facts: &Facts) -> Verdict {
    let jobs = || facts.jobs.values();
    let in_state = |state| jobs().filter(|job| job.state() == Some(state)).count() as u64;
    let told = |is: fn(&Answer) -> bool| facts.told.iter().filter(|t| is(&t.answer)).count() as u64;
    let archived = in_state(State::Archived);
    let failed: usize = jobs().map(Accepted::failed_attempts).sum();
    let last_attempts = jobs()
        .filter(|job| job.state() == Some(State::Archived) && job.failed_attempts() > 0)
        .count();
    let first = facts.told.iter().map(|told| told.at).min().unwrap_or(0);
    let last = facts.ran.iter().map(|ran| ran.at).max().unwrap_or(first);
    let duration_ms = last.saturating_sub(first).max(1);
    let finished = jobs().filter(|job| job.is_finished()).count() as u64;
    Verdict {
        deliveries: facts.deliveries.len() as u64,
        enqueued: facts.jobs.len() as u64,
        joined: told(|answer| matches!(answer, Answer::Joined(_))),
        completed: in_state(State::Completed),
        archived,
        retried: (failed - last_attempts) as u64,
        crashed: facts.killed.runs.len() as u64,
        recovered: facts.killed.runs.iter().filter(|run| recovered(facts, run)).count() as u64,
        backpressure: told(|answer| matches!(answer, Answer::Refused)),
        lost: jobs().filter(|job| !job.is_finished()).count() as u64,
        jobs_per_s: finished * 1_000 / duration_ms,
        duration_ms,
        ..Verdict::default()
    }
}

fn every_line_is_answered(facts: &Facts, off: &mut Vec<String>) {
    let settled = facts.told.iter().filter(|told| !matches!(told.answer, Answer::Refused));
    let answered: BTreeSet<usize> = settled.map(|told| told.line).collect();
    for line in (1..=facts.deliveries.len()).filter(|line| !answered.contains(line)) {
        off.push(format!("line {line} was never accepted"));
    }
}

fn every_job_ends_as_it_must(facts: &Facts, off: &mut Vec<String>) {
    for (id, job) in &facts.jobs {
        if !job.ended_as(&facts.deliveries[job.line - 1]) {
            let (state, reason) = (job.state(), job.reason());
            off.push(format!("job {id} of line {} ended as {state:?}, {reason:?}", job.line));
        }
    }
}

fn every_duplicate_joins_a_job(facts: &Facts, off: &mut Vec<String>) {
    for told in &facts.told {
        let Answer::Joined(id) = &told.answer else { continue };
        let event = |line: usize| &facts.deliveries[line - 1].id;
        if facts.jobs.get(id).is_none_or(|job| event(job.line) != event(told.line)) {
            off.push(format!("line {} was joined to {id}, which is not its job", told.line));
        }
    }
}

fn no_job_is_completed_twice(facts: &Facts, off: &mut Vec<String>) {
    let completed = facts.jobs.values().filter(|job| job.state() == Some(State::Completed)).count();
    if facts.completions != completed as u64 {
        off.push(format!("Redis counted {} completions of {completed} jobs", facts.completions));
    }
    let done: BTreeSet<&str> =
        facts.ran.iter().filter(|ran| ran.step == Step::Done).map(|ran| ran.id.as_str()).collect();
    if done.len() != completed {
        off.push(format!("handlers finished {} jobs, {completed} are completed", done.len()));
    }
}

fn nothing_is_left(facts: &Facts, off: &mut Vec<String>) {
    for queue in &facts.queues {
        let kept = facts.jobs.values().filter(|job| job.queue == queue.queue).count() as u64;
        if queue.unfinished + queue.pending + queue.active + queue.scheduled + queue.retry > 0 {
            off.push(format!("queue {} is not empty: {queue:?}", queue.queue));
        }
        if queue.completed + queue.archived != kept {
            off.push(format!("queue {} holds other jobs than the {kept} accepted", queue.queue));
        }
    }
}

/// Ran again under a later fence, in another process, with the crash counted, and is finished.
fn recovered(facts: &Facts, (id, fence): &Run) -> bool {
    let again = |ran: &&Ran| {
        ran.id == *id && ran.fence > *fence && ran.crash > 0 && ran.pid != facts.killed.pid
    };
    facts.ran.iter().any(|ran| again(&ran)) && facts.jobs.get(id).is_some_and(Accepted::is_finished)
}

fn every_job_of_the_killed_worker_ran_again(facts: &Facts, off: &mut Vec<String>) {
    if facts.killed.runs.is_empty() {
        off.push("the killed worker was running nothing".to_owned());
    }
    for run in facts.killed.runs.iter().filter(|run| !recovered(facts, run)) {
        off.push(format!("job {} of the killed worker did not run again", run.0));
    }
}
