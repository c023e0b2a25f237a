//! Hears from the sentinels when another server is the master.
//!
//! An old master that is still there goes on taking writes until somebody tells it, for seconds, and
//! loses them when it follows the new one. Whoever leaves it at the sentinels' word loses next to none.
//! `+switch-master`: "Sentinel Pub/Sub API", redis.io.

use super::target::Server;
use crate::store::redis::call::less_up_to_half;
use futures_util::StreamExt;
use redis::Client;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

const CHANNEL: &str = "+switch-master";
/// Waits between tries to subscribe to a sentinel: doubling up to the last, less up to a half.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long connecting to a sentinel may take.
const CONNECT: Duration = Duration::from_secs(2);
/// For so long after a switch a sentinel that names another master may not have heard of it. Then it is
/// believed again.
const SETTLES: Duration = Duration::from_secs(5);

/// What the sentinels of one master said last, and who listens to them.
pub(super) struct Switch {
    master: String,
    sentinels: Vec<Client>,
    last: Arc<Mutex<Option<Last>>>,
    listeners: Mutex<Vec<JoinHandle<()>>>,
}

struct Last {
    at: Instant,
    to: Server,
}

impl Switch {
    pub(super) fn new(master: &str, sentinels: Vec<Client>) -> Self {
        let (last, listeners) = (Arc::default(), Mutex::default());
        Self { master: master.to_owned(), sentinels, last, listeners }
    }

    /// When the master changed last.
    pub(super) fn at(&self) -> Option<Instant> {
        lock(&self.last).as_ref().map(|last| last.at)
    }

    /// Listens to each sentinel, if nobody does: those who did may have ended with their runtime.
    pub(super) fn listen(&self) {
        let mut listeners = lock(&self.listeners);
        if !listeners.is_empty() && !listeners.iter().any(JoinHandle::is_finished) {
            return;
        }
        listeners.drain(..).for_each(|listener| listener.abort());
        listeners.extend(self.sentinels.iter().map(|sentinel| {
            tokio::spawn(listen_on(sentinel.clone(), self.master.clone(), self.last.clone()))
        }));
    }

    /// The master after a switch that a moment ago some sentinel told of, and others may not know yet.
    pub(super) fn fresh(&self) -> Option<Server> {
        let last = lock(&self.last);
        last.as_ref().filter(|last| last.at.elapsed() < SETTLES).map(|last| last.to.clone())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        lock(&self.listeners).iter().for_each(JoinHandle::abort);
    }
}

/// Listens for ever.
async fn listen_on(sentinel: Client, master: String, last: Arc<Mutex<Option<Last>>>) {
    let mut pause = PAUSE.0;
    loop {
        if let Ok(Ok(mut subscribed)) = timeout(CONNECT, sentinel.get_async_pubsub()).await
            && let Ok(Ok(())) = timeout(CONNECT, subscribed.subscribe(CHANNEL)).await
        {
            pause = PAUSE.0;
            let mut said = subscribed.on_message();
            while let Some(message) = said.next().await {
                if let Some(to) =
                    switched(&message.get_payload::<String>().unwrap_or_default(), &master)
                {
                    note(&last, &master, to);
                }
            }
        }
        sleep(less_up_to_half(pause)).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// Each sentinel says it: the first counts.
fn note(last: &Mutex<Option<Last>>, master: &str, to: Server) {
    let mut last = lock(last);
    let known = last.as_ref().is_some_and(|last| last.to == to && last.at.elapsed() < SETTLES);
    if !known {
        tracing::warn!(master, %to, "the sentinels have made another server the master; going there");
        *last = Some(Last { at: Instant::now(), to });
    }
}

/// Where to: `master old-host old-port new-host new-port`.
fn switched(said: &str, master: &str) -> Option<Server> {
    let words: Vec<_> = said.rsplitn(5, ' ').collect();
    match words[..] {
        [port, host, _, _, name] if name == master => {
            Some(Server::Tcp(host.to_owned(), port.parse().ok()?))
        }
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing behind these locks can be left half-done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Server {
        Server::Tcp(host.to_owned(), port)
    }

    #[test]
    fn a_switch_is_that_of_its_master() {
        let said = "mymaster 127.0.0.1 1 10.0.0.2 2";
        assert_eq!(switched(said, "mymaster"), Some(at("10.0.0.2", 2)));
        assert_eq!(switched("my master h 1 g 2", "my master"), Some(at("g", 2)));
        let wrong = [(said, "other"), (said, "master"), ("nonsense", "nonsense"), ("", "")];
        for (said, master) in wrong.into_iter().chain([("m h 1 g x", "m"), ("m h 1 g 65536", "m")])
        {
            assert_eq!(switched(said, master), None, "{said}");
        }
    }

    #[test]
    fn a_new_master_is_believed_for_a_moment_whatever_others_say() {
        let switch = Switch::new("m", Vec::new());
        assert!(switch.fresh().is_none() && switch.at().is_none());
        note(&switch.last, "m", at("h", 2));
        let first = switch.at();
        note(&switch.last, "m", at("h", 2));
        assert_eq!((switch.at(), switch.fresh()), (first, Some(at("h", 2))), "said again");
        lock(&switch.last).as_mut().expect("noted").at -= SETTLES;
        assert_eq!(switch.fresh(), None);
    }
}
