//! One script call: its caller, its repeats within the budget, `NOSCRIPT`, `RARE`.

use super::{
    Durability, Inner,
    decode::{self, Word},
    durable,
    fault::Fault,
    keys::KeyWriter,
    scripts::{Script, VERBS, Verb},
};
use crate::model::{QueueName, StoreError, millis};
use redis::{Arg, Cmd, Value};
use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Waits between repeats: from the first, doubling up to the last, less up to a half.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// After `RARE` so many calls begin with the full set of keys.
const RARE_FOR: u32 = 100;

/// Who makes a call: the name under which its answer is kept.
#[derive(Debug)]
struct Caller {
    name: String,
    seq: u64,
}

/// Callers that have no call in flight, by queue; each is used by one call at a time.
#[derive(Debug, Default)]
pub(super) struct CallerPool(Mutex<HashMap<QueueName, Vec<Caller>>>);

/// A caller while its call is in flight; goes back with the next seq, so that whatever of this
/// call arrives late does nothing.
struct Leased<'a> {
    pool: &'a CallerPool,
    queue: &'a QueueName,
    caller: Caller,
}

impl CallerPool {
    fn lease<'a>(&'a self, queue: &'a QueueName) -> Leased<'a> {
        let idle = self.lock().get_mut(queue).and_then(Vec::pop);
        let fresh = || Caller { name: format!("{:016x}", fastrand::u64(..)), seq: 1 };
        Leased { pool: self, queue, caller: idle.unwrap_or_else(fresh) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<QueueName, Vec<Caller>>> {
        // A push or pop cannot be left half-done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Leased<'_> {
    fn drop(&mut self) {
        let next = Caller { name: std::mem::take(&mut self.caller.name), seq: self.caller.seq + 1 };
        self.pool.lock().entry(self.queue.clone()).or_default().push(next);
    }
}

/// Which scripts lately asked for their full set of keys: by verb, calls left that begin with it.
#[derive(Debug, Default)]
pub(super) struct RareCalls([AtomicU32; VERBS]);

/// What a call carries besides caller, seq and budget.
pub(super) struct Call<'a> {
    pub(super) verb: Verb,
    pub(super) queue: &'a QueueName,
    /// Writes the arguments; asked again if the call must be made with more keys.
    pub(super) args: &'a (dyn Fn(&mut Cmd) + Sync),
    /// A caller by name, for a settlement that a person may repeat by hand.
    pub(super) settles: Option<String>,
}

/// What a script answered, and, if it was asked to wait for that, what there is against calling it
/// durable.
pub(super) struct Reply {
    pub(super) answer: Value,
    pub(super) shortfall: Option<StoreError>,
}

impl Inner {
    /// Calls a script that keeps its answer for its caller.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Value, StoreError> {
        self.call_durably(call, None).await.map(|reply| reply.answer)
    }

    /// The same, and waits until what it wrote is as durable as is asked.
    pub(super) async fn call_durably(
        &self,
        call: Call<'_>,
        durability: Option<Durability>,
    ) -> Result<Reply, StoreError> {
        let via = durability.map_or_else(|| Via::of(call.verb), Via::Durable);
        if let Some(name) = &call.settles {
            return self.call_as(&call, name, 1, via).await;
        }
        let leased = self.pool.lease(call.queue);
        self.call_as(&call, &leased.caller.name, leased.caller.seq, via).await
    }

    async fn call_as(
        &self,
        call: &Call<'_>,
        caller: &str,
        seq: u64,
        via: Via,
    ) -> Result<Reply, StoreError> {
        let budget = millis(self.budget);
        let args = |cmd: &mut Cmd| {
            cmd.arg(caller).arg(seq).arg(budget);
            (call.args)(cmd);
        };
        let reply = self.repeated_via(via, self.budget, call.verb, call.queue, &args).await;
        reply.map_err(|fault| match fault.sent {
            true => fault.error,
            false => fault.error.nothing_written(),
        })
    }

    /// Calls a script, again and again with the same arguments while the store is unavailable and
    /// the budget lasts. The script must be one that may run twice.
    pub(super) async fn repeated(
        &self,
        verb: Verb,
        queue: &QueueName,
        args: &(dyn Fn(&mut Cmd) + Sync),
    ) -> Result<Value, StoreError> {
        self.repeated_within(self.budget, verb, queue, args).await
    }

    /// The same within a budget of its own.
    pub(super) async fn repeated_within(
        &self,
        budget: Duration,
        verb: Verb,
        queue: &QueueName,
        args: &(dyn Fn(&mut Cmd) + Sync),
    ) -> Result<Value, StoreError> {
        let reply = self.repeated_via(Via::of(verb), budget, verb, queue, args).await;
        Ok(reply?.answer)
    }

    /// The fault says of all tries together whether the call may have been applied.
    async fn repeated_via(
        &self,
        via: Via,
        budget: Duration,
        verb: Verb,
        queue: &QueueName,
        args: &(dyn Fn(&mut Cmd) + Sync),
    ) -> Result<Reply, Fault> {
        let script = self.scripts.get(verb);
        let mut rare = script.rare_keys.is_some() && self.rare.begin(verb);
        let mut cmd = self.command(script, queue, rare, args);
        let mut pauses = Pauses::within(budget);
        loop {
            let reply = match self.send_admitted(via, verb, queue, &cmd).await {
                Ok(reply) => reply,
                Err(fault) => {
                    pauses.before_repeat(fault).await?;
                    continue;
                }
            };
            match decode::status(&reply.answer) {
                Some(Word::Rare) if !rare => {
                    rare = true;
                    self.rare.seen(verb);
                    cmd = self.command(script, queue, rare, args);
                }
                Some(Word::Late) => {
                    let late = "a later call of this caller was answered";
                    return Err(Fault::refused(StoreError::Backend(late.into())));
                }
                _ => return Ok(reply),
            }
        }
    }

    /// Sends a plain command with the same repeats.
    pub(super) async fn plain(&self, cmd: &Cmd) -> Result<Value, StoreError> {
        let mut pauses = Pauses::within(self.budget);
        loop {
            match self.send_plain(cmd).await {
                Ok(answer) => return Ok(answer),
                Err(fault) if fault.forbidden => {
                    let user = &self.user;
                    let hint =
                        format!(" (user {user}; `sprag acl operator` prints the rules of who may)");
                    return Err(fault.hinted(&hint).error);
                }
                Err(fault) => pauses.before_repeat(fault).await?,
            }
        }
    }

    /// Sends a command once.
    pub(super) async fn send_plain(&self, cmd: &Cmd) -> Result<Value, Fault> {
        self.noticed(self.link.send(cmd).await)
    }

    fn noticed<T>(&self, answer: Result<T, Fault>) -> Result<T, Fault> {
        if answer.as_ref().is_err_and(|fault| fault.discard) {
            self.admitted.forget();
        }
        answer
    }

    /// Sends several plain commands in one round trip, with the same repeats.
    pub(super) async fn piped(&self, cmds: &[Cmd]) -> Result<Vec<Value>, StoreError> {
        let mut pauses = Pauses::within(self.budget);
        loop {
            match self.noticed(self.link.send_all(cmds).await) {
                Ok(answer) => return Ok(answer),
                Err(fault) => pauses.before_repeat(fault).await?,
            }
        }
    }

    pub(super) fn command(
        &self,
        script: &Script,
        queue: &QueueName,
        rare: bool,
        args: &(dyn Fn(&mut Cmd) + Sync),
    ) -> Cmd {
        let keys = script.rare_keys.as_ref().filter(|_| rare).unwrap_or(&script.keys);
        let mut names = KeyWriter::new(&self.namespace, queue);
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&script.sha).arg(keys.len());
        for key in keys {
            cmd.arg(names.key(key));
        }
        args(&mut cmd);
        cmd
    }

    async fn send_admitted(
        &self,
        via: Via,
        verb: Verb,
        queue: &QueueName,
        cmd: &Cmd,
    ) -> Result<Reply, Fault> {
        // Every time: it may be another connection, and another user's rights, than at the last try.
        self.admitted(verb, queue).await.map_err(Fault::unsent)?;
        self.send(via, self.scripts.get(verb), cmd).await
    }

    pub(super) async fn send(&self, via: Via, script: &Script, cmd: &Cmd) -> Result<Reply, Fault> {
        match self.send_via(via, cmd).await {
            Err(fault) if fault.no_script => {}
            reply => return reply,
        }
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(&script.text);
        self.noticed(self.link.load(&load, cmd).await).map_err(Fault::unsent)?;
        match self.send_via(via, cmd).await {
            // Flushed again in between: sent whole, it needs no cache, however often that happens.
            Err(fault) if fault.no_script => self.send_via(via, &whole(script, cmd)).await,
            reply => reply,
        }
    }

    async fn send_via(&self, via: Via, cmd: &Cmd) -> Result<Reply, Fault> {
        let answer = match via {
            Via::Shared => self.send_plain(cmd).await?,
            Via::Pool => {
                let cmds = std::slice::from_ref(cmd);
                let mut answers =
                    self.noticed(self.link.send_pooled(cmds, Duration::ZERO).await)?;
                self.noticed(answers.pop().unwrap_or(Ok(Value::Nil)))?
            }
            Via::Durable(durability) => {
                return self.noticed(durable::send(&self.link, cmd, durability).await);
            }
        };
        Ok(Reply { answer, shortfall: None })
    }
}

/// Which connection a script goes by.
#[derive(Clone, Copy)]
pub(super) enum Via {
    /// The shared one: short calls, many at once.
    Shared,
    /// One of the pool: long calls, which would hold up the others behind them.
    Pool,
    /// One of the pool, on which the server is then asked whether all was kept.
    Durable(Durability),
}

impl Via {
    fn of(verb: Verb) -> Self {
        match verb {
            Verb::Days
            | Verb::DeleteQueue
            | Verb::Examine
            | Verb::List
            | Verb::Operate
            | Verb::Quarantines
            | Verb::Release
            | Verb::Repair
            | Verb::Show => Self::Pool,
            _ => Self::Shared,
        }
    }
}

/// The same call with the script's text in place of its name.
fn whole(script: &Script, by_name: &Cmd) -> Cmd {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(&script.text);
    for arg in by_name.args_iter().skip(2) {
        if let Arg::Simple(arg) = arg {
            cmd.arg(arg);
        }
    }
    cmd
}

impl RareCalls {
    fn begin(&self, verb: Verb) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.0[verb as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn seen(&self, verb: Verb) {
        self.0[verb as usize].store(RARE_FOR, Ordering::Relaxed);
    }
}

/// So that those who fail together do not try again together.
pub(super) fn less_up_to_half(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// The waits between repeats, until the budget is used up.
pub(super) struct Pauses {
    until: Instant,
    next: Duration,
    /// One of the tries may have been applied.
    sent: bool,
}

impl Pauses {
    pub(super) fn within(budget: Duration) -> Self {
        Self { until: Instant::now() + budget, next: PAUSE.0, sent: false }
    }

    /// Waits, or gives up with the fault.
    pub(super) async fn before_repeat(&mut self, mut fault: Fault) -> Result<(), Fault> {
        self.sent |= fault.sent;
        let pause = less_up_to_half(self.next);
        if !fault.may_pass() || Instant::now() + pause > self.until {
            fault.sent = self.sent;
            return Err(fault);
        }
        self.next = (self.next * 2).min(PAUSE.1);
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
