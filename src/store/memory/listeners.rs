//! Who listens, and what verbs have to tell.

use crate::{
    model::{Fence, JobId, QueueName, State},
    store::{
        Channel, Events,
        events::{Event, Feed},
    },
};

/// What a verb on a queue has to tell.
#[derive(Debug)]
pub(super) enum News {
    /// An operator took a job out of the hands of this fence.
    Superseded(JobId, Fence),
    /// An unfinished job ended in this state; none: it was deleted.
    Ended(JobId, Option<State>),
}

/// All who listen.
#[derive(Default)]
pub(super) struct Listeners(Vec<(Channel, Feed)>);

impl Listeners {
    pub(super) fn add(&mut self, channel: Channel) -> Events {
        let (feed, events) = Feed::new();
        self.0.retain(|(_, feed)| !feed.is_over());
        self.0.push((channel, feed));
        events
    }

    pub(super) fn tell(&self, channel: Channel, event: Event) {
        let all = self.0.iter().filter(|(listens_to, _)| *listens_to == channel);
        all.for_each(|(_, feed)| feed.push(event.clone()));
    }

    pub(super) fn tell_news(&self, queue: &QueueName, news: Vec<News>) {
        for news in news {
            let queue = queue.clone();
            match news {
                News::Superseded(id, fence) => {
                    self.tell(Channel::Control, Event::Superseded { queue, id, fence });
                }
                News::Ended(id, state) => {
                    self.tell(Channel::Done, Event::Ended { queue, id, state });
                }
            }
        }
    }
}
