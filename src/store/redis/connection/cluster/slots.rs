//! Which key has which slot, and which node has it.

use crate::store::redis::connection::target::Server;
use redis::{Arg, Cmd, Value};
use std::collections::{BTreeMap, HashSet};

const SLOTS: u16 = 16_384;

/// Which node has which slots.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Map {
    /// By the last slot of each range: its first, and its master.
    pub(super) ranges: BTreeMap<u16, (u16, Server)>,
    pub(super) replicas: HashSet<Server>,
}

impl Map {
    pub(super) fn master(&self, slot: u16) -> Option<&Server> {
        let (_, (first, master)) = self.ranges.range(slot..).next()?;
        (*first <= slot).then_some(master)
    }

    pub(super) fn masters(&self) -> HashSet<&Server> {
        self.ranges.values().map(|(_, master)| master).collect()
    }

    /// One slot has moved.
    pub(super) fn moved(&mut self, slot: u16, to: Server) {
        let range = self.ranges.range(slot..).next().map(|(last, (first, _))| (*last, *first));
        if let Some((last, first)) = range.filter(|(_, first)| *first <= slot)
            && let Some((_, from)) = self.ranges.remove(&last)
        {
            if first < slot {
                self.ranges.insert(slot - 1, (first, from.clone()));
            }
            if slot < last {
                self.ranges.insert(last, (slot + 1, from));
            }
        }
        self.ranges.insert(slot, (slot, to));
    }

    /// Reads the answer of `CLUSTER SLOTS`: `[first, last, master, replica …]`, each node
    /// `[host, port, …]`, where no host means the one that was asked.
    pub(super) fn read(answer: &Value, asked: &Server) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let mut map = Self::default();
        for range in ranges {
            let Value::Array(range) = range else { return None };
            let [Value::Int(first), Value::Int(last), master, replicas @ ..] = &range[..] else {
                return None;
            };
            let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
            if first > last || last >= SLOTS {
                return None;
            }
            map.ranges.insert(last, (first, node(master, asked)?));
            map.replicas.extend(replicas.iter().filter_map(|replica| node(replica, asked)));
        }
        (!map.ranges.is_empty()).then_some(map)
    }
}

fn node(entry: &Value, asked: &Server) -> Option<Server> {
    let Value::Array(entry) = entry else { return None };
    let [host, Value::Int(port), ..] = &entry[..] else { return None };
    let host = match host {
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        Value::SimpleString(host) => host.clone(),
        _ => String::new(),
    };
    located(&host, u16::try_from(*port).ok()?, asked)
}

/// A node that does not know its own host (`?` or nothing) has that of the one who told.
pub(super) fn located(host: &str, port: u16, asked: &Server) -> Option<Server> {
    match (host, asked) {
        ("" | "?", Server::Tcp(host, _)) => Some(Server::Tcp(host.clone(), port)),
        ("" | "?", Server::Unix(_)) => None,
        (host, _) => Some(Server::Tcp(host.to_owned(), port)),
    }
}

/// The slot of a command's key. None: any node can answer it.
pub(super) fn slot_of(cmd: &Cmd) -> Option<u16> {
    let args: Vec<_> = cmd.args_iter().take(4).collect();
    let arg = |i: usize| match args.get(i) {
        Some(Arg::Simple(arg)) => Some(*arg),
        _ => None,
    };
    let key = match arg(0)? {
        b"EVALSHA" | b"EVAL" => arg(3),
        b"PING" | b"INFO" | b"TIME" | b"CONFIG" | b"SLOWLOG" | b"ACL" | b"SCRIPT" | b"CLUSTER"
        | b"PUBLISH" | b"WAIT" | b"WAITAOF" => None,
        _ => arg(1),
    };
    key.map(slot)
}

/// CRC16 of the key, or of what stands between its first `{` and the next `}`.
fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let tag = &key[open + 1..];
        let close = tag.iter().position(|byte| *byte == b'}')?;
        (close > 0).then_some(&tag[..close])
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % SLOTS
}

#[cfg(test)]
mod tests;
