//! `lua/` and Rust hold the same words, keys, states and headers.

use super::*;
use crate::{
    model::State,
    store::{
        EndingReason,
        redis::{decode::Word, keys::KEYS},
    },
};
use std::collections::BTreeSet;

fn capitals(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    code.split('\'')
        .skip(1)
        .step_by(2)
        .flat_map(|quoted| quoted.split(|c: char| !c.is_ascii_uppercase()))
        .filter(|word| word.len() > 1)
        .map(str::to_owned)
        .collect()
}

/// Redis commands and their options, which stand in quotes as well.
const REDIS: &[&str] = &[
    "BLPOP",
    "COUNT",
    "DEL",
    "EXISTS",
    "GET",
    "HDEL",
    "HEXISTS",
    "HGET",
    "HINCRBY",
    "HKEYS",
    "UNLINK",
    "ZCOUNT",
    "ZRANK",
    "HLEN",
    "HMGET",
    "HSCAN",
    "HSET",
    "HVALS",
    "LIMIT",
    "LLEN",
    "LPOS",
    "LPUSH",
    "LRANGE",
    "LREM",
    "LTRIM",
    "MAXLEN",
    "NX",
    "PERSIST",
    "PTTL",
    "PUBLISH",
    "RPUSH",
    "TIME",
    "TYPE",
    "WITHSCORES",
    "ZADD",
    "ZCARD",
    "ZMSCORE",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZREM",
    "ZSCAN",
    "ZSCORE",
];

#[test]
fn words_and_states_are_the_same_in_lua_and_rust() {
    let in_lua: BTreeSet<_> =
        SOURCES.iter().chain(PARTS).flat_map(|(_, text)| capitals(text)).collect();
    let in_rust: BTreeSet<_> =
        Word::ALL.iter().copied().chain(State::ALL.map(State::word)).map(str::to_owned).collect();
    let known: BTreeSet<_> =
        in_rust.iter().cloned().chain(REDIS.iter().map(|c| (*c).to_owned())).collect();
    assert_eq!(in_lua.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "only in Lua");
    let unsaid = in_rust.difference(&in_lua).collect::<Vec<_>>();
    assert_eq!(unsaid, Vec::<&String>::new(), "only in Rust");
}

#[test]
fn every_ending_reason_is_in_the_scripts_or_given_to_them() {
    let texts: String = SOURCES.iter().map(|(_, text)| *text).collect();
    let given = [EndingReason::Discarded];
    for reason in EndingReason::ALL.into_iter().filter(|r| !given.contains(r)) {
        assert!(texts.contains(&format!("'{}", reason.as_str())), "{reason:?}");
    }
}

#[test]
fn every_key_of_a_script_is_a_key_of_the_queue_and_bound_in_order() {
    for (name, source) in SOURCES {
        let script = Script::compose(source, Clock::Redis);
        let all = script.rare_keys.as_ref().unwrap_or(&script.keys);
        for key in all.iter().chain(&script.keys) {
            assert!(KEYS.contains(&&**key), "{name}: {key}");
        }
        let bound: String = source
            .split_once("local ")
            .expect("binds its keys")
            .1
            .split(" = ")
            .next()
            .expect("names")
            .into();
        let bound: Vec<_> = bound.split(',').map(str::trim).collect();
        let named: Vec<_> = all.iter().filter(|key| !key.starts_with("pending:")).collect();
        // A script that hands all its keys to one command binds only what it reads.
        assert_eq!(bound, named[..bound.len()], "{name}: KEYS and its binding");
        let lanes: Vec<_> = (0..10).map(|lane| format!("pending:{lane}")).collect();
        let lanes_used = all.iter().any(|key| key.starts_with("pending:"));
        assert!(!lanes_used || all.ends_with(&lanes), "{name}: lanes are the last ten keys");
    }
}

#[test]
fn a_key_is_declared_only_where_the_text_uses_it() {
    for (name, source) in SOURCES {
        let script = Script::compose(source, Clock::Redis);
        let body = script
            .text
            .split_once("unpack(KEYS)")
            .or(script.text.split_once("KEYS[1]"))
            .map_or(&*script.text, |(_, body)| body);
        let words: BTreeSet<_> =
            body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for key in script.rare_keys.as_ref().unwrap_or(&script.keys) {
            let all_used = body.contains("unpack(KEYS)");
            let used = all_used || key.starts_with("pending:") || words.contains(&**key);
            assert!(used, "{name} declares {key} and does not use it");
        }
    }
}

#[test]
fn every_header_says_what_a_caller_must_know() {
    for (name, source) in SOURCES {
        assert!(source.starts_with(&format!("-- {name}: ")), "{name}: first line");
        for title in ["KEYS", "ARGV", "Reply", "Cost", "Uses"] {
            assert!(source.contains(&format!("\n-- {title}: ")), "{name}: {title}");
        }
        for part in listed(source, "Uses").chain(listed(source, "Rare uses")) {
            assert!(PARTS.iter().any(|(file, _)| *file == format!("lib/{part}")), "{name}: {part}");
        }
    }
    for (name, text) in PARTS {
        assert!(text.starts_with("-- "), "{name} says what it is");
    }
}

#[test]
fn every_lua_file_is_composed() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let mut files = BTreeSet::new();
    for (folder, prefix) in [(dir.clone(), ""), (dir.join("lib"), "lib/")] {
        for entry in std::fs::read_dir(folder).expect("lua/") {
            let name = entry.expect("entry").file_name().into_string().expect("UTF-8");
            files.extend(name.strip_suffix(".lua").map(|stem| format!("{prefix}{stem}")));
        }
    }
    let composed: BTreeSet<_> =
        SOURCES.iter().chain(PARTS).map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, composed);
}

/// Runs luacheck over what Redis is sent: parts that a script does not use are no fault there.
/// Compulsory in CI; elsewhere skipped where luacheck is missing.
#[test]
fn luacheck_passes_on_the_composed_scripts() {
    let dir = tempfile::tempdir().expect("temp dir");
    for (i, (name, _)) in SOURCES.iter().enumerate() {
        for (clock, suffix) in [(Clock::Redis, ""), (Clock::Virtual, "_virtual")] {
            let text = &Scripts::with(clock).0[i].text;
            std::fs::write(dir.path().join(format!("{name}{suffix}.lua")), text).expect("written");
        }
    }
    let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".luacheckrc");
    let run = std::process::Command::new("luacheck")
        .args(["--ignore", "211", "--no-max-comment-line-length", "--no-color", "--config"])
        .arg(config)
        .arg(dir.path())
        .output();
    match run {
        Ok(run) => assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout)),
        Err(error) => assert!(std::env::var_os("CI").is_none(), "luacheck: {error}"),
    }
}

/// The paragraphs of a script's header: what it is for, then by title. A line that begins with no
/// title goes on with the one before.
fn paragraphs(source: &str) -> Vec<(String, String)> {
    const TITLES: [&str; 7] = ["KEYS", "RARE KEYS", "ARGV", "Reply", "Cost", "Uses", "Rare uses"];
    let mut all: Vec<(String, String)> = Vec::new();
    for line in source.lines().map_while(|line| line.strip_prefix("--")) {
        let line = line.trim();
        let titled = line.split_once(": ").filter(|(title, _)| TITLES.contains(title));
        match (titled, all.last_mut()) {
            (Some((title, text)), _) => all.push((title.to_owned(), text.to_owned())),
            (None, Some((_, text))) => *text = format!("{text} {line}"),
            (None, None) => {
                let (name, purpose) = line.split_once(": ").expect("begins with its name");
                all.push((name.to_owned(), purpose.to_owned()));
            }
        }
    }
    all
}

/// A text as a cell of a table: `|` and, outside of code, `<` would be read as markup.
fn cell(text: &str) -> String {
    let outside = |(i, part): (usize, &str)| match i % 2 {
        0 => part.replace('<', "\\<"),
        _ => part.to_owned(),
    };
    let parts: Vec<_> = text.split('`').enumerate().map(outside).collect();
    parts.join("`").replace('|', "\\|")
}

fn described() -> String {
    let mut overview = String::new();
    let mut details = String::new();
    for (name, source) in SOURCES {
        let all = paragraphs(source);
        let of = |title: &str| {
            let found = all.iter().find(|(known, _)| known == title);
            found.map(|(_, text)| cell(text)).unwrap_or_default()
        };
        overview += &format!("| [`{name}`](#{name}) | {} | {} |\n", of(name), of("Cost"));
        details += &format!("\n## {name}\n\n| | |\n|---|---|\n");
        for (title, text) in &all[1..] {
            details += &format!("| {title} | {} |\n", cell(text));
        }
    }
    format!(
        "# The scripts\n\n\
         Generated from the headers in `lua/` by a test; do not edit:\n\
         `SPRAG_WRITE_DOCS=1 cargo test --lib docs_lua_md`. How a script is put together, what a \
         *caller* is and how replies are read: [wire format](wire-format.md). `KEYS` are the words \
         after `sprag:{{queue}}:`; `RARE KEYS` is the set of the call after the answer `RARE`.\n\n\
         | script | what it does | what it costs |\n|---|---|---|\n{overview}{details}"
    )
}

#[test]
fn docs_lua_md_is_what_the_headers_say() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lua.md");
    let described = described();
    if std::env::var_os("SPRAG_WRITE_DOCS").is_some() {
        std::fs::write(&file, &described).expect("docs/ is writable");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let advice = "docs/lua.md is old: SPRAG_WRITE_DOCS=1 cargo test --lib docs_lua_md";
    assert!(kept == described, "{advice}");
}

#[test]
fn the_wire_format_names_every_word_and_key() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/wire-format.md");
    let page = std::fs::read_to_string(file).expect("docs/wire-format.md");
    let named: BTreeSet<_> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':'))
        .collect();
    let states = State::ALL.map(State::word);
    let words = Word::ALL.iter().chain(&states);
    // The lanes are named by the first and the last; the clock is the tests'.
    let keys = KEYS.iter().filter(|key| !key.starts_with("pending:") && **key != "clock");
    let missing: Vec<_> = words.chain(keys).filter(|word| !named.contains(**word)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
