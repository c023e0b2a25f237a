//! A bounded pool of connections, each used by one at a time: for work that would hold up others on
//! the shared connection.
//!
//! deadpool's own manager for Redis sends `UNWATCH` and `PING` on every checkout, and `PING` is
//! refused by servers that could well answer: this one asks only connections that were idle for long,
//! and takes any answer for a sign of life.

use super::link::{Settings, Way};
use crate::store::redis::fault::Fault;
use deadpool::{
    Runtime,
    managed::{
        self, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType, Timeouts,
    },
};
use redis::{Cmd, RedisResult, Value, aio::MultiplexedConnection};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// An idle connection is trusted for so long.
const FRESH: Duration = Duration::from_secs(15);
/// How long dialling, and how long a sign of life may take.
const CREATE: Duration = Duration::from_secs(5);
const RECYCLE: Duration = Duration::from_secs(2);

pub(super) type Pool = managed::Pool<Manager>;

/// Opens connections by the way that all connections to a server take, and its gate.
pub(super) struct Manager(Arc<Way>);

impl managed::Manager for Manager {
    type Type = MultiplexedConnection;
    type Error = Fault;

    async fn create(&self) -> Result<MultiplexedConnection, Fault> {
        // Whoever uses it has a timeout of his own.
        self.0.dial(None).await
    }

    async fn recycle(
        &self,
        connection: &mut MultiplexedConnection,
        metrics: &Metrics,
    ) -> RecycleResult<Fault> {
        if self.0.switched_at().is_some_and(|at| metrics.created < at) {
            return Err(RecycleError::message("another server is the master"));
        }
        if metrics.last_used() < FRESH {
            return Ok(());
        }
        match connection.send_packed_command(&redis::cmd("PING")).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let fault = Fault::from(error);
                if fault.discard { Err(RecycleError::Backend(fault)) } else { Ok(()) }
            }
        }
    }
}

/// Makes the pool; it connects when it is used.
pub(super) fn of(way: Arc<Way>, settings: &Settings) -> Pool {
    Pool::builder(Manager(way))
        .max_size(settings.pool_size)
        .timeouts(Timeouts {
            wait: Some(settings.pool_wait),
            create: Some(CREATE),
            recycle: Some(RECYCLE),
        })
        .runtime(Runtime::Tokio1)
        .build()
        .expect("a runtime is named, and nothing else can be missing")
}

/// A connection while an answer is outstanding on it. It goes back only [`answered`](Self::answered):
/// who is next would wait behind what the server still does for this call.
struct InFlight(Option<Object<Manager>>);

impl InFlight {
    fn answered(mut self) {
        drop(self.0.take());
    }
}

/// The call failed, or its future was dropped.
impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}

/// Sends commands in one round trip; an answer, or a refusal, for each. A connection whose answer did
/// not come, or came cut off, is not used again.
pub(super) async fn send(
    pool: &Pool,
    cmds: &[Cmd],
    within: Duration,
) -> Result<Vec<RedisResult<Value>>, Fault> {
    let connection = pool.get().await.map_err(|error| no_connection(pool, error).unsent())?;
    let mut sender = connection.clone();
    let in_flight = InFlight(Some(connection));
    let mut pipe = redis::pipe();
    for cmd in cmds {
        pipe.add_command(cmd.clone());
    }
    match timeout(within, sender.send_packed_commands(&pipe, 0, cmds.len())).await {
        Ok(Ok(answers)) => {
            in_flight.answered();
            Ok(answers.into_iter().map(Value::extract_error).collect())
        }
        Ok(Err(error)) => Err(Fault::from(error)),
        Err(_) => Err(Fault::unavailable("no answer in time")),
    }
}

fn no_connection(pool: &Pool, error: PoolError<Fault>) -> Fault {
    match error {
        // There was none to give up.
        PoolError::Backend(fault) => Fault { discard: false, ..fault },
        PoolError::Timeout(TimeoutType::Wait) => {
            let size = pool.status().max_size;
            // Nothing is wrong with the others.
            let text = format!("all {size} connections of the pool are in use (pool=… in the URL)");
            Fault { discard: false, ..Fault::unavailable(text) }
        }
        // The others say at which step it took too long.
        PoolError::Timeout(step) => {
            Fault::unavailable(format!("no connection of the pool in time: {step:?}"))
        }
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            Fault::unavailable("the pool is closed")
        }
    }
}
