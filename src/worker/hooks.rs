//! What a worker's owner wants to be told: jobs that went to the archive or into quarantine.

use super::LAST_WORDS;
use crate::{
    model::{JobId, Kind, QueueName, State},
    store::{Ended, EndingReason},
};
use futures_util::future::BoxFuture;
use std::{future::Future, sync::Arc};
use tokio_util::task::TaskTracker;

/// A job that ended without success, for a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedJob {
    /// Its queue.
    pub queue: QueueName,
    /// The job: [`Store::show`](crate::Store::show) knows the rest.
    pub id: JobId,
    /// Its kind, if it ended in this worker's hands.
    pub kind: Option<Kind>,
    /// `archived` or `quarantined`.
    pub state: State,
    /// Why.
    pub reason: EndingReason,
    /// What the last attempt said, if it ended by that.
    pub error: Option<String>,
}

type Hook = Arc<dyn Fn(EndedJob) -> BoxFuture<'static, ()> + Send + Sync>;

/// A worker's hooks, and those that run.
#[derive(Default)]
pub(super) struct Hooks {
    archive: Option<Hook>,
    quarantine: Option<Hook>,
    running: TaskTracker,
}

impl Hooks {
    pub(super) fn on_archive<F, Fut>(&mut self, hook: F)
    where
        F: Fn(EndedJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.archive = Some(Arc::new(move |job| Box::pin(hook(job))));
    }

    pub(super) fn on_quarantine<F, Fut>(&mut self, hook: F)
    where
        F: Fn(EndedJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.quarantine = Some(Arc::new(move |job| Box::pin(hook(job))));
    }

    /// Calls the hook that is meant, in the background: no job waits for it.
    pub(super) fn tell(&self, job: EndedJob) {
        let hook = match job.state {
            State::Archived => &self.archive,
            State::Quarantined => &self.quarantine,
            _ => return,
        };
        if let Some(hook) = hook {
            let hook = hook.clone();
            // A panic in it ends its own task, and is printed by the panic hook.
            self.running.spawn(async move { hook(job).await });
        }
    }

    /// Tells of jobs that a claim or a sweep ended.
    pub(super) fn tell_all(&self, queue: &QueueName, ended: Vec<Ended>) {
        for Ended { id, state, reason } in ended {
            let queue = queue.clone();
            self.tell(EndedJob { queue, id, kind: None, state, reason, error: None });
        }
    }

    /// Waits for the hooks that run, for a moment.
    pub(super) async fn over(&self) {
        self.running.close();
        if tokio::time::timeout(LAST_WORDS, self.running.wait()).await.is_err() {
            tracing::warn!("hooks still run; not waited for");
        }
    }
}
