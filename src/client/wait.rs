//! Waits for a job's end, and reads its result.

use super::{
    Client,
    bus::{RENEW, Ticket, Told},
};
use crate::{
    model::{JobId, QueueName, State, StoreError},
    store::{EndingReason, JobInfo},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::{
    future::IntoFuture,
    marker::PhantomData,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The job ended in another way than by completion.
    #[error("the job is {state}{}", because(*reason, error.as_deref()))]
    Failed {
        /// Archived, cancelled or quarantined.
        state: State,
        /// Why, if its record was kept.
        reason: Option<EndingReason>,
        /// What its last failure said.
        error: Option<String>,
    },
    /// There is no such job (any more): it was never there, it was deleted, or it is over and was
    /// not kept. A retention keeps a job that is to be waited for.
    #[error(
        "there is no such job, or it is over and was not kept: a retention keeps finished jobs"
    )]
    Gone,
    /// The job is completed, and no result of it is kept.
    #[error(
        "the job is completed, but no result is kept: a retention keeps the results of at most \
         256 KiB that handlers return"
    )]
    NoResult,
    /// The job is completed, and its result is of another type than the one that is asked for.
    #[error("the result cannot be decoded: {0}")]
    Undecodable(String),
    /// The job was not finished in time. It goes on. If the store did not answer at all in that
    /// time it is [`Store`](WaitError::Store) with `Unavailable`.
    #[error("the job is not finished yet")]
    TimedOut,
    /// The store cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn because(reason: Option<EndingReason>, error: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(" ({})", reason.as_str())).unwrap_or_default();
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    reason + &error
}

impl Client {
    /// Waits until a job is finished, and gives what its handler returned: add a
    /// [`timeout`](Wait::timeout), then `.await`. A job that is tried again is not finished.
    ///
    /// Results are kept with completed jobs, by their retention; without one, `()` and `Option<_>`
    /// can be waited for. All waits of a client and its clones share one connection, on which Redis
    /// tells them of ends; meanwhile each looks for itself every 20 s.
    ///
    /// ```
    /// use sprag::{Client, Job, QueueName, Worker};
    /// use std::time::Duration;
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Square(u64);
    /// impl Job for Square {
    ///     const KIND: &'static str = "square";
    ///     const RETENTION: Option<Duration> = Some(Duration::from_secs(60));
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::connect("memory://")?;
    /// let job = client.enqueue(Square(7)).await?;
    /// let square = |job: Square| async move { Ok::<_, std::io::Error>(job.0 * job.0) };
    /// let worker = Worker::builder(&client).handler(square).build()?;
    /// let shutdown = worker.shutdown();
    /// let worker = tokio::spawn(worker.run_until_shutdown());
    ///
    /// let queue = QueueName::new(Square::QUEUE)?;
    /// let squared: u64 = client.wait(&queue, &job.id).timeout(Duration::from_secs(9)).await?;
    /// assert_eq!(squared, 49);
    /// # shutdown.drain();
    /// # worker.await?;
    /// # Ok(()) }
    /// ```
    pub fn wait<R: DeserializeOwned>(&self, queue: &QueueName, id: &JobId) -> Wait<R> {
        let (client, queue, id) = (self.clone(), queue.clone(), id.clone());
        Wait {
            client,
            queue,
            id,
            timeout: None,
            looked: AtomicBool::new(false),
            result: PhantomData,
        }
    }
}

/// A wait for a job's end: options, then `.await`.
///
/// # Errors
/// See [`WaitError`]. While the store is unavailable a wait that has begun goes on.
///
/// # Cancel safety
/// Dropping the future ends the wait; nothing happens to the job.
#[derive(Debug)]
#[must_use = "a job is waited for by .await"]
pub struct Wait<R> {
    client: Client,
    queue: QueueName,
    id: JobId,
    timeout: Option<Duration>,
    /// The job was seen at least once.
    looked: AtomicBool,
    result: PhantomData<fn() -> R>,
}

impl<R> Wait<R> {
    /// Gives up after so long. By default it waits for as long as it takes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    async fn end(&self) -> Result<End, WaitError> {
        let end = self.end_in_time();
        match self.timeout {
            None => Ok(end.await?),
            Some(timeout) => match tokio::time::timeout(timeout, end).await {
                Ok(end) => Ok(end?),
                Err(_) if self.looked.load(Ordering::Relaxed) => Err(WaitError::TimedOut),
                // Whether the job is finished is not known.
                Err(_) => {
                    let text = format!("no answer within {} ms", timeout.as_millis());
                    Err(StoreError::Unavailable(text).into())
                }
            },
        }
    }

    /// First listens, then looks: what happens between the two is told.
    async fn end_in_time(&self) -> Result<End, StoreError> {
        let store = self.client.store();
        loop {
            let bus = self.client.waits.join(store).await?;
            let Some(ticket) = bus.ticket(&self.queue, &self.id) else { continue };
            bus.watch(store, &self.queue).await?;
            let end = match self.look().await? {
                None => self.follow(&ticket).await?,
                end => end,
            };
            if let Some(End::Gone) = end {
                bus.watch_anew(&self.queue).await;
            }
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// Waits for what is told. None: nothing will be told any more.
    async fn follow(&self, ticket: &Ticket) -> Result<Option<End>, StoreError> {
        let mut looks = interval_at(Instant::now() + RENEW, RENEW);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told_end = None;
        loop {
            tokio::select! {
                told = ticket.told() => match told {
                    Told::Over => return Ok(None),
                    Told::Ended(state) => told_end = Some(state),
                    Told::Look | Told::Nothing => {}
                },
                _ = looks.tick() => {
                    patient(ticket.watch(self.client.store()).await)?;
                }
            }
            let Some(found) = patient(self.look().await)? else { continue };
            match (found, told_end) {
                (Some(End::Gone), Some(state)) => return Ok(Some(End::unkept(state))),
                (Some(end), _) => return Ok(Some(end)),
                // Started again by an operator meanwhile.
                (None, _) => told_end = None,
            }
        }
    }

    /// The end, if the job is finished.
    async fn look(&self) -> Result<Option<End>, StoreError> {
        let shown = self.client.store().show(&self.queue, &self.id).await;
        if shown.is_ok() {
            self.looked.store(true, Ordering::Relaxed);
        }
        match shown {
            Ok(info) if info.state.is_unfinished() => Ok(None),
            Ok(info) => Ok(Some(End::of(info))),
            Err(StoreError::NotFound(_)) => Ok(Some(End::Gone)),
            Err(error) => Err(error),
        }
    }
}

/// None if the store did not answer: the next look is as good.
fn patient<T>(answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(StoreError::Unavailable(error)) => {
            tracing::debug!(error, "a wait could not look; it goes on");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl<R: DeserializeOwned + 'static> IntoFuture for Wait<R> {
    type Output = Result<R, WaitError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.end().await?.result() })
    }
}

/// How a job ended.
enum End {
    Completed(Option<Bytes>),
    Failed(State, Option<EndingReason>, Option<String>),
    Gone,
}

impl End {
    fn of(info: JobInfo) -> Self {
        if info.state == State::Completed {
            return Self::Completed(info.result);
        }
        let error = info.errors.into_iter().next_back().and_then(|failure| failure.error);
        Self::Failed(info.state, info.ending.map(|ending| ending.reason), error)
    }

    /// Of a job whose end was told, and whose record is gone.
    fn unkept(state: Option<State>) -> Self {
        match state {
            Some(State::Completed) => Self::Completed(None),
            Some(state) => Self::Failed(state, None, None),
            None => Self::Gone,
        }
    }

    /// Who asks for no result in particular (`()`, an `Option`) needs none that is kept.
    fn result<R: DeserializeOwned>(self) -> Result<R, WaitError> {
        match self {
            Self::Completed(Some(result)) => serde_json::from_slice(&result)
                .map_err(|error| WaitError::Undecodable(error.to_string())),
            Self::Completed(None) => serde_json::from_str("null").map_err(|_| WaitError::NoResult),
            Self::Failed(state, reason, error) => Err(WaitError::Failed { state, reason, error }),
            Self::Gone => Err(WaitError::Gone),
        }
    }
}
