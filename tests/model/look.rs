//! Compares what can be seen.

use crate::{
    jobs::{ids, kind},
    pair::{Pair, same},
    support::Keys,
};
use futures_util::future::join_all;
use sprag::{
    State, Store, StoreError,
    store::{Listed, Page},
};

/// Jobs of a page when all are read.
const MANY: usize = 100;

impl Pair {
    /// Everything that either store shows is equal, and Redis' keys are sound.
    pub(crate) async fn look(&self) -> Result<(), String> {
        let keys = async {
            let mut node = self.ground.node_of(&self.key("meta")).await;
            let keys = Keys::read_in(&mut node, &self.ground.namespace, &self.queue).await;
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| keys.check()));
            checked.map_err(|_| "Redis' keys are unsound: see above".to_owned())
        };
        let shown = async { join_all(ids().map(|id| self.show(id))).await.into_iter().collect() };
        let listed = async {
            join_all(State::ALL.map(|state| self.list(state, None, MANY)))
                .await
                .into_iter()
                .collect()
        };
        let (keys, info, shown, listed, closed) =
            tokio::join!(keys, self.info(), shown, listed, self.quarantines());
        let (shown, listed): (Result<(), String>, Result<(), String>) = (shown, listed);
        keys.and(info).and(shown).and(listed).and(closed)
    }

    /// What every step is followed by.
    pub(crate) async fn glance(&self) -> Result<(), String> {
        self.info().await
    }

    async fn info(&self) -> Result<(), String> {
        let (memory, redis) =
            tokio::join!(self.memory.queue(&self.queue), self.store.queue(&self.queue));
        if let Ok(info) = &redis {
            let counted = info.pending + info.scheduled + info.active + info.retry;
            same("unfinished", &counted, &info.unfinished)?;
        }
        same("queue", &memory, &redis)
    }

    async fn show(&self, id: sprag::JobId) -> Result<(), String> {
        let (memory, redis) =
            tokio::join!(self.memory.show(&self.queue, &id), self.store.show(&self.queue, &id));
        same("show", &memory, &redis)
    }

    async fn quarantines(&self) -> Result<(), String> {
        let (memory, redis) =
            tokio::join!(self.memory.quarantines(&self.queue), self.store.quarantines(&self.queue));
        same("quarantines", &memory, &redis)
    }

    /// Pages differ in size and cursor; what they hold altogether does not.
    pub(crate) async fn list(
        &self,
        state: State,
        of: Option<u8>,
        limit: usize,
    ) -> Result<(), String> {
        let memory = self.pages(&*self.memory, state, of, limit).await;
        let redis = self.pages(&self.store, state, of, limit).await;
        same(&format!("list of {state}"), &memory, &redis)
    }

    async fn pages(
        &self,
        store: &dyn Store,
        state: State,
        of: Option<u8>,
        limit: usize,
    ) -> Result<Vec<Listed>, StoreError> {
        let (of, mut jobs, mut cursor) = (of.map(kind), Vec::new(), None);
        loop {
            let from = cursor.as_deref();
            let page: Page = store.list(&self.queue, state, of.as_ref(), from, limit).await?;
            jobs.extend(page.jobs);
            cursor = page.cursor;
            if cursor.is_none() || jobs.len() > MANY {
                return Ok(jobs);
            }
        }
    }
}
