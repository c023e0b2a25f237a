//! What others tell a worker: an operator ended one of its jobs; it shall be quiet, or stop.

use super::{Shared, Shutdown};
use crate::store::{Channel, Event, Store, Wish};
use std::time::Duration;

/// After a failed try to listen.
const PAUSE: Duration = Duration::from_secs(1);

/// Obeys until it is dropped. What it misses is made up for: a cancelled job's next extension is
/// refused, and a wish is seen at the next heartbeat.
pub(super) async fn obey(shared: &Shared, store: &dyn Store) {
    loop {
        match store.listen(Channel::Control).await {
            Ok(mut events) => {
                while let Some(event) = events.next().await {
                    hear(shared, event);
                }
            }
            Err(error) => tracing::debug!(%error, "cannot listen to operators; trying again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn hear(shared: &Shared, event: Event) {
    match event {
        Event::Superseded { queue, id, fence } => shared.running.superseded(&queue, &id, fence),
        Event::Asked { worker, wish } if worker == shared.id => grant(&shared.shutdown, wish),
        // Extending now finds out whose jobs were ended meanwhile.
        Event::Gap => shared.extend_now.notify_one(),
        Event::Asked { .. } | Event::Ended { .. } => {}
    }
}

pub(super) fn grant(shutdown: &Shutdown, wish: Wish) {
    match wish {
        Wish::Quiet if !shutdown.is_quiet() => {
            tracing::info!("an operator asks: claims nothing more");
            shutdown.quiet();
        }
        Wish::Stop if !shutdown.is_draining() => {
            tracing::info!("an operator asks to stop: draining");
            shutdown.drain();
        }
        Wish::Quiet | Wish::Stop => {}
    }
}
