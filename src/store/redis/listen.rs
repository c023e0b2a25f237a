//! Hears what is published, on a connection of its own, over all its losses.

use super::{
    Inner,
    call::{Pauses, less_up_to_half},
    connection::WATCHDOG,
    fault::Fault,
    keys,
};
use crate::{
    model::StoreError,
    store::{
        Channel, Events,
        events::{Event, Feed},
    },
};
use futures_util::StreamExt;
use redis::{
    Msg,
    aio::{PubSub, PubSubSink},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// So often a silent server is asked whether it is there: a connection that is only half open would
/// be silent for ever.
const ARE_YOU_THERE: Duration = Duration::from_secs(30);
/// Waits between tries to subscribe anew: from the first, doubling up to the last, less up to a half.
/// When the server is away, the gate of all connections lets fewer pass.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Subscribes, with the usual repeats; what is published from then on is heard.
pub(super) async fn listen(store: Arc<Inner>, channel: Channel) -> Result<Events, StoreError> {
    let name = keys::channel(&store.namespace, channel);
    let mut pauses = Pauses::within(store.budget);
    let subscribed = loop {
        match store.link.subscribe(&name).await {
            Ok(subscribed) => break subscribed,
            Err(fault) => pauses.before_repeat(fault).await?,
        }
    };
    let (feed, events) = Feed::new();
    tokio::spawn(async move {
        // Ends at once, with its connection, when nobody listens any more.
        tokio::select! {
            () = feed.over() => {}
            () = hear_on(&store, &name, subscribed, &feed) => {}
        }
    });
    Ok(events)
}

/// Hears for ever.
async fn hear_on(store: &Inner, channel: &str, subscribed: PubSub, feed: &Feed) {
    let (mut subscribed, mut pause) = (Ok(subscribed), PAUSE.0);
    loop {
        match subscribed {
            Ok(subscribed) => {
                let begun = Instant::now();
                hear(subscribed, feed).await;
                tracing::debug!(channel, "subscription lost; subscribing anew");
                // One that is always cut at once is as good as none.
                if begun.elapsed() >= PAUSE.1 {
                    pause = PAUSE.0;
                }
            }
            Err(Fault { error, .. }) => tracing::debug!(channel, %error, "not subscribed yet"),
        }
        sleep(less_up_to_half(pause)).await;
        pause = (pause * 2).min(PAUSE.1);
        subscribed = store.link.subscribe(channel).await;
        if subscribed.is_ok() {
            feed.push(Event::Gap);
        }
    }
}

/// Hears until the connection is lost.
async fn hear(subscribed: PubSub, feed: &Feed) {
    let (sink, mut messages) = subscribed.split();
    let lost = watchdog(sink);
    tokio::pin!(lost);
    loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => pass_on(&message, feed),
                None => return,
            },
            () = &mut lost => return,
        }
    }
}

fn pass_on(message: &Msg, feed: &Feed) {
    let text = std::str::from_utf8(message.get_payload_bytes()).ok();
    match text.and_then(Event::read) {
        Some(events) => events.into_iter().for_each(|event| feed.push(event)),
        None => {
            tracing::debug!(channel = message.get_channel_name(), "a message of another language")
        }
    }
}

/// Ends when the server does not answer.
async fn watchdog(mut sink: PubSubSink) {
    loop {
        sleep(ARE_YOU_THERE).await;
        if !matches!(timeout(WATCHDOG, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
            return;
        }
    }
}
