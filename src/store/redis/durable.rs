//! Waits until what a call wrote is kept elsewhere: by replicas (`WAIT`), on disk (`WAITAOF`).
//!
//! Both speak for the writes of their own connection only, so call and question share one that nobody
//! else uses meanwhile. A repeat that finds its answer kept writes it once more (`lua/enqueue.lua`): so
//! the question on the repeat's connection speaks for it, too.

use super::{call::Reply, connection::Connections, fault::Fault};
use crate::{
    model::{StoreError, millis},
    store::Durability,
};
use redis::{Cmd, Value, from_redis_value};
use std::time::Duration;

/// Whether the server can tell what is on its disk: asked before anything is written.
pub(super) async fn check(link: &Connections, durability: Durability) -> Result<(), Fault> {
    if !durability.fsync {
        return Ok(());
    }
    let mut wait = redis::cmd("WAITAOF");
    wait.arg(1).arg(0).arg(1);
    let told = link.send_pooled(&[wait], Duration::ZERO).await?.pop();
    match told.unwrap_or(Ok(Value::Nil)) {
        Ok(_) => Ok(()),
        Err(fault) => Err(without_fsync(fault)),
    }
}

fn without_fsync(mut fault: Fault) -> Fault {
    if let StoreError::Backend(text) = &mut fault.error {
        text.push_str(" (fsync needs Redis 7.2 or Valkey 8, with appendonly yes)");
    }
    fault
}

/// Sends a call, and asks how durable it is.
pub(super) async fn send(
    link: &Connections,
    cmd: &Cmd,
    durability: Durability,
) -> Result<Reply, Fault> {
    let mut cmds = vec![cmd.clone()];
    let wait = |name: &str, numbers: &[u64]| {
        let mut wait = redis::cmd(name);
        wait.arg(numbers).arg(millis(durability.timeout));
        wait
    };
    if let Some(replicas) = durability.replicas {
        cmds.push(wait("WAIT", &[replicas.into()]));
    }
    if durability.fsync {
        cmds.push(wait("WAITAOF", &[1, 0]));
    }
    let longer = durability.timeout * 2;
    let mut answers = link.send_pooled(&cmds, longer).await?.into_iter();
    let answer = answers.next().unwrap_or(Ok(Value::Nil))?;
    let mut shortfall = None;
    if let Some(replicas) = durability.replicas {
        shortfall = replicated(answers.next(), replicas, durability.timeout).err();
    }
    if durability.fsync {
        shortfall = shortfall.or(synced(answers.next(), durability).err());
    }
    Ok(Reply { answer, shortfall })
}

fn replicated(
    told: Option<Result<Value, Fault>>,
    asked: u8,
    within: Duration,
) -> Result<(), StoreError> {
    let have: u32 = read(told)?;
    if have >= asked.into() {
        return Ok(());
    }
    Err(StoreError::Unavailable(format!("{have} of {asked} replicas have it after {within:?}")))
}

fn synced(told: Option<Result<Value, Fault>>, asked: Durability) -> Result<(), StoreError> {
    let (local, _): (u32, u32) = read(told)?;
    if local > 0 {
        return Ok(());
    }
    Err(StoreError::Unavailable(format!("not on the server's disk after {:?}", asked.timeout)))
}

/// Refused, it tells nothing of the call before it, which was made.
fn read<T: redis::FromRedisValue>(told: Option<Result<Value, Fault>>) -> Result<T, StoreError> {
    let told = told.unwrap_or(Ok(Value::Nil)).map_err(|fault| without_fsync(fault).error)?;
    from_redis_value(told).map_err(|error| StoreError::Backend(format!("durability: {error}")))
}
