//! What a store tells those who listen. A message is a hint: it may be lost, and what counts is what
//! the store says when it is asked.

use crate::model::{Fence, JobId, QueueName, State, WorkerId};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::mpsc;

/// Events that wait for a listener, at most. One script call tells of up to 1,000 jobs.
const BUFFER: usize = 4_096;

/// What is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// [`Event::Superseded`] and [`Event::Asked`]: for workers.
    Control,
    /// [`Event::Ended`], of queues that are [watched](super::Store::watch): for those who wait.
    Done,
}

impl Channel {
    /// Its name, after the namespace.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Done => "done",
        }
    }
}

/// What a worker is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// Claim nothing more.
    Quiet,
    /// Claim nothing more, and end when the jobs that run are over.
    Stop,
}

impl Wish {
    /// The verb.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Stop => "stop",
        }
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        [Self::Quiet, Self::Stop].into_iter().find(|wish| wish.as_str() == text)
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An operator cancelled or archived a running job: its holder should stop.
    Superseded {
        /// The job's queue.
        queue: QueueName,
        /// The job.
        id: JobId,
        /// The fence that holds nothing any more.
        fence: Fence,
    },
    /// A worker is asked to be quiet or to stop.
    Asked {
        /// Who is asked.
        worker: WorkerId,
        /// For what.
        wish: Wish,
    },
    /// An unfinished job came to its end.
    Ended {
        /// The job's queue.
        queue: QueueName,
        /// The job.
        id: JobId,
        /// The state in which it ended, even if its record is gone at once; none if an operator
        /// deleted it.
        state: Option<State>,
    },
    /// Events may be missing here: the connection was lost and made anew, or the listener was too
    /// slow. Look for yourself.
    Gap,
}

/// The state of a job that was deleted, in a message.
const DELETED: &str = "deleted";

impl Event {
    /// The events of a message; none if it cannot be read.
    pub(super) fn read(message: &str) -> Option<Vec<Self>> {
        let mut words = message.split(' ');
        let mut next = || words.next();
        let events = match next()? {
            "superseded" => {
                let (queue, fence, id) = (QueueName::new(next()?), next()?, JobId::new(next()?));
                let fence = Fence(fence.parse().ok()?);
                vec![Self::Superseded { queue: queue.ok()?, id: id.ok()?, fence }]
            }
            "ended" => {
                let (queue, state) = (QueueName::new(next()?).ok()?, next()?);
                let state = match state {
                    DELETED => None,
                    state => Some(state.parse::<State>().ok().filter(|s| !s.is_unfinished())?),
                };
                let ended = |id| {
                    let (queue, id) = (queue.clone(), JobId::new(id).ok()?);
                    Some(Self::Ended { queue, id, state })
                };
                return words.map(ended).collect();
            }
            verb => {
                let (wish, worker) = (Wish::read(verb)?, WorkerId::new(next()?).ok()?);
                vec![Self::Asked { worker, wish }]
            }
        };
        next().is_none().then_some(events)
    }
}

/// What a listener hears, from the moment at which [`listen`](super::Store::listen) answered.
/// Dropping it ends the subscription.
#[derive(Debug)]
pub struct Events {
    events: mpsc::Receiver<Event>,
    missed: Arc<AtomicBool>,
}

impl Events {
    /// The next event; none if there will be no more, because the store or the runtime on which it
    /// listened is gone.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        if self.missed.swap(false, Ordering::AcqRel) {
            return Some(Event::Gap);
        }
        self.events.recv().await
    }
}

/// The other end of [`Events`].
#[derive(Debug)]
pub(super) struct Feed {
    events: mpsc::Sender<Event>,
    missed: Arc<AtomicBool>,
}

impl Feed {
    pub(super) fn new() -> (Self, Events) {
        let (sender, receiver) = mpsc::channel(BUFFER);
        let missed = Arc::new(AtomicBool::new(false));
        (Self { events: sender, missed: missed.clone() }, Events { events: receiver, missed })
    }

    /// Hands an event over, or remembers that one is missing if the listener is too slow.
    pub(super) fn push(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            self.missed.store(true, Ordering::Release);
            // Should the listener have emptied the buffer before it could see the mark, this wakes
            // it; and if not, it has something to read and sees the mark before that.
            let _ = self.events.try_send(Event::Gap);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.events.is_closed()
    }

    /// Until nobody listens any more.
    pub(super) async fn over(&self) {
        self.events.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(id: &str) -> Event {
        let queue = QueueName::new("q").expect("queue");
        Event::Ended { queue, id: JobId::new(id).expect("id"), state: Some(State::Archived) }
    }

    #[test]
    fn messages_are_read() {
        assert_eq!(Event::read("ended q archived a b"), Some(vec![ended("a"), ended("b")]));
        let deleted = Event::read("ended q deleted a").expect("read");
        assert!(matches!(&*deleted, [Event::Ended { state: None, .. }]));
        let superseded = Event::read("superseded q 1764500000000000 a").expect("read");
        let fence = Fence(1_764_500_000_000_000);
        assert!(matches!(&*superseded, [Event::Superseded { fence: f, .. }] if *f == fence));
        let asked = Event::read("stop host:1").expect("read");
        assert!(matches!(&*asked, [Event::Asked { wish: Wish::Stop, .. }]));
    }

    #[test]
    fn what_cannot_be_read_is_no_event() {
        let broken =
            ["", "ended", "ended q", "ended q active a", "superseded q a a", "stop", "go w"];
        for message in broken.into_iter().chain(["superseded q 1 a b", "stop w w", "stop é"]) {
            assert_eq!(Event::read(message).unwrap_or_default(), [], "{message:?}");
        }
    }

    #[tokio::test]
    async fn a_slow_listener_gets_a_gap_and_the_memory_is_bounded() {
        let (feed, mut events) = Feed::new();
        (0..3 * BUFFER).for_each(|_| feed.push(ended("a")));
        assert_eq!(events.next().await, Some(Event::Gap), "first: what was missed lies behind");
        for _ in 0..BUFFER {
            assert_eq!(events.next().await, Some(ended("a")));
        }
        feed.push(ended("b"));
        assert_eq!(events.next().await, Some(ended("b")));
        drop(feed);
        assert_eq!(events.next().await, None);
    }
}
