//! What a user of Redis must be allowed to do: rules for its ACL, by role.
//!
//! `commands` knows what each role sends, `admit` asks the server before a connection's first call
//! whether the user may. `docs/acl.md` publishes the rules.

mod admit;
mod commands;

pub(super) use admit::Admitted;

use super::{keys, scripts::Verb};
use crate::{model::Namespace, store::Channel};
use std::{collections::BTreeSet, fmt};

/// What a user of Redis is there for. A program that does several things needs the rules of several
/// roles: a worker whose handlers enqueue jobs those of a worker and of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Enqueues jobs, and waits for their ends.
    Producer,
    /// Claims jobs, runs and settles them.
    Worker,
    /// Looks at queues and steers them: the inspector, the doctor, the command's verbs but `enqueue`,
    /// `work` and those of workers.
    Operator,
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Producer, Self::Worker, Self::Operator];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Worker => "worker",
            Self::Operator => "operator",
        }
    }

    /// The roles that call the script.
    pub(super) fn of(verb: Verb) -> &'static [Self] {
        match verb {
            Verb::Enqueue => &[Self::Producer],
            Verb::Archive
            | Verb::Claim
            | Verb::Complete
            | Verb::Extend
            | Verb::Progress
            | Verb::Requeue
            | Verb::Retry
            | Verb::Snooze
            | Verb::Sweep
            | Verb::Wake => &[Self::Worker],
            Verb::Days
            | Verb::DeleteQueue
            | Verb::Examine
            | Verb::List
            | Verb::Operate
            | Verb::Quarantine
            | Verb::Quarantines
            | Verb::Queue
            | Verb::Release
            | Verb::Repair
            | Verb::Set => &[Self::Operator],
            // Who waits for a job's end looks at it. `sprag job wait` is an operator's.
            Verb::WatchEnds => &[Self::Producer, Self::Operator],
            // `sprag retry` looks at the job that it settles.
            Verb::Show => &Self::ALL,
            // Anybody asks what he may.
            Verb::Access => &[],
        }
    }

    /// The words for `ACL SETUSER` that let a user do what the role does in the namespace, and
    /// nothing else: keys, channels, commands. They take nothing away: begin with `resetkeys
    /// resetchannels -@all` for a user who is to have these alone.
    pub fn rules(self, namespace: &Namespace) -> Vec<String> {
        // One pattern for all keys of queues: the server compares every key of a call with every
        // pattern, and a script's keys are many. None can be read-only: EVALSHA is refused there.
        let mut keys = vec![keys::any_queue(namespace), keys::queues(namespace)];
        keys.push(keys::schema(namespace));
        if self != Self::Producer {
            keys.push(keys::workers(namespace));
        }
        let channels = match self {
            Self::Producer => &[Channel::Done][..],
            Self::Worker | Self::Operator => &[Channel::Control, Channel::Done],
        };
        let channels = channels.iter().map(|one| format!("&{}", keys::channel(namespace, *one)));
        let commands: BTreeSet<_> = self.commands().map(|one| format!("+{}", one.rule())).collect();
        keys.iter().map(|key| format!("~{key}")).chain(channels).chain(commands).collect()
    }
}

impl Role {
    /// Of an error's text: `a worker`.
    pub(super) fn with_article(self) -> String {
        let article = if self == Self::Operator { "an" } else { "a" };
        format!("{article} {self}")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
