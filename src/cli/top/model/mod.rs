//! What is known, where the operator is, and what keys and answers make of it. No I/O.

mod jobs;
mod keys;
mod list;
mod queues;
#[cfg(test)]
mod tests;
mod workers;

pub(super) use jobs::{Job, Jobs, count};
pub(super) use list::Choice;
pub(super) use queues::{Queues, Rate, Row as QueueRow};
pub(super) use workers::Workers;

use super::data::{Action, Answer, Data, Done, Trouble, Want};
use sprag::Timestamp;
use std::time::Duration;

/// How long a told outcome stays.
const TOLD_FOR: Duration = Duration::from_secs(15);
/// Without an answer for so long, beyond the interval, what is shown is called old.
const OLD_AFTER: Duration = Duration::from_secs(3);

/// What is to be done outside.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Quit,
    /// Another screen is to be filled, or something changed.
    Look,
    Do(Action),
}

/// What keys mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Walk,
    Filter,
    Confirm(Action),
    Help,
}

/// Where the operator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Queues,
    Workers,
    Jobs,
    Job,
}

/// What came of an action.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) failed: bool,
    at: Timestamp,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) now: Timestamp,
    pub(super) colour: bool,
    every: Duration,
    /// The tab below all.
    workers_shown: bool,
    pub(super) queues: Queues,
    pub(super) queues_heard: bool,
    pub(super) workers: Workers,
    pub(super) jobs: Option<Jobs>,
    pub(super) job: Option<Job>,
    pub(super) mode: Mode,
    told: Option<Told>,
    /// The last look failed.
    pub(super) trouble: Option<Trouble>,
    /// When this screen was filled last, or else when it was opened.
    heard: Timestamp,
    /// Rows of a screen, of which the last drawing knows.
    pub(super) rows: usize,
}

impl Model {
    pub(super) fn new(now: Timestamp, every: Duration, colour: bool) -> Self {
        Self {
            now,
            colour,
            every,
            workers_shown: false,
            queues: Queues::default(),
            queues_heard: false,
            workers: Workers::default(),
            jobs: None,
            job: None,
            mode: Mode::Walk,
            told: None,
            trouble: None,
            heard: now,
            rows: 1,
        }
    }

    pub(super) fn place(&self) -> Place {
        match (&self.job, &self.jobs) {
            (Some(_), _) => Place::Job,
            (None, Some(_)) => Place::Jobs,
            (None, None) if self.workers_shown => Place::Workers,
            (None, None) => Place::Queues,
        }
    }

    pub(super) fn want(&self) -> Want {
        match (&self.job, &self.jobs) {
            (Some(job), _) => job.want(),
            (None, Some(jobs)) => jobs.want(),
            (None, None) if self.workers_shown => Want::Workers,
            (None, None) => Want::Queues,
        }
    }

    /// An answer that comes too late for its screen changes nothing.
    pub(super) fn answered(&mut self, answer: Answer) {
        if answer.want != self.want() {
            return;
        }
        self.trouble = None;
        match answer.data {
            Ok(data) => {
                self.heard = answer.at;
                self.fill(answer.at, data);
            }
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    fn fill(&mut self, at: Timestamp, data: Data) {
        match data {
            Data::Queues(found) => {
                self.queues_heard = true;
                self.queues.take(at, found, self.every / 2);
            }
            Data::Workers(workers) => self.workers.take(workers),
            Data::Jobs { counts, jobs, next } => {
                if let Some(page) = &mut self.jobs {
                    page.take(counts, jobs, next);
                }
            }
            Data::Job(info) => {
                if let Some(job) = &mut self.job {
                    job.info = Some(info);
                }
            }
        }
    }

    pub(super) fn done(&mut self, done: Done) {
        let what = done.action.text();
        let (text, failed) = match done.outcome {
            Ok(outcome) => (format!("{what}: {outcome}"), false),
            Err(trouble) => (format!("{what}: {}", trouble.text), true),
        };
        self.tell(text, failed);
    }

    fn tell(&mut self, text: String, failed: bool) {
        self.told = Some(Told { text, failed, at: self.now });
    }

    /// What came of the last action, while it is news.
    pub(super) fn told(&self) -> Option<&Told> {
        self.told.as_ref().filter(|told| self.now.since(told.at) < TOLD_FOR)
    }

    /// For how long the store has been silent, if that is too long.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        let silent = self.now.since(self.heard);
        (silent > self.every + OLD_AFTER).then_some(silent)
    }

    /// What is shown is not what is.
    pub(super) fn is_old(&self) -> bool {
        self.trouble.is_some() || self.silent_for().is_some()
    }

    /// The filter of this screen, if it has one.
    pub(super) fn filter(&self) -> Option<&str> {
        match self.place() {
            Place::Queues => Some(&self.queues.filter),
            Place::Workers => Some(&self.workers.filter),
            Place::Jobs => self.jobs.as_ref().map(|jobs| &*jobs.filter),
            Place::Job => None,
        }
    }

    /// Another screen: of it nothing has been heard yet.
    fn moved(&mut self) -> Effect {
        (self.trouble, self.heard) = (None, self.now);
        Effect::Look
    }
}
