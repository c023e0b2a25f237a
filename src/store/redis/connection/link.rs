//! The connections to one server: a shared one for commands, one for each blocked wait and each
//! subscription, and a pool for work that would hold up others.

use super::{
    checks::{self, Facts},
    dial::{CONNECT_TIMEOUT, Dialer, config},
    gate::Gate,
    pool::{self, Pool},
};
use crate::{
    model::StoreError,
    store::redis::fault::{Fault, NO_ANSWER},
};
use futures_util::FutureExt;
use redis::{
    Cmd, RedisResult, Value,
    aio::{MultiplexedConnection, PubSub},
};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// A blocked wait that is so much over its time hangs on a dead connection.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(2);

/// What is the same for all connections of a store.
pub(super) struct Settings {
    /// How long a command on the shared connection may take.
    pub(super) response_timeout: Duration,
    pub(super) allow_eviction: bool,
    /// Whether the servers are to be nodes of a cluster.
    pub(super) cluster: bool,
    pub(super) pool_size: usize,
    pub(super) pool_wait: Duration,
    /// Shared connections made so far, over all servers.
    pub(super) made: AtomicU64,
}

/// The way to one server: how to dial, and when not to.
pub(super) struct Way {
    dialer: Dialer,
    gate: Gate,
    /// Held while connecting: of many who ask at once each learns what came of the try before.
    dialing: tokio::sync::Mutex<()>,
    /// What the last check found.
    facts: Mutex<Option<Facts>>,
}

impl Way {
    pub(super) fn new(dialer: Dialer) -> Self {
        Self { dialer, gate: Gate::default(), dialing: Default::default(), facts: Mutex::default() }
    }

    /// How often the server failed since its last answer.
    #[cfg(feature = "cluster")]
    pub(super) fn failures(&self) -> u32 {
        self.gate.failures()
    }

    /// Somebody gave up waiting for it.
    #[cfg(feature = "cluster")]
    pub(super) fn silent(&self, fault: &Fault) {
        self.lost(fault);
    }

    fn lost(&self, fault: &Fault) {
        self.gate.lost(fault, &self.dialer.to_string());
    }

    /// When another server took this one's part last: connections from before lead to the old one.
    pub(super) fn switched_at(&self) -> Option<Instant> {
        self.dialer.switched_at()
    }

    /// A connection whose answers may take so long; none: as long as they like.
    pub(super) async fn dial(
        &self,
        response: Option<Duration>,
    ) -> Result<MultiplexedConnection, Fault> {
        let config = config(response);
        self.through_gate(async {
            let client = self.dialer.client().await?;
            let made = client.get_multiplexed_async_connection_with_config(&config).await;
            made.map_err(Fault::while_connecting)
        })
        .await
    }

    async fn pubsub(&self) -> Result<PubSub, Fault> {
        self.through_gate(async {
            let client = self.dialer.client().await?;
            client.get_async_pubsub().await.map_err(Fault::while_connecting)
        })
        .await
    }

    async fn through_gate<T>(
        &self,
        connecting: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let _one_at_a_time = self.dialing.lock().await;
        self.gate.pass()?;
        // The greeting of a connection without response timeout must not hang either.
        let made = match timeout(2 * CONNECT_TIMEOUT, connecting).await {
            Ok(made) => made,
            Err(_) => Err(Fault::unavailable("no answer in time while connecting")),
        };
        let hint = if self.dialer.is_tls() { " (does it speak TLS on this port?)" } else { "" };
        let made = made.map_err(|fault| match &fault.error {
            StoreError::Unavailable(why) if why.starts_with(NO_ANSWER) => fault.hinted(hint),
            _ => fault,
        });
        made.map_err(|fault| self.failed(fault))
    }

    fn failed(&self, fault: Fault) -> Fault {
        let fault = fault.at(&self.dialer);
        self.gate.failed(&fault, &self.dialer.to_string());
        fault
    }

    /// Refuses a server that would not keep what sprag promises.
    async fn check(
        &self,
        connection: &mut MultiplexedConnection,
        settings: &Settings,
    ) -> Result<(), Fault> {
        let found = checks::check(connection, settings).await;
        let facts = found.map_err(|fault| self.failed(fault))?;
        self.gate.reached();
        let mut known = lock(&self.facts);
        if known.as_ref() != Some(&facts) {
            facts.warn(&self.dialer);
            *known = Some(facts);
        }
        Ok(())
    }
}

/// The connections of one store to one server.
pub(super) struct Link {
    way: Arc<Way>,
    settings: Arc<Settings>,
    commands: tokio::sync::Mutex<Shared>,
    idle_waiters: Mutex<Vec<MultiplexedConnection>>,
    pool: OnceLock<Pool>,
    /// How often all connections of the pool were given up.
    pool_given_up: AtomicU64,
}

/// The shared connection, and the how-manieth it is.
#[derive(Default)]
struct Shared {
    connection: Option<MultiplexedConnection>,
    number: u64,
    /// The switch after which it was made.
    switched_at: Option<Instant>,
}

impl Link {
    /// Connects at the first call.
    pub(super) fn new(way: Arc<Way>, settings: Arc<Settings>) -> Self {
        Self {
            way,
            settings,
            commands: tokio::sync::Mutex::default(),
            idle_waiters: Mutex::default(),
            pool: OnceLock::new(),
            pool_given_up: AtomicU64::new(0),
        }
    }

    /// The same server over connections of their own; a server that is away is away for all.
    pub(super) fn apart(&self, settings: Arc<Settings>) -> Self {
        Self::new(self.way.clone(), settings)
    }

    /// Where it leads.
    #[cfg(feature = "cluster")]
    pub(super) fn name(&self) -> String {
        self.way.dialer.to_string()
    }

    #[cfg(feature = "cluster")]
    pub(super) fn way(&self) -> &Arc<Way> {
        &self.way
    }

    /// Sends a command on the shared connection; `asking` when a node is only about to get its slot.
    pub(super) async fn send(&self, cmd: &Cmd, asking: bool) -> Result<Value, Fault> {
        let (mut connection, number) = self.commands().await?;
        let answer = if asking {
            let mut pipe = redis::pipe();
            pipe.cmd("ASKING").add_command(cmd.clone());
            connection.send_packed_commands(&pipe, 1, 1).await.map(|mut answers| answers.remove(0))
        } else {
            connection.send_packed_command(cmd).await
        };
        self.answered(answer.and_then(Value::extract_error), number).await
    }

    /// Sends commands on the shared connection in one round trip. The first that is refused is the
    /// answer; the others may have been done.
    pub(super) async fn send_all(&self, cmds: &[Cmd]) -> Result<Vec<Value>, Fault> {
        let (mut connection, number) = self.commands().await?;
        let mut pipe = redis::pipe();
        for cmd in cmds {
            pipe.add_command(cmd.clone());
        }
        let answers = connection.send_packed_commands(&pipe, 0, cmds.len()).await;
        let answers = answers.and_then(|all| all.into_iter().map(Value::extract_error).collect());
        self.answered(answers, number).await
    }

    async fn answered<T>(&self, answer: RedisResult<T>, number: u64) -> Result<T, Fault> {
        let fault = match answer {
            Ok(value) => {
                self.way.gate.answered();
                return Ok(value);
            }
            Err(error) => Fault::from(error).at(&self.way.dialer),
        };
        if fault.discard {
            self.discard(number, &fault).await;
        }
        Err(fault)
    }

    /// Sends commands in one round trip on a connection of the pool, which nobody else uses
    /// meanwhile; their answers may take so much longer.
    pub(super) async fn send_pooled(
        &self,
        cmds: &[Cmd],
        longer: Duration,
    ) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let within = self.settings.response_timeout + longer;
        let pool = self.pool.get_or_init(|| pool::of(self.way.clone(), &self.settings));
        let given_up = self.pool_given_up.load(Ordering::Acquire);
        let named = |fault: Fault| fault.at(&self.way.dialer);
        let answers = pool::send(pool, cmds, within).await.map_err(named).map(|answers| {
            let named = |answer: RedisResult<Value>| answer.map_err(|e| named(Fault::from(e)));
            answers.into_iter().map(named).collect::<Vec<_>>()
        });
        let fault = match &answers {
            Ok(answers) => {
                let mut faults = answers.iter().filter_map(|answer| answer.as_ref().err());
                faults.find(|fault| fault.discard).cloned()
            }
            Err(fault) => fault.discard.then(|| fault.clone()),
        };
        match fault {
            Some(fault) => self.give_up_pool(pool, given_up, &fault),
            None if answers.is_ok() => self.way.gate.answered(),
            None => {}
        }
        answers
    }

    /// Of many calls that fail together the first gives all idle connections up.
    fn give_up_pool(&self, pool: &Pool, given_up: u64, fault: &Fault) {
        let next = given_up + 1;
        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
        if self.pool_given_up.compare_exchange(given_up, next, done, seen).is_ok() {
            pool.retain(|_, _| false);
            self.way.lost(fault);
        }
    }

    /// Sends a command that blocks on the server for up to `block`, on a connection of its own
    /// that has no response timeout (it would lose what the command took) but a watchdog.
    pub(super) async fn send_blocking(&self, cmd: &Cmd, block: Duration) -> Result<Value, Fault> {
        let idle = lock(&self.idle_waiters).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.way.dial(None).boxed().await?,
        };
        let switched_at = self.way.switched_at();
        let sent = connection.send_packed_command(cmd);
        let answer = timeout(block + WATCHDOG, sent)
            .await
            .map_err(|_| Fault::unavailable("a blocked wait got no answer"))
            .and_then(|sent| sent.and_then(Value::extract_error).map_err(Fault::from))
            .map_err(|fault| fault.at(&self.way.dialer))?;
        if self.way.switched_at() == switched_at {
            lock(&self.idle_waiters).push(connection);
        }
        Ok(answer)
    }

    /// Subscribes to a channel, on a connection of its own without a response timeout.
    pub(super) async fn subscribe(&self, channel: &str) -> Result<PubSub, Fault> {
        let mut made = self.way.pubsub().await?;
        // Not through the gate: a user who may not listen is no server that is away.
        let subscribed = match timeout(CONNECT_TIMEOUT, made.subscribe(channel)).await {
            Ok(Ok(())) => {
                self.way.gate.reached();
                Ok(made)
            }
            Ok(Err(error)) => Err(Fault::from(error)),
            Err(_) => Err(Fault::unavailable("no answer in time to a subscription")),
        };
        subscribed.map_err(|fault| fault.at(&self.way.dialer))
    }

    async fn commands(&self) -> Result<(MultiplexedConnection, u64), Fault> {
        self.connected().await.map_err(Fault::unsent)
    }

    async fn connected(&self) -> Result<(MultiplexedConnection, u64), Fault> {
        // Held while connecting: of many who ask at once each learns what came of the try before.
        let mut shared = self.commands.lock().await;
        let switched_at = self.way.switched_at();
        if shared.switched_at != switched_at {
            shared.connection = None;
            self.forget_others();
        }
        if let Some(connection) = &shared.connection {
            return Ok((connection.clone(), shared.number));
        }
        // Rare, and large: not a part of every call's future.
        let connection = self.connect().boxed().await?;
        shared.connection = Some(connection.clone());
        shared.switched_at = switched_at;
        shared.number += 1;
        self.settings.made.fetch_add(1, Ordering::Release);
        Ok((connection, shared.number))
    }

    /// Where the shared connection leads nowhere, those that are idle do not either.
    fn forget_others(&self) {
        lock(&self.idle_waiters).clear();
        if let Some(pool) = self.pool.get() {
            pool.retain(|_, _| false);
        }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, Fault> {
        let mut connection = self.way.dial(Some(self.settings.response_timeout)).await?;
        self.way.check(&mut connection, &self.settings).await?;
        Ok(connection)
    }

    /// Forgets the shared connection of this number; a newer one stays.
    async fn discard(&self, number: u64, fault: &Fault) {
        let mut shared = self.commands.lock().await;
        if shared.number == number && shared.connection.take().is_some() {
            self.forget_others();
            self.way.lost(fault);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing behind these locks can be left half-done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
