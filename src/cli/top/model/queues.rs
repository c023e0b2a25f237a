//! Queues: their counters, and from one look to the next their rates.

use super::{
    super::data::Found,
    list::{Choice, matches},
};
use sprag::{QueueName, Timestamp, store::QueueInfo};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

/// Looks that a sparkline remembers.
const REMEMBERED: usize = 60;

/// By what rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    #[default]
    Name,
    Pending,
    Rate,
    Age,
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Name => Self::Pending,
            Self::Pending => Self::Rate,
            Self::Rate => Self::Age,
            Self::Age => Self::Name,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Pending => "pending",
            Self::Rate => "rate",
            Self::Age => "age",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) queue: QueueName,
    pub(crate) info: Result<QueueInfo, String>,
    /// None until there are two looks.
    pub(crate) rate: Option<Rate>,
}

/// Per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rate {
    pub(crate) completed: f64,
    pub(crate) failed: f64,
}

#[derive(Debug)]
struct History {
    at: Timestamp,
    completed: u64,
    failed: u64,
    rate: Option<Rate>,
    past: VecDeque<f64>,
}

impl History {
    fn start(at: Timestamp, info: &QueueInfo) -> Self {
        let (completed, failed) = (info.completed_today, info.failed_today);
        Self { at, completed, failed, rate: None, past: VecDeque::new() }
    }

    /// A look that comes too soon after the one before would tell a rate of nothing.
    fn look(&mut self, at: Timestamp, info: &QueueInfo, least: Duration) {
        let since = at.since(self.at);
        if since < least && self.at <= at {
            return;
        }
        // A clock that was set back tells nothing.
        let per_second = |more: u64| more as f64 / since.as_secs_f64();
        self.rate = (!since.is_zero()).then(|| Rate {
            completed: per_second(more(self.completed, info.completed_today)),
            failed: per_second(more(self.failed, info.failed_today)),
        });
        self.past.extend(self.rate.map(|rate| rate.completed + rate.failed));
        if self.past.len() > REMEMBERED {
            self.past.pop_front();
        }
        (self.at, self.completed, self.failed) = (at, info.completed_today, info.failed_today);
    }
}

/// At midnight counters begin anew.
fn more(before: u64, now: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// Sorted; what the filter hides among them.
    rows: Vec<Row>,
    history: HashMap<String, History>,
    pub(crate) sort: Sort,
    pub(crate) filter: String,
    pub(crate) choice: Choice,
}

/// The sum of all queues.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) queues: usize,
    pub(crate) pending: u64,
    pub(crate) scheduled: u64,
    pub(crate) active: u64,
    pub(crate) retry: u64,
    pub(crate) archived: u64,
    pub(crate) quarantined: u64,
    pub(crate) rate: Option<Rate>,
}

impl Queues {
    pub(super) fn take(&mut self, at: Timestamp, found: Vec<Found>, least: Duration) {
        let names: Vec<&str> = found.iter().map(|(queue, _)| queue.as_str()).collect();
        self.history.retain(|queue, _| names.contains(&queue.as_str()));
        self.rows =
            found.into_iter().map(|(queue, info)| self.row(at, queue, info, least)).collect();
        self.arrange();
    }

    fn row(
        &mut self,
        at: Timestamp,
        queue: QueueName,
        info: Result<QueueInfo, String>,
        least: Duration,
    ) -> Row {
        if let Ok(info) = &info {
            let history = self.history.entry(queue.to_string());
            history
                .and_modify(|history| history.look(at, info, least))
                .or_insert_with(|| History::start(at, info));
        }
        let rate = self.history.get(queue.as_str()).and_then(|history| history.rate);
        Row { queue, info, rate }
    }

    pub(super) fn sort_by(&mut self, sort: Sort) {
        self.sort = sort;
        self.arrange();
    }

    /// After anything that moves rows.
    pub(super) fn arrange(&mut self) {
        let sort = self.sort;
        // Largest first; whoever is damaged is first of all.
        self.rows.sort_by(|a, b| {
            let order = match sort {
                Sort::Name => std::cmp::Ordering::Equal,
                Sort::Pending => b.count(|info| info.pending).cmp(&a.count(|info| info.pending)),
                Sort::Rate => b.all_rate().total_cmp(&a.all_rate()),
                Sort::Age => b.age().cmp(&a.age()),
            };
            order.then_with(|| a.queue.as_str().cmp(b.queue.as_str()))
        });
        let mut choice = std::mem::take(&mut self.choice);
        choice.settle(&self.keys());
        self.choice = choice;
    }

    pub(super) fn step(&mut self, by: isize) {
        let mut choice = std::mem::take(&mut self.choice);
        choice.step(&self.keys(), by);
        self.choice = choice;
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches(&self.filter, &[row.queue.as_str()]))
    }

    fn keys(&self) -> Vec<&str> {
        self.shown().map(|row| row.queue.as_str()).collect()
    }

    pub(crate) fn chosen(&self) -> Option<&Row> {
        self.shown().nth(self.choice.index)
    }

    pub(crate) fn past(&self, queue: &QueueName) -> impl DoubleEndedIterator<Item = f64> + '_ {
        self.history
            .get(queue.as_str())
            .into_iter()
            .flat_map(|history| history.past.iter().copied())
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut sum = Totals { queues: self.rows.len(), ..Totals::default() };
        for row in &self.rows {
            if let Some(rate) = row.rate {
                let all = sum.rate.get_or_insert_default();
                all.completed += rate.completed;
                all.failed += rate.failed;
            }
            let Ok(info) = &row.info else { continue };
            sum.pending += info.pending;
            sum.scheduled += info.scheduled;
            sum.active += info.active;
            sum.retry += info.retry;
            sum.archived += info.archived;
            sum.quarantined += info.quarantined;
        }
        sum
    }
}

impl Row {
    fn count(&self, of: impl Fn(&QueueInfo) -> u64) -> u64 {
        self.info.as_ref().map_or(u64::MAX, of)
    }

    fn age(&self) -> u64 {
        self.count(|info| info.oldest_pending_ms.unwrap_or(0))
    }

    fn all_rate(&self) -> f64 {
        self.rate.map_or(-1.0, |rate| rate.completed + rate.failed)
    }
}
