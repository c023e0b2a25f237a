//! Connections: to one server, to the master that sentinels name, or to the nodes of a cluster.
//!
//! `target` reads the URL, `tls` its certificates, `dial` opens a connection, `gate` says when not to,
//! `checks` look at the server, `link` has the connections to one server, `pool` those for work that
//! would hold up others, `cluster` finds the node of a key, `sentinels` ask for the master, `switch`
//! hears of another.

mod checks;
#[cfg(feature = "cluster")]
mod cluster;
mod dial;
mod gate;
mod link;
mod pool;
#[cfg(feature = "sentinel")]
mod sentinels;
#[cfg(feature = "sentinel")]
mod switch;
mod target;
mod tls;

pub(super) use link::WATCHDOG;
pub(super) use target::Target;

use super::fault::Fault;
use crate::model::StoreError;
use dial::Dialing;
use futures_util::FutureExt;
use link::{Link, Settings, Way};
use redis::{Cmd, Value, aio::PubSub};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use target::Topology;

/// How long a command may take: a third of the repeat budget, so that an answer that never comes is
/// asked for again. The slowest are scripts over 1,000 jobs: some ms.
const RESPONSE_TIMEOUT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// The connections of one store. Each command finds its server by its key.
pub(super) struct Connections {
    to: To,
    settings: Arc<Settings>,
    shown: Arc<str>,
}

enum To {
    One(Arc<Link>),
    #[cfg(feature = "cluster")]
    Cluster(cluster::Cluster),
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Connections {
    /// Connects at the first call.
    pub(super) fn open(target: &Target, budget: Duration) -> Result<Self, StoreError> {
        let settings = Arc::new(Settings {
            response_timeout: match budget {
                // Nothing is asked for again.
                Duration::ZERO => RESPONSE_TIMEOUT.1,
                budget => (budget / 3).clamp(RESPONSE_TIMEOUT.0, RESPONSE_TIMEOUT.1),
            },
            allow_eviction: target.allow_eviction,
            cluster: target.topology == Topology::Cluster,
            pool_size: target.pool_size,
            pool_wait: target.pool_wait,
            made: AtomicU64::new(0),
        });
        let dialing = Dialing::new(target)?;
        let one =
            |dialer| To::One(Arc::new(Link::new(Arc::new(Way::new(dialer)), settings.clone())));
        let to = match &target.topology {
            Topology::Single => one(dialing.server(&target.servers[0])?),
            #[cfg(feature = "sentinel")]
            Topology::Sentinel(master) => one(dialing.sentinels(target, master)?),
            #[cfg(feature = "cluster")]
            Topology::Cluster => {
                To::Cluster(cluster::Cluster::new(dialing, &target.servers, settings.clone())?)
            }
            #[cfg(not(all(feature = "sentinel", feature = "cluster")))]
            _ => unreachable!("the URL's scheme was checked against the features"),
        };
        Ok(Self { to, settings, shown: format!("{target:?}").into() })
    }

    /// The same servers over connections of their own.
    pub(super) fn apart(&self) -> Self {
        let settings = Arc::new(Settings { made: AtomicU64::new(0), ..*self.settings });
        let to = match &self.to {
            To::One(link) => To::One(Arc::new(link.apart(settings.clone()))),
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => To::Cluster(cluster.apart(settings.clone())),
        };
        Self { to, settings, shown: self.shown.clone() }
    }

    /// Another one whenever a shared connection was made: what was found out about the server and
    /// the user over an older one may hold no more. Zero before the first.
    pub(super) fn generation(&self) -> u64 {
        self.settings.made.load(Ordering::Acquire)
    }

    /// Whether the queues may be at several servers.
    pub(super) fn is_cluster(&self) -> bool {
        self.settings.cluster
    }

    /// The servers that hold queues, each as if it were the only one; by name, if there are several.
    pub(super) async fn servers(&self) -> Result<Vec<(Option<String>, Self)>, Fault> {
        let only = |name: Option<String>, link: &Arc<Link>| {
            let shown = name.clone().map_or(self.shown.clone(), Into::into);
            (name, Self { to: To::One(link.clone()), settings: self.settings.clone(), shown })
        };
        match &self.to {
            To::One(link) => Ok(vec![only(None, link)]),
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => {
                let masters = cluster.all_masters().boxed().await?;
                Ok(masters.into_iter().map(|link| only(Some(link.name()), &link)).collect())
            }
        }
    }

    /// Sends a command on the shared connection to its key's server.
    pub(super) async fn send(&self, cmd: &Cmd) -> Result<Value, Fault> {
        match &self.to {
            To::One(link) => link.send(cmd, false).await,
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.send(cmd).boxed().await,
        }
    }

    /// Sends commands on one key in one round trip. The first that is refused is the answer; the
    /// others may have been done.
    pub(super) async fn send_all(&self, cmds: &[Cmd]) -> Result<Vec<Value>, Fault> {
        match &self.to {
            To::One(link) => link.send_all(cmds).await,
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.send_all(cmds).boxed().await,
        }
    }

    /// Sends commands on one key in one round trip, on a connection that nobody else uses meanwhile;
    /// their answers may take so much longer than usual. An answer, or a refusal, for each.
    pub(super) async fn send_pooled(
        &self,
        cmds: &[Cmd],
        longer: Duration,
    ) -> Result<Vec<Result<Value, Fault>>, Fault> {
        match &self.to {
            To::One(link) => link.send_pooled(cmds, longer).boxed().await,
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.send_pooled(cmds, longer).boxed().await,
        }
    }

    /// Sends a command that blocks on its key's server for up to `block`, on a connection of its own.
    pub(super) async fn send_blocking(&self, cmd: &Cmd, block: Duration) -> Result<Value, Fault> {
        match &self.to {
            To::One(link) => link.send_blocking(cmd, block).await,
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.send_blocking(cmd, block).boxed().await,
        }
    }

    /// Makes a script known to the server where `for_` goes, and, if there are several, to the others.
    #[cfg_attr(not(feature = "cluster"), allow(unused_variables, reason = "there is one server"))]
    pub(super) async fn load(&self, load: &Cmd, for_: &Cmd) -> Result<(), Fault> {
        match &self.to {
            To::One(link) => link.send(load, false).await.map(drop),
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.load(load, for_).boxed().await,
        }
    }

    /// Whether all servers that hold queues answer.
    pub(super) async fn ping(&self) -> Result<(), Fault> {
        let ping = redis::cmd("PING");
        match &self.to {
            To::One(link) => link.send(&ping, false).await.map(drop),
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.send_to_masters(&ping).boxed().await,
        }
    }

    /// Subscribes to a channel, on a connection of its own. What is published at one node of a cluster
    /// is heard at all.
    pub(super) async fn subscribe(&self, channel: &str) -> Result<PubSub, Fault> {
        match &self.to {
            To::One(link) => link.subscribe(channel).await,
            #[cfg(feature = "cluster")]
            To::Cluster(cluster) => cluster.subscribe(channel).boxed().await,
        }
    }
}
