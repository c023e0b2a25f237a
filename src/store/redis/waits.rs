//! Waits for the wake tokens of several queues of a cluster: one blocked wait for each, since a command
//! has one node.
//!
//! A wait that takes a token must not be dropped, or the token is lost with it. So each is a task of its
//! own; one that outlives the call it was made for is heard by the next call, and a token that nobody
//! hears of is put back.

use super::{Inner, scripts::Verb};
use crate::model::{QueueName, StoreError};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    time::{Instant, sleep},
};

/// After a failed wait at one node, while others go on.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// The blocked waits of a store, by queue.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<HashMap<QueueName, Vec<Arc<Wait>>>>);

/// Who is to be told when a blocked wait ends.
#[derive(Debug)]
struct Wait(Mutex<oneshot::Sender<Ended>>);

/// Whether there was a token.
type Ended = Result<bool, StoreError>;

/// Hears of one wait. Told of a token and then dropped, it puts the token back.
struct Hearer {
    store: Arc<Inner>,
    queue: QueueName,
    told: oneshot::Receiver<Ended>,
}

impl Future for Hearer {
    type Output = (QueueName, Ended);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A task that died is a wait that ended without a token.
        let ended = ready!(Pin::new(&mut self.told).poll(cx)).unwrap_or(Ok(false));
        Poll::Ready((self.queue.clone(), ended))
    }
}

impl Drop for Hearer {
    fn drop(&mut self) {
        self.told.close();
        // Dropped after its runtime, it can put nothing back.
        if matches!(self.told.try_recv(), Ok(Ok(true)))
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(put_back(self.store.clone(), self.queue.clone()));
        }
    }
}

/// Waits for the first token of any of the queues. Where the wait fails it is begun anew, for the others'
/// sake, who may be at nodes that live; only when all fail does this.
pub(super) async fn wait_for_any(
    store: &Arc<Inner>,
    queues: &[QueueName],
    timeout: Duration,
) -> Result<Option<QueueName>, StoreError> {
    let until = Instant::now() + timeout;
    let mut waits: FuturesUnordered<_> = queues
        .iter()
        .map(|queue| hear_after(store, queue.clone(), Duration::ZERO, until))
        .collect();
    let mut failing = HashSet::new();
    while let Some((queue, ended)) = waits.next().await {
        let pause = match ended {
            Ok(true) => return Ok(Some(queue)),
            Ok(false) => {
                failing.remove(&queue);
                Duration::ZERO
            }
            Err(error) => {
                failing.insert(queue.clone());
                if queues.iter().all(|queue| failing.contains(queue)) {
                    return Err(error);
                }
                tracing::debug!(%queue, %error, "wait failed; waiting anew");
                AFTER_FAILURE
            }
        };
        // It may have begun with an earlier call, and so ended before its time.
        if Instant::now() + pause < until {
            waits.push(hear_after(store, queue, pause, until));
        }
    }
    Ok(None)
}

async fn hear_after(
    store: &Arc<Inner>,
    queue: QueueName,
    pause: Duration,
    until: Instant,
) -> (QueueName, Ended) {
    if !pause.is_zero() {
        sleep(pause).await;
    }
    hear(store, &queue, until.saturating_duration_since(Instant::now())).await
}

/// Hears of a wait that nobody hears of, or of a new one.
fn hear(store: &Arc<Inner>, queue: &QueueName, timeout: Duration) -> Hearer {
    let (tell, told) = oneshot::channel();
    let hearer = Hearer { store: store.clone(), queue: queue.clone(), told };
    let mut waits = lock(&store.waits.0);
    let waits = waits.entry(queue.clone()).or_default();
    for wait in &*waits {
        let mut other = lock(&wait.0);
        if other.is_closed() {
            *other = tell;
            return hearer;
        }
    }
    let wait = Arc::new(Wait(Mutex::new(tell)));
    waits.push(wait.clone());
    tokio::spawn(block(store.clone(), queue.clone(), timeout, wait));
    hearer
}

async fn block(store: Arc<Inner>, queue: QueueName, timeout: Duration, wait: Arc<Wait>) {
    let ended = store.block(std::slice::from_ref(&queue), timeout).await;
    let ended = ended.map(|token| token.is_some());
    if let Some(waits) = lock(&store.waits.0).get_mut(&queue) {
        waits.retain(|other| !Arc::ptr_eq(other, &wait));
    }
    // Nobody can find it any more, and so change whom it tells.
    let (nobody, _) = oneshot::channel();
    let tell = std::mem::replace(&mut *lock(&wait.0), nobody);
    if let Err(Ok(true)) = tell.send(ended) {
        put_back(store, queue).await;
    }
}

async fn put_back(store: Arc<Inner>, queue: QueueName) {
    if let Err(error) = store.repeated(Verb::Wake, &queue, &|_| {}).await {
        tracing::debug!(%queue, %error, "a wake token is lost; the next sweep looks instead");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A push or a replacement cannot be left half-done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
