//! Listing the jobs of a state.

use crate::{
    model::{Kind, QueueName, State, StoreError},
    store::{Listed, Store},
};
use std::sync::Arc;

/// Jobs of a page unless told otherwise.
const PAGE: usize = 100;

/// Jobs of a state, page by page: pending ones in the order of their claim, others by the time in
/// [`Listed::at`]. While jobs move, one may be seen twice or not at all.
#[derive(Debug, Clone)]
pub struct Jobs {
    store: Arc<dyn Store>,
    queue: QueueName,
    state: State,
    kind: Option<Kind>,
    page_size: usize,
    cursor: Option<String>,
    ended: bool,
}

impl Jobs {
    pub(super) fn new(store: Arc<dyn Store>, queue: QueueName, state: State) -> Self {
        Self { store, queue, state, kind: None, page_size: PAGE, cursor: None, ended: false }
    }

    /// Those of one kind only.
    ///
    /// # Errors
    /// `Invalid` if the kind is none.
    pub fn kind(mut self, kind: impl AsRef<str>) -> Result<Self, StoreError> {
        self.kind = Some(Kind::new(kind)?);
        Ok(self)
    }

    /// Jobs of a page: 1 to 1,000, 100 by default.
    pub fn page_size(mut self, jobs: usize) -> Self {
        self.page_size = jobs;
        self
    }

    /// Goes on where another listing of the same queue and state told that it [is](Jobs::cursor).
    pub fn from_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Where the next page begins; none at the start and at the end.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The next page, never an empty one; none at the end.
    ///
    /// # Errors
    /// `Invalid` if the page size or the cursor is none; `Unavailable` or `Backend`: the next call
    /// asks for the same page.
    ///
    /// # Cancel safety
    /// Dropped, it is as if it had not been called.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Listed>>, StoreError> {
        while !self.ended {
            let page = self.store.list(
                &self.queue,
                self.state,
                self.kind.as_ref(),
                self.cursor.as_deref(),
                self.page_size,
            );
            let page = page.await?;
            self.ended = page.cursor.is_none();
            self.cursor = page.cursor;
            if !page.jobs.is_empty() {
                return Ok(Some(page.jobs));
            }
        }
        Ok(None)
    }

    /// Begins anew.
    pub(super) fn rewind(&mut self) {
        (self.cursor, self.ended) = (None, false);
    }
}
