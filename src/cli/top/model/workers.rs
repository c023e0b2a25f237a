//! Workers, as they said at their last beat.

use super::list::{Choice, matches};
use sprag::store::WorkerInfo;

#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// None: not heard of yet.
    pub(crate) all: Option<Vec<WorkerInfo>>,
    pub(crate) filter: String,
    pub(crate) choice: Choice,
}

impl Workers {
    pub(super) fn take(&mut self, workers: Vec<WorkerInfo>) {
        self.all = Some(workers);
        self.arrange();
    }

    pub(crate) fn shown(&self) -> impl Iterator<Item = &WorkerInfo> {
        self.all.iter().flatten().filter(|worker| {
            let queues = worker.queues.iter().map(String::as_str);
            let texts: Vec<&str> = queues.chain([&*worker.id, &*worker.host]).collect();
            matches(&self.filter, &texts)
        })
    }

    fn keys(&self) -> Vec<&str> {
        self.shown().map(|worker| worker.id.as_str()).collect()
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

    pub(crate) fn chosen(&self) -> Option<&WorkerInfo> {
        self.shown().nth(self.choice.index)
    }
}
