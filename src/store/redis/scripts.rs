//! The Lua scripts: read from `lua/` at compile time, put together at first use.
//!
//! A script's header names what Rust needs to know: `-- KEYS:` (and `-- RARE KEYS:`, the set that a
//! call is repeated with when the script answers `RARE`) and `-- Uses:`, the parts of `lua/lib`
//! that go between its key bindings (up to the first empty line) and its body. What only a rare
//! call needs stands behind the usual one's end: `-- Rare uses:` names the parts that go to the line
//! `-- RARE PARTS`.

use std::sync::LazyLock;

macro_rules! sources {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../../lua/", $name, ".lua")))),*] };
}

const PARTS: &[(&str, &str)] = sources!(
    "lib/chunks" "lib/clock" "lib/clock_virtual" "lib/crashes" "lib/day" "lib/due" "lib/ended"
    "lib/entries" "lib/failures" "lib/finish" "lib/ghosts" "lib/held" "lib/hold" "lib/lanes" "lib/outcomes"
    "lib/publish" "lib/reclaim" "lib/records" "lib/release" "lib/remember" "lib/repeats" "lib/replace"
    "lib/state" "lib/suspect" "lib/text" "lib/tries" "lib/unique" "lib/wake" "lib/watch"
);

macro_rules! verbs {
    ($($verb:ident $name:literal,)*) => {
        /// The scripts, one per operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Verb { $($verb,)* }

        const SOURCES: &[(&str, &str)] = sources!($($name)*);
        /// How many there are.
        pub(super) const VERBS: usize = SOURCES.len();

        impl Verb {
            /// All there are.
            pub(super) const ALL: &[Self] = &[$(Self::$verb),*];
        }
    };
}

verbs! {
    Access "access",
    Archive "archive",
    Claim "claim",
    Complete "complete",
    Days "days",
    DeleteQueue "delete_queue",
    Enqueue "enqueue",
    Examine "examine",
    Extend "extend",
    List "list",
    Operate "operate",
    Progress "progress",
    Quarantine "quarantine",
    Quarantines "quarantines",
    Queue "queue",
    Release "release",
    Repair "repair",
    Requeue "requeue",
    Retry "retry",
    Set "set",
    Show "show",
    Snooze "snooze",
    Sweep "sweep",
    Wake "wake",
    WatchEnds "watch_ends",
}

impl Verb {
    /// The name of its file.
    pub(super) fn name(self) -> &'static str {
        SOURCES[self as usize].0
    }
}

/// Where the scripts' time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    Redis,
    /// The key `clock` of each queue, in ms: for tests.
    Virtual,
}

/// One script, ready to be called.
pub(super) struct Script {
    pub(super) text: String,
    pub(super) sha: String,
    /// The keys of the usual call.
    pub(super) keys: Vec<String>,
    /// The keys of the call after `RARE`.
    pub(super) rare_keys: Option<Vec<String>>,
}

/// All scripts with one clock.
pub(super) struct Scripts(Vec<Script>);

impl Scripts {
    pub(super) fn with(clock: Clock) -> &'static Self {
        static REDIS: LazyLock<Scripts> = LazyLock::new(|| Scripts::compose(Clock::Redis));
        static VIRTUAL: LazyLock<Scripts> = LazyLock::new(|| Scripts::compose(Clock::Virtual));
        match clock {
            Clock::Redis => &REDIS,
            Clock::Virtual => &VIRTUAL,
        }
    }

    fn compose(clock: Clock) -> Self {
        Self(SOURCES.iter().map(|(_, source)| Script::compose(source, clock)).collect())
    }

    pub(super) fn get(&self, verb: Verb) -> &Script {
        &self.0[verb as usize]
    }
}

impl Script {
    fn compose(source: &str, clock: Clock) -> Self {
        let (head, body) = source.split_once("\n\n").unwrap_or((source, ""));
        let parts = |title| listed(head, title).map(|name| part(&name, clock)).collect::<String>();
        let body = body.replace("-- RARE PARTS\n", &parts("Rare uses"));
        let text = format!("{head}\n{}{body}", parts("Uses"));
        Self {
            sha: redis::Script::new(&text).get_hash().to_owned(),
            text,
            keys: listed(head, "KEYS").collect(),
            rare_keys: Some(listed(head, "RARE KEYS").collect())
                .filter(|keys: &Vec<_>| !keys.is_empty()),
        }
    }
}

/// A part of `lua/lib`; one that is missing makes a script that Redis refuses, which every test sees.
fn part(name: &str, clock: Clock) -> &'static str {
    let name = if (name, clock) == ("clock", Clock::Virtual) { "clock_virtual" } else { name };
    PARTS
        .iter()
        .find(|(file, _)| file.strip_prefix("lib/") == Some(name))
        .map_or("", |(_, text)| text)
}

/// The words of a header line `-- <title>: …`; `pending:0..9` stands for the ten lanes.
fn listed<'a>(head: &'a str, title: &str) -> impl Iterator<Item = String> + use<'a> {
    let start = format!("-- {title}: ");
    let line = head.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or("");
    line.split_whitespace().filter(|word| *word != "none").flat_map(|word| match word {
        "pending:0..9" => (0..10).map(|lane| format!("pending:{lane}")).collect(),
        word => vec![word.to_owned()],
    })
}

#[cfg(test)]
mod tests;
