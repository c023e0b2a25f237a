//! What all waits of a client share: one subscription, for as long as somebody waits.

use crate::{
    model::{JobId, QueueName, State, StoreError},
    store::{Channel, Event, Events, Store},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::Notify, task::JoinHandle, time::Instant};

/// For so long the store is told that somebody waits for a queue's jobs,
const WATCH: Duration = Duration::from_secs(60);
/// and so often it is told again, by whichever wait comes first.
pub(super) const RENEW: Duration = Duration::from_secs(20);

/// The way to the subscription, if there is one.
#[derive(Debug, Default)]
pub(super) struct Waits(tokio::sync::Mutex<Current>);

#[derive(Debug, Default)]
struct Current {
    bus: Weak<Bus>,
    /// Why there is none, and since when.
    failed: Option<(Instant, StoreError)>,
}

impl Waits {
    /// The subscription that there is, or a new one.
    pub(super) async fn join(&self, store: &Arc<dyn Store>) -> Result<Arc<Bus>, StoreError> {
        let asked = Instant::now();
        let mut current = self.0.lock().await;
        if let Some(bus) = current.bus.upgrade().filter(|bus| !bus.waiting.lock().over) {
            return Ok(bus);
        }
        // Of many who ask at once each learns what came of the try before, and does not try for as
        // long again.
        if let Some((_, error)) = current.failed.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(error.clone());
        }
        let listening = store.listen(Channel::Done).await;
        let events = listening.inspect_err(|error| {
            current.failed = Some((Instant::now(), error.clone()));
        })?;
        let bus = Arc::new(Bus::new(events));
        current.bus = Arc::downgrade(&bus);
        Ok(bus)
    }
}

/// When the store was called, or failed, and what it said.
type Said = (Instant, Result<(), StoreError>);

/// A subscription, those who wait for what it tells, and the queues of which it is told.
#[derive(Debug)]
pub(super) struct Bus {
    waiting: Arc<Waiting>,
    /// What the store said when it was last told that somebody waits.
    watched: tokio::sync::Mutex<HashMap<QueueName, Said>>,
    hearing: JoinHandle<()>,
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

impl Bus {
    fn new(events: Events) -> Self {
        let waiting = Arc::new(Waiting::default());
        let hearing = tokio::spawn(hear(events, Ends(waiting.clone())));
        Self { waiting, watched: tokio::sync::Mutex::default(), hearing }
    }

    /// From here on what is told of this job is not missed; none if nothing is told any more.
    pub(super) fn ticket(self: &Arc<Self>, queue: &QueueName, id: &JobId) -> Option<Ticket> {
        let (key, slot) = ((queue.clone(), id.clone()), Arc::new(Slot::default()));
        let mut waiting = self.waiting.lock();
        if waiting.over {
            return None;
        }
        waiting.slots.entry(key.clone()).or_default().push(slot.clone());
        Some(Ticket { bus: self.clone(), key, slot })
    }

    /// Tells the store that somebody waits for this queue's jobs, unless it was told of late.
    pub(super) async fn watch(
        &self,
        store: &Arc<dyn Store>,
        queue: &QueueName,
    ) -> Result<(), StoreError> {
        let asked = Instant::now();
        let mut watched = self.watched.lock().await;
        match watched.get(queue) {
            Some((at, Ok(()))) if at.elapsed() < RENEW => return Ok(()),
            Some((at, Err(error))) if *at >= asked => return Err(error.clone()),
            _ => {}
        }
        let sent = Instant::now();
        let said = store.watch(queue, WATCH).await;
        let at = if said.is_ok() { sent } else { Instant::now() };
        watched.insert(queue.clone(), (at, said.clone()));
        said
    }

    /// A queue that perhaps was not made when the store was told: it is told again next time.
    pub(super) async fn watch_anew(&self, queue: &QueueName) {
        self.watched.lock().await.remove(queue);
    }
}

/// Until the subscription ends.
async fn hear(mut events: Events, ends: Ends) {
    while let Some(event) = events.next().await {
        match event {
            Event::Ended { queue, id, state } => ends.0.tell(&(queue, id), Told::Ended(state)),
            Event::Gap => ends.0.tell_all(Told::Look),
            Event::Superseded { .. } | Event::Asked { .. } => {}
        }
    }
}

/// Tells everybody when nothing is told any more: also when the runtime ends on which it was told.
struct Ends(Arc<Waiting>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.tell_all(Told::Over);
    }
}

type Key = (QueueName, JobId);

#[derive(Debug, Default)]
struct Waiting(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    slots: HashMap<Key, Vec<Arc<Slot>>>,
    over: bool,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Nothing behind this lock can be left half-done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, key: &Key, told: Told) {
        self.lock().slots.get(key).into_iter().flatten().for_each(|slot| slot.tell(told));
    }

    fn tell_all(&self, told: Told) {
        self.lock().slots.values().flatten().for_each(|slot| slot.tell(told));
    }
}

/// What a wait is told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Told {
    #[default]
    Nothing,
    /// It may have missed something.
    Look,
    /// It will be told nothing more.
    Over,
    /// The job ended in this state; none: it was deleted.
    Ended(Option<State>),
}

/// What one wait was told last. An end is not overwritten by less.
#[derive(Debug, Default)]
struct Slot {
    told: Mutex<Told>,
    rings: Notify,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, news: Told) {
        let mut told = self.lock();
        if !matches!(*told, Told::Ended(_)) {
            *told = news;
        }
        self.rings.notify_one();
    }
}

/// One wait's place; gone with it, and the subscription with the last.
#[derive(Debug)]
pub(super) struct Ticket {
    bus: Arc<Bus>,
    key: Key,
    slot: Arc<Slot>,
}

impl Ticket {
    /// As [`Bus::watch`], of this job's queue.
    pub(super) async fn watch(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        self.bus.watch(store, &self.key.0).await
    }

    /// The next thing that is told. Cancel-safe.
    pub(super) async fn told(&self) -> Told {
        loop {
            // A ring between the look and the wait is kept for the wait.
            match std::mem::take(&mut *self.slot.lock()) {
                Told::Nothing => {}
                told => return told,
            }
            self.slot.rings.notified().await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut waiting = self.bus.waiting.lock();
        if let Some(slots) = waiting.slots.get_mut(&self.key) {
            slots.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
            if slots.is_empty() {
                waiting.slots.remove(&self.key);
            }
        }
    }
}
