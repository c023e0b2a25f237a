//! Connections: a shared multiplexed one for commands, one for each blocked wait, and one for each
//! subscription.

use super::{call::less_up_to_half, fault::Fault};
use crate::model::StoreError;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, IntoConnectionInfo, RedisResult, Value,
    aio::{MultiplexedConnection, PubSub},
    io::tcp::TcpSettings,
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// How long a TCP connection and its greeting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a command may take: a third of the repeat budget, so that an answer that never comes is
/// asked for again. The slowest are scripts over 1,000 jobs: some ms.
const RESPONSE_TIMEOUT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// A blocked wait that is so much over its time hangs on a dead connection.
pub(super) const WATCHDOG: Duration = Duration::from_secs(2);
/// Waits between tries to connect: from the first, doubling up to the last, less up to a half.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// A log line about an unreachable server at most so often.
const LOG_PAUSE: Duration = Duration::from_secs(3);

/// The way to one server.
pub(super) struct Link {
    client: Client,
    commands: tokio::sync::Mutex<Shared>,
    idle_waiters: Mutex<Vec<MultiplexedConnection>>,
    /// Held while connecting: of many who ask at once each learns what came of the try before.
    connecting: tokio::sync::Mutex<()>,
    /// Shared with the links [apart](Link::apart): a server that is away is away for all of them.
    gate: Arc<Mutex<Gate>>,
    response_timeout: Duration,
    /// Shared connections made so far.
    made: AtomicU64,
}

/// The shared connection, and the how-manieth it is.
#[derive(Default)]
struct Shared {
    connection: Option<MultiplexedConnection>,
    number: u64,
}

/// Lets one try to connect pass per back-off, whoever asks: no storm when the server is away.
#[derive(Default)]
struct Gate {
    failures: u32,
    /// Until when, and with what, those who ask are turned away.
    closed: Option<(Instant, Fault)>,
    logged_at: Option<Instant>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.client.get_connection_info().addr())
    }
}

impl Link {
    /// Reads the URL; connects at the first call.
    pub(super) fn open(url: &str, budget: Duration) -> Result<Self, StoreError> {
        let info = connection_info(url)?;
        let client = Client::open(info).map_err(|e| bad_url(&e))?;
        Ok(Self {
            client,
            commands: tokio::sync::Mutex::default(),
            idle_waiters: Mutex::new(Vec::new()),
            connecting: tokio::sync::Mutex::new(()),
            gate: Arc::default(),
            response_timeout: match budget {
                // Nothing is asked for again.
                Duration::ZERO => RESPONSE_TIMEOUT.1,
                budget => (budget / 3).clamp(RESPONSE_TIMEOUT.0, RESPONSE_TIMEOUT.1),
            },
            made: AtomicU64::new(0),
        })
    }

    /// The same server over connections of their own.
    pub(super) fn apart(&self) -> Self {
        Self {
            client: self.client.clone(),
            commands: tokio::sync::Mutex::default(),
            idle_waiters: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            gate: self.gate.clone(),
            response_timeout: self.response_timeout,
            made: AtomicU64::new(0),
        }
    }

    /// Another one whenever a shared connection was made: what was found out about the server and
    /// the user over an older one may hold no more. Zero before the first.
    pub(super) fn generation(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }

    /// Sends a command on the shared connection.
    pub(super) async fn send(&self, cmd: &Cmd) -> Result<Value, Fault> {
        let (mut connection, number) = self.commands().await?;
        let answer = connection.send_packed_command(cmd).await.and_then(Value::extract_error);
        self.answered(answer, number).await
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
            Ok(value) => return Ok(value),
            Err(error) => Fault::from(error),
        };
        if fault.discard {
            self.discard(number, &fault).await;
        }
        Err(fault)
    }

    /// Sends a command that blocks on the server for up to `block`, on a connection of its own
    /// that has no response timeout (it would lose what the command took) but a watchdog.
    pub(super) async fn send_blocking(&self, cmd: &Cmd, block: Duration) -> Result<Value, Fault> {
        let idle = lock(&self.idle_waiters).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect(None).await?,
        };
        let sent = connection.send_packed_command(cmd);
        let answer = timeout(block + WATCHDOG, sent)
            .await
            .map_err(|_| Fault::unavailable("a blocked wait got no answer"))?
            .and_then(Value::extract_error)
            .map_err(Fault::from)?;
        lock(&self.idle_waiters).push(connection);
        Ok(answer)
    }

    /// Subscribes to a channel, on a connection of its own without a response timeout.
    pub(super) async fn subscribe(&self, channel: &str) -> Result<PubSub, Fault> {
        let mut made = self.through_gate(self.client.get_async_pubsub()).await?;
        // Not through the gate: a user who may not listen is no server that is away.
        match timeout(CONNECT_TIMEOUT, made.subscribe(channel)).await {
            Ok(subscribed) => subscribed.map(|()| made).map_err(Fault::from),
            Err(_) => Err(Fault::unavailable("no answer in time to a subscription")),
        }
    }

    async fn commands(&self) -> Result<(MultiplexedConnection, u64), Fault> {
        let mut shared = self.commands.lock().await;
        if let Some(connection) = &shared.connection {
            return Ok((connection.clone(), shared.number));
        }
        let connection = self.connect(Some(self.response_timeout)).await?;
        shared.connection = Some(connection.clone());
        shared.number += 1;
        self.made.fetch_add(1, Ordering::Release);
        Ok((connection, shared.number))
    }

    /// Forgets the shared connection of this number; a newer one stays.
    async fn discard(&self, number: u64, fault: &Fault) {
        let mut shared = self.commands.lock().await;
        if shared.number == number && shared.connection.take().is_some() {
            lock(&self.idle_waiters).clear();
            tracing::warn!(server = %self.client.get_connection_info().addr(), error = %fault.error,
                "connection to Redis given up; connecting anew at the next call");
        }
    }

    async fn connect(&self, response: Option<Duration>) -> Result<MultiplexedConnection, Fault> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(response);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        self.through_gate(connecting).await
    }

    async fn through_gate<T>(
        &self,
        connecting: impl Future<Output = RedisResult<T>>,
    ) -> Result<T, Fault> {
        let _one_at_a_time = self.connecting.lock().await;
        lock(&self.gate).pass()?;
        // The greeting of a connection without response timeout must not hang either.
        let made = match timeout(2 * CONNECT_TIMEOUT, connecting).await {
            Ok(made) => made.map_err(Fault::from),
            Err(_) => Err(Fault::unavailable("no answer in time while connecting")),
        };
        let made = made.map_err(|fault| fault.at(self.client.get_connection_info().addr()));
        let mut gate = lock(&self.gate);
        match made {
            Ok(connection) => {
                *gate = Gate::default();
                Ok(connection)
            }
            Err(fault) => {
                gate.close(&fault, self.client.get_connection_info());
                Err(fault)
            }
        }
    }
}

impl Gate {
    fn pass(&mut self) -> Result<(), Fault> {
        let until = Instant::now() + self.pause();
        match &mut self.closed {
            Some((until, fault)) if Instant::now() < *until => Err(fault.clone()),
            // One tries for all: the others wait, as if this try had failed already.
            Some((closed_until, _)) => {
                *closed_until = until;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn pause(&self) -> Duration {
        let longest = BACKOFF.0.saturating_mul(1 << self.failures.min(10)).min(BACKOFF.1);
        less_up_to_half(longest)
    }

    fn close(&mut self, fault: &Fault, info: &ConnectionInfo) {
        let now = Instant::now();
        self.closed = Some((now + self.pause(), fault.clone()));
        self.failures += 1;
        if self.logged_at.is_none_or(|at| now.duration_since(at) >= LOG_PAUSE) {
            self.logged_at = Some(now);
            tracing::warn!(server = %info.addr(), error = %fault.error, tries = self.failures,
                "cannot connect to Redis; trying again with back-off");
        }
    }
}

fn connection_info(url: &str) -> Result<ConnectionInfo, StoreError> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !["redis", "redis+unix", "unix"].contains(&scheme) {
        return Err(StoreError::invalid(
            "url scheme",
            format!("{scheme:?}"),
            "redis or redis+unix",
        ));
    }
    let info = url.into_connection_info().map_err(|e| bad_url(&e))?;
    let keepalive = redis::io::tcp::socket2::TcpKeepalive::new().with_time(Duration::from_secs(15));
    Ok(info.set_tcp_settings(TcpSettings::default().set_nodelay(true).set_keepalive(keepalive)))
}

/// redis-rs does not repeat the URL, and with it a password, in this text.
fn bad_url(error: &redis::RedisError) -> StoreError {
    StoreError::invalid(
        "url",
        error,
        "redis://host[:port][/db] or redis+unix:///path, user:password before the host",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing behind these locks can be left half-done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
