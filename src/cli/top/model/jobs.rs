//! The jobs of a queue in one state, and one job.

use super::{
    super::data::Want,
    list::{Choice, matches},
};
use sprag::{
    Fingerprint, JobId, QueueName, State,
    store::{JobInfo, Listed, QueueInfo},
};

/// A page of a queue's jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) queue: QueueName,
    pub(crate) state: State,
    /// None: not heard of yet.
    pub(crate) counts: Option<QueueInfo>,
    pub(crate) jobs: Option<Vec<Listed>>,
    pub(crate) filter: String,
    pub(crate) choice: Choice,
    /// Where the pages before this one, but the first, and this one begin.
    cursors: Vec<String>,
    next: Option<String>,
}

impl Jobs {
    pub(super) fn of(queue: QueueName, counts: Option<QueueInfo>) -> Self {
        let state = counts.as_ref().map_or(State::Pending, most_telling);
        Self {
            queue,
            state,
            counts,
            jobs: None,
            filter: String::new(),
            choice: Choice::default(),
            cursors: Vec::new(),
            next: None,
        }
    }

    pub(super) fn want(&self) -> Want {
        let cursor = self.cursors.last().cloned();
        Want::Jobs { queue: self.queue.clone(), state: self.state, cursor }
    }

    pub(super) fn take(&mut self, counts: QueueInfo, jobs: Vec<Listed>, next: Option<String>) {
        (self.counts, self.jobs, self.next) = (Some(counts), Some(jobs), next);
        self.arrange();
    }

    /// Another state, by its place among them.
    pub(super) fn turn(&mut self, by: isize) {
        let states = State::ALL.len() as isize;
        let at = State::ALL.iter().position(|state| *state == self.state).unwrap_or(0) as isize;
        let at = (at + by).rem_euclid(states);
        self.state = usize::try_from(at)
            .ok()
            .and_then(|at| State::ALL.get(at))
            .copied()
            .unwrap_or(self.state);
        self.cursors.clear();
        self.begin_anew();
    }

    pub(super) fn next_page(&mut self) -> bool {
        let Some(next) = self.next.take() else { return false };
        self.cursors.push(next);
        self.begin_anew();
        true
    }

    pub(super) fn page_before(&mut self) -> bool {
        let moved = self.cursors.pop().is_some();
        if moved {
            self.begin_anew();
        }
        moved
    }

    fn begin_anew(&mut self) {
        (self.jobs, self.next, self.choice) = (None, None, Choice::default());
    }

    /// Counted from 1, and whether there is another.
    pub(crate) fn page(&self) -> (usize, bool) {
        (self.cursors.len() + 1, self.next.is_some())
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &Listed> {
        self.jobs.iter().flatten().filter(|job| {
            let kind = job.envelope.as_ref().map_or("", |(envelope, _)| envelope.kind().as_str());
            matches(&self.filter, &[job.id.as_str(), kind])
        })
    }

    fn keys(&self) -> Vec<&str> {
        self.shown().map(|job| job.id.as_str()).collect()
    }

    pub(super) fn arrange(&mut self) {
        let mut choice = std::mem::take(&mut self.choice);
        choice.settle(&self.keys());
        self.choice = choice;
    }

    pub(super) fn step(&mut self, by: isize) {
        let mut choice = std::mem::take(&mut self.choice);
        choice.step(&self.keys(), by);
        self.choice = choice;
    }

    pub(crate) fn chosen(&self) -> Option<&Listed> {
        self.shown().nth(self.choice.index)
    }
}

/// In which state an operator most likely looks for something: the first that has jobs.
fn most_telling(info: &QueueInfo) -> State {
    let states = [State::Pending, State::Active, State::Retry, State::Quarantined, State::Archived];
    let rest = [State::Scheduled, State::Completed, State::Cancelled];
    let mut all = states.into_iter().chain(rest);
    all.find(|state| count(info, *state) > 0).unwrap_or(State::Pending)
}

/// How many jobs a queue has in a state.
pub(crate) fn count(info: &QueueInfo, state: State) -> u64 {
    match state {
        State::Scheduled => info.scheduled,
        State::Pending => info.pending,
        State::Active => info.active,
        State::Retry => info.retry,
        State::Completed => info.completed,
        State::Archived => info.archived,
        State::Cancelled => info.cancelled,
        State::Quarantined => info.quarantined,
    }
}

/// One job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) queue: QueueName,
    pub(crate) id: JobId,
    /// None: not heard of yet.
    pub(crate) info: Option<Box<JobInfo>>,
    pub(crate) payload: bool,
    /// Lines above the first that is shown.
    pub(crate) scroll: usize,
}

impl Job {
    pub(super) fn of(queue: QueueName, id: JobId) -> Self {
        Self { queue, id, info: None, payload: false, scroll: 0 }
    }

    pub(super) fn want(&self) -> Want {
        Want::Job { queue: self.queue.clone(), id: self.id.clone() }
    }

    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        let envelope = self.info.as_ref()?.envelope.as_ref().ok();
        envelope.map(|(envelope, _)| envelope.fingerprint())
    }
}
