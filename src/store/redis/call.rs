//! One script call: its caller, its repeats within the budget, `NOSCRIPT`, `RARE`.

use super::{
    Inner,
    decode::{self, Word},
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

impl Inner {
    /// Calls a script that keeps its answer for its caller.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Value, StoreError> {
        if let Some(name) = &call.settles {
            return self.call_as(&call, name, 1).await;
        }
        let leased = self.pool.lease(call.queue);
        self.call_as(&call, &leased.caller.name, leased.caller.seq).await
    }

    async fn call_as(&self, call: &Call<'_>, caller: &str, seq: u64) -> Result<Value, StoreError> {
        let budget = millis(self.budget);
        self.repeated(call.verb, call.queue, &|cmd| {
            cmd.arg(caller).arg(seq).arg(budget);
            (call.args)(cmd);
        })
        .await
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
        let script = self.scripts.get(verb);
        let mut rare = script.rare_keys.is_some() && self.rare.begin(verb);
        let mut cmd = self.command(script, queue, rare, args);
        let mut pauses = Pauses::within(budget);
        loop {
            let answer = match self.send_admitted(verb, queue, &cmd).await {
                Ok(answer) => answer,
                Err(fault) => {
                    pauses.before_repeat(fault).await?;
                    continue;
                }
            };
            match decode::status(&answer) {
                Some(Word::Rare) if !rare => {
                    rare = true;
                    self.rare.seen(verb);
                    cmd = self.command(script, queue, rare, args);
                }
                Some(Word::Late) => {
                    return Err(StoreError::Backend(
                        "a later call of this caller was answered".into(),
                    ));
                }
                _ => return Ok(answer),
            }
        }
    }

    /// Sends a plain command with the same repeats.
    pub(super) async fn plain(&self, cmd: &Cmd) -> Result<Value, StoreError> {
        let mut pauses = Pauses::within(self.budget);
        loop {
            match self.send_plain(cmd).await {
                Ok(answer) => return Ok(answer),
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
        verb: Verb,
        queue: &QueueName,
        cmd: &Cmd,
    ) -> Result<Value, Fault> {
        // Every time: it may be another connection, and another user's rights, than at the last try.
        self.admitted(verb, queue).await?;
        self.send(self.scripts.get(verb), cmd).await
    }

    pub(super) async fn send(&self, script: &Script, cmd: &Cmd) -> Result<Value, Fault> {
        match self.send_plain(cmd).await {
            Err(fault) if fault.no_script => {}
            answer => return answer,
        }
        self.send_plain(redis::cmd("SCRIPT").arg("LOAD").arg(&script.text)).await?;
        match self.send_plain(cmd).await {
            // Flushed again in between: sent whole, it needs no cache, however often that happens.
            Err(fault) if fault.no_script => self.send_plain(&whole(script, cmd)).await,
            answer => answer,
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
}

impl Pauses {
    pub(super) fn within(budget: Duration) -> Self {
        Self { until: Instant::now() + budget, next: PAUSE.0 }
    }

    /// Waits, or gives up with the fault's error.
    pub(super) async fn before_repeat(&mut self, fault: Fault) -> Result<(), StoreError> {
        let pause = less_up_to_half(self.next);
        if !fault.may_pass() || Instant::now() + pause > self.until {
            return Err(fault.error);
        }
        self.next = (self.next * 2).min(PAUSE.1);
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
