//! The nodes of a Redis Cluster: which has which slot, and the connections to each.
//!
//! A queue's keys share a slot, so each call has one node. The map of slots is what some node said last
//! (`CLUSTER SLOTS`, see `slots`); a redirection corrects it at once, and it is asked for again when a node fails.
//! Nothing is repeated here but what a node redirected, and so did not do: redis-rs' own cluster client
//! repeats by itself also what may have been done (it ran an INCR four times and said Ok), which only
//! the caller can judge. What a slot is: the Redis Cluster specification, redis.io.

mod slots;

use super::{
    dial::Dialing,
    link::{Link, Settings, Way},
    target::Server,
};
use crate::{
    model::StoreError,
    store::redis::{
        call::less_up_to_half,
        fault::{Fault, Redirect},
    },
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use redis::{Cmd, Value, aio::PubSub};
use slots::{Map, located, slot_of};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// More redirections than that are no way to a node, but a cluster that disagrees with itself.
const REDIRECTIONS: usize = 5;
/// The map is asked for at most so often, less up to a half.
const REFRESH_PAUSE: Duration = Duration::from_millis(200);
/// How long one node may take to tell it, before the next is asked.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);

/// The connections of one store to the nodes of a cluster.
pub(super) struct Cluster {
    nodes: Arc<Nodes>,
    links: Mutex<HashMap<Server, Arc<Link>>>,
    settings: Arc<Settings>,
}

/// What is known of the nodes; shared with the connections [apart](Cluster::apart).
struct Nodes {
    dialing: Dialing,
    /// Those of the URL.
    seeds: Vec<Server>,
    ways: Mutex<HashMap<Server, Arc<Way>>>,
    map: Mutex<Map>,
    stale: AtomicBool,
    /// Held while asking; then when that was last.
    refreshing: tokio::sync::Mutex<Option<Instant>>,
}

impl Cluster {
    /// Connects at the first call.
    pub(super) fn new(
        dialing: Dialing,
        seeds: &[Server],
        settings: Arc<Settings>,
    ) -> Result<Self, StoreError> {
        let nodes = Nodes {
            dialing,
            seeds: seeds.to_vec(),
            ways: Mutex::default(),
            map: Mutex::default(),
            stale: AtomicBool::new(false),
            refreshing: tokio::sync::Mutex::default(),
        };
        // An address that cannot be one shows here.
        for seed in seeds {
            nodes.way(seed)?;
        }
        Ok(Self { nodes: Arc::new(nodes), links: Mutex::default(), settings })
    }

    /// The same nodes over connections of their own.
    pub(super) fn apart(&self, settings: Arc<Settings>) -> Self {
        Self { nodes: self.nodes.clone(), links: Mutex::default(), settings }
    }

    pub(super) async fn send(&self, cmd: &Cmd) -> Result<Value, Fault> {
        let send = |link: Arc<Link>, asking| async move { link.send(cmd, asking).await }.boxed();
        self.routed(slot_of(cmd), &send).await
    }

    /// All have one key, and none of them is part of a migration's protocol: no `ASKING`.
    pub(super) async fn send_all(&self, cmds: &[Cmd]) -> Result<Vec<Value>, Fault> {
        let slot = cmds.first().and_then(slot_of);
        let send = |link: Arc<Link>, asking: bool| {
            async move {
                if !asking {
                    return link.send_all(cmds).await;
                }
                let mut answers = Vec::with_capacity(cmds.len());
                for cmd in cmds {
                    answers.push(link.send(cmd, true).await?);
                }
                Ok(answers)
            }
            .boxed()
        };
        self.routed(slot, &send).await
    }

    pub(super) async fn send_pooled(
        &self,
        cmds: &[Cmd],
        longer: Duration,
    ) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let slot = cmds.first().and_then(slot_of);
        let send = |link: Arc<Link>, asking: bool| {
            async move {
                let asking_first = asking.then(|| redis::cmd("ASKING"));
                let all: Vec<_> = asking_first.iter().chain(cmds).cloned().collect();
                let mut answers = link.send_pooled(&all, longer).boxed().await?;
                answers.drain(..usize::from(asking));
                // A redirection of the first is one of all: they have one key.
                match answers.first() {
                    Some(Err(fault)) if fault.redirect.is_some() => Err(fault.clone()),
                    _ => Ok(answers),
                }
            }
            .boxed()
        };
        self.routed(slot, &send).await
    }

    pub(super) async fn send_blocking(&self, cmd: &Cmd, block: Duration) -> Result<Value, Fault> {
        // While a slot moves its token is where it is: not there yet, it is waited for in vain.
        let send = |link: Arc<Link>, _| async move { link.send_blocking(cmd, block).await }.boxed();
        self.routed(slot_of(cmd), &send).await
    }

    /// A script goes to all masters: the next queue of the same process may be at another. That of the
    /// call must have it; the others say so when it is their turn.
    pub(super) async fn load(&self, load: &Cmd, for_: &Cmd) -> Result<(), Fault> {
        let own = self.link_of(slot_of(for_)).await?;
        let others = self.masters().into_iter().filter(|link| !Arc::ptr_eq(link, &own));
        for other in others.filter(|link| link.way().failures() == 0) {
            // Not waited for: one that does not answer must not hold up the call.
            let load = load.clone();
            tokio::spawn(async move {
                if let Err(fault) = other.send(&load, false).await {
                    tracing::debug!(error = %fault.error, "a script is not loaded at another node");
                }
            });
        }
        own.send(load, false).await.map(drop)
    }

    pub(super) async fn all_masters(&self) -> Result<Vec<Arc<Link>>, Fault> {
        self.fresh_map().boxed().await?;
        let mut masters = self.masters();
        masters.sort_by_cached_key(|link| link.name());
        Ok(masters)
    }

    /// All masters must answer.
    pub(super) async fn send_to_masters(&self, cmd: &Cmd) -> Result<(), Fault> {
        let masters = self.all_masters().await?;
        let answers = join_all(masters.iter().map(|link| link.send(cmd, false))).await;
        answers.into_iter().collect::<Result<Vec<_>, _>>().map(drop).inspect_err(|_| self.stale())
    }

    pub(super) async fn subscribe(&self, channel: &str) -> Result<PubSub, Fault> {
        let link = self.link_of(None).await?;
        link.subscribe(channel).await.inspect_err(|_| self.stale())
    }

    /// Sends to the slot's node, and where it is redirected to.
    async fn routed<'c, T>(
        &self,
        slot: Option<u16>,
        send: &(dyn Fn(Arc<Link>, bool) -> BoxFuture<'c, Result<T, Fault>> + Sync + 'c),
    ) -> Result<T, Fault> {
        let (mut link, mut asking) = (self.link_of(slot).await.map_err(Fault::unsent)?, false);
        let mut redirections = 0;
        loop {
            let fault = match send(link.clone(), asking).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            match &fault.redirect {
                Some(redirect) if redirections < REDIRECTIONS => {
                    redirections += 1;
                    let Some(to) = self.redirected(redirect, &link) else { return Err(fault) };
                    (link, asking) = (self.link(&to).map_err(Fault::refused)?, redirect.ask);
                }
                Some(redirect) => {
                    self.stale();
                    return Err(astray(redirect));
                }
                None => {
                    if fault.may_pass() {
                        self.stale();
                    }
                    return Err(fault);
                }
            }
        }
    }

    /// Where to; and what moved for good is known from now on.
    fn redirected(&self, redirect: &Redirect, from: &Arc<Link>) -> Option<Server> {
        let (host, port) = redirect.to.rsplit_once(':')?;
        let to = located(host, port.parse().ok()?, &self.server_of(from)?)?;
        if !redirect.ask {
            lock(&self.nodes.map).moved(redirect.slot, to.clone());
            // Where one has moved, others have.
            self.stale();
        }
        Some(to)
    }

    fn server_of(&self, link: &Arc<Link>) -> Option<Server> {
        let links = lock(&self.links);
        links.iter().find(|(_, known)| Arc::ptr_eq(known, link)).map(|(server, _)| server.clone())
    }

    fn stale(&self) {
        self.nodes.stale.store(true, Ordering::Release);
    }

    /// The connections to a slot's master, or to any.
    async fn link_of(&self, slot: Option<u16>) -> Result<Arc<Link>, Fault> {
        self.fresh_map().boxed().await?;
        let server = match slot {
            Some(slot) => lock(&self.nodes.map).master(slot).cloned(),
            None => {
                let mut masters = self.masters();
                // One that answers, if there is one.
                fastrand::shuffle(&mut masters);
                masters.sort_by_key(|link| link.way().failures());
                return masters.into_iter().next().ok_or_else(|| self.unserved(None));
            }
        };
        let server = server.ok_or_else(|| self.unserved(slot))?;
        self.link(&server).map_err(Fault::refused)
    }

    fn unserved(&self, slot: Option<u16>) -> Fault {
        self.stale();
        let what = slot.map_or("any slot".to_owned(), |slot| format!("slot {slot}"));
        Fault {
            discard: false,
            ..Fault::unavailable(format!("no node of the cluster serves {what}"))
        }
    }

    fn link(&self, server: &Server) -> Result<Arc<Link>, StoreError> {
        let mut links = lock(&self.links);
        if let Some(link) = links.get(server) {
            return Ok(link.clone());
        }
        let link = Arc::new(Link::new(self.nodes.way(server)?, self.settings.clone()));
        links.insert(server.clone(), link.clone());
        Ok(link)
    }

    fn masters(&self) -> Vec<Arc<Link>> {
        let masters: Vec<_> = lock(&self.nodes.map).masters().into_iter().cloned().collect();
        masters.iter().filter_map(|server| self.link(server).ok()).collect()
    }

    /// Asks for the map if there is none, or if it is known to be old: one asks for all. With an old
    /// one the others go on: its owner redirects them.
    async fn fresh_map(&self) -> Result<(), Fault> {
        let has_map = !lock(&self.nodes.map).ranges.is_empty();
        if has_map && !self.nodes.stale.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut last = match self.nodes.refreshing.try_lock() {
            Ok(last) => last,
            Err(_) if has_map => return Ok(()),
            Err(_) => self.nodes.refreshing.lock().await,
        };
        if !has_map && !lock(&self.nodes.map).ranges.is_empty() {
            return Ok(());
        }
        if has_map && last.is_some_and(|at| at.elapsed() < less_up_to_half(REFRESH_PAUSE)) {
            return Ok(());
        }
        *last = Some(Instant::now());
        match self.ask_for_map().await {
            Ok(map) => {
                self.nodes.stale.store(false, Ordering::Release);
                self.take(map);
                Ok(())
            }
            // The old one may be right still.
            Err(fault) if has_map && fault.may_pass() => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// The first node's that tells it: those first that answered last time.
    async fn ask_for_map(&self) -> Result<Map, Fault> {
        let known = lock(&self.nodes.map).clone();
        let mut servers: Vec<_> =
            known.masters().into_iter().chain(&known.replicas).cloned().collect();
        fastrand::shuffle(&mut servers);
        servers.extend(
            self.nodes
                .seeds
                .iter()
                .filter(|seed| !servers.contains(seed))
                .cloned()
                .collect::<Vec<_>>(),
        );
        servers.sort_by_cached_key(|server| self.nodes.way(server).map_or(0, |way| way.failures()));
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("SLOTS");
        let mut why: Option<Fault> = None;
        for server in &servers {
            let link = self.link(server).map_err(Fault::refused)?;
            let Ok(answer) = timeout(REFRESH_TIMEOUT, link.send(&slots, false)).await else {
                let silent = Fault::unavailable("no answer in time").at(server);
                // Others first, from now on: its own time-outs are longer, and may not be waited for.
                link.way().silent(&silent);
                why = Some(silent);
                continue;
            };
            let fault = match answer.map(|answer| Map::read(&answer, server)) {
                Ok(Some(map)) => return Ok(map),
                Ok(None) => {
                    Fault::unavailable("knows of no slots (is the cluster made?)").at(server)
                }
                Err(fault) => fault,
            };
            // One that refuses tells nothing of those that are away for a moment.
            if why.is_none() || fault.may_pass() {
                why = Some(fault);
            }
        }
        Err(why.unwrap_or_else(|| Fault::unavailable("no node of the cluster is known")))
    }

    /// Connections to nodes that are gone are closed.
    fn take(&self, map: Map) {
        let mut known = lock(&self.nodes.map);
        if *known != map {
            tracing::info!(masters = map.masters().len(), "the slots of the cluster, anew");
        }
        let stays =
            |server: &Server| map.masters().contains(server) || map.replicas.contains(server);
        lock(&self.links).retain(|server, _| stays(server));
        lock(&self.nodes.ways)
            .retain(|server, _| stays(server) || self.nodes.seeds.contains(server));
        *known = map;
    }
}

impl Nodes {
    fn way(&self, server: &Server) -> Result<Arc<Way>, StoreError> {
        let mut ways = lock(&self.ways);
        if let Some(way) = ways.get(server) {
            return Ok(way.clone());
        }
        let way = Arc::new(Way::new(self.dialing.server(server)?));
        ways.insert(server.clone(), way.clone());
        Ok(way)
    }
}

/// Sent from node to node.
fn astray(redirect: &Redirect) -> Fault {
    let Redirect { slot, to, .. } = redirect;
    let text = format!(
        "{to}: the nodes of the cluster disagree on who has slot {slot}, or it does not stop moving: see \
         CLUSTER NODES at each"
    );
    Fault { discard: false, sent: false, ..Fault::unavailable(text) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing behind these locks can be left half-done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
