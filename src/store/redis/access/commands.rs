//! The commands of each role: those of its scripts, read from their text, and the few that Rust
//! sends itself.

use super::Role;
use crate::{
    model::{Namespace, State},
    store::redis::{
        decode::Word,
        keys,
        scripts::{Clock, Scripts, Verb},
    },
};
use std::{collections::BTreeSet, sync::LazyLock};

use Role::{Operator, Producer, Worker};

/// Options of commands: what else stands in capitals between quotes.
const OPTIONS: [&str; 5] = ["COUNT", "LIMIT", "MAXLEN", "NX", "WITHSCORES"];
/// What a script sends and does well without.
const HINT: &str = "PUBLISH";

/// A command that a role sends, as it is checked: `*` is a key of a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Command {
    pub(crate) words: String,
    /// Without it the role cannot work.
    pub(crate) needed: bool,
}

impl Command {
    /// Its name in a rule: `hget`, `script|load`.
    pub(crate) fn rule(&self) -> String {
        let mut words = self.words.split(' ');
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        match words.next().filter(|_| FAMILIES.contains(&&*name)) {
            Some(member) => format!("{name}|{}", member.to_ascii_lowercase()),
            None => name,
        }
    }

    /// As people write it: `HGET`, `SCRIPT LOAD`.
    fn shown(&self) -> String {
        self.rule().replace('|', " ").to_ascii_uppercase()
    }

    /// Its words for a namespace.
    pub(crate) fn within(&self, namespace: &Namespace) -> String {
        let word = |word: &str| match word {
            "@queues" => keys::queues(namespace),
            "@schema" => keys::schema(namespace),
            "@workers" => keys::workers(namespace),
            word => word.to_owned(),
        };
        self.words.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Commands whose second word belongs to the name.
const FAMILIES: [&str; 5] = ["acl", "cluster", "config", "script", "slowlog"];

/// What Rust sends itself: the words, who sends it, whether the role cannot work without, what for.
const PLAIN: &[(&str, &[Role], bool, &str)] = &[
    ("EVALSHA x 1 *", &Role::ALL, true, "calls a script"),
    ("SCRIPT LOAD x", &Role::ALL, true, "when the server does not know the script"),
    ("EVAL x 1 *", &Role::ALL, true, "when the server forgets scripts again and again"),
    ("GET @schema", &Role::ALL, true, "the layout's version, once per connection"),
    ("SET @schema x", &Role::ALL, true, "the layout's version, by who makes a queue"),
    ("SISMEMBER @queues x", &Role::ALL, true, "whether a queue is on the list"),
    ("SADD @queues x", &Role::ALL, true, "puts a queue on the list"),
    ("PING", &Role::ALL, false, "whether a silent server is there"),
    ("SUBSCRIBE", &Role::ALL, false, "hears of ends, of cancelled jobs and of stops at once"),
    ("INFO", &Role::ALL, false, "version and eviction policy, once per connection; doctor"),
    ("SELECT", &Role::ALL, false, "a database other than 0"),
    ("ROLE", &Role::ALL, false, "sentinel: whether this is the master"),
    ("CLUSTER SLOTS", &Role::ALL, false, "cluster: who has which keys"),
    ("ASKING", &Role::ALL, false, "cluster: while a slot moves"),
    ("WAIT", &Role::ALL, false, "replicas that have a write"),
    ("BLPOP * 1", &[Worker], true, "waits for work"),
    ("SMISMEMBER @queues x", &[Worker], true, "whether its queues are still on the list"),
    ("HEXISTS * x", &[Worker], true, "whether a queue that is not on the list was made"),
    ("SMEMBERS @queues", &[Worker, Operator], true, "all queues"),
    ("TIME", &[Worker, Operator], true, "the clock, at a worker's beat and for its reader"),
    ("HSET @workers x x", &[Worker, Operator], true, "a worker's beat; what a worker is asked"),
    ("HGET @workers x", &[Worker, Operator], true, "what a worker is asked; whether it is there"),
    ("HDEL @workers x", &[Worker, Operator], true, "workers that left"),
    ("HGETALL @workers", &[Operator], true, "all workers"),
    ("HSETNX @workers x x", &[Operator], true, "asks a worker to be quiet"),
    ("PUBLISH", &[Operator], false, "tells a worker at once what it is asked"),
    ("SREM @queues x", &[Operator], true, "takes a queue off the list"),
    ("TYPE @queues", &[Operator], true, "doctor: what the lists are"),
    ("EXISTS *", &[Operator], true, "doctor: whether a queue is there"),
    ("SCAN 0", &[Operator], false, "doctor: queues that are not on the list; sees all keys' names"),
    ("CONFIG GET x", &[Operator], false, "doctor: snapshots, clients, replicas asked for"),
    ("SLOWLOG GET", &[Operator], false, "doctor: whether scripts took long"),
    ("ACL WHOAMI", &[Operator], false, "doctor: the user's name"),
];

impl Role {
    /// What it sends.
    pub(crate) fn commands(self) -> impl Iterator<Item = &'static Command> {
        static ALL: LazyLock<[Vec<Command>; 3]> =
            LazyLock::new(|| [Producer, Worker, Operator].map(commands_of));
        ALL[self as usize].iter()
    }

    /// What it needs of the refused ones, by name.
    pub(crate) fn missing(self, refused: &BTreeSet<&Command>) -> Vec<String> {
        let needed = self.commands().filter(|command| command.needed);
        let missing = needed.filter(|command| refused.contains(*command)).map(Command::shown);
        missing.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn commands_of(role: Role) -> Vec<Command> {
    let plain = PLAIN.iter().filter(|(_, roles, _, _)| roles.contains(&role));
    let mut all: BTreeSet<_> = plain
        .map(|(words, _, needed, _)| Command { words: (*words).to_owned(), needed: *needed })
        .collect();
    for verb in Verb::ALL.iter().filter(|verb| Role::of(**verb).contains(&role)) {
        all.extend(in_script(&Scripts::with(Clock::Redis).get(*verb).text));
    }
    all.into_iter().collect()
}

/// The commands of a script: words in capitals between quotes that are no answer's, state's or
/// option's.
fn in_script(text: &str) -> BTreeSet<Command> {
    let is_word = |text: &&str| text.len() > 1 && text.bytes().all(|b| b.is_ascii_uppercase());
    let answers = |word: &&str| {
        Word::ALL.contains(word) || State::ALL.iter().any(|state| state.word() == *word)
    };
    let quoted = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let quoted = quoted.flat_map(|line| line.split('\'').skip(1).step_by(2)).filter(is_word);
    quoted.filter(|word| !answers(word) && !OPTIONS.contains(word)).map(on_a_key).collect()
}

fn on_a_key(name: &str) -> Command {
    let words = match name {
        "TIME" | HINT => name.to_owned(),
        name => format!("{name} *"),
    };
    Command { words, needed: name != HINT }
}

#[cfg(test)]
mod tests;
