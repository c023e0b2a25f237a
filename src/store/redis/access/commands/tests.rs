//! Every command of every script is found in its text, and nothing else is.

use super::*;

fn names(commands: impl Iterator<Item = Command>) -> BTreeSet<String> {
    commands.map(|command| command.shown()).collect()
}

#[test]
fn every_call_of_a_script_is_found_in_its_text() {
    for verb in Verb::ALL {
        let text = &Scripts::with(Clock::Redis).get(*verb).text;
        let found = names(in_script(text).into_iter());
        for call in ["call(", "each("] {
            for rest in text.split(call).skip(1) {
                let first = rest.split([',', ')']).next().unwrap_or_default();
                match first.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')) {
                    Some(name) => assert!(found.contains(name), "{}: {name}", verb.name()),
                    // A variable: what it stands for is a word in quotes as well.
                    None => assert!(
                        !first.contains(['"', '[']) || first.starts_with("SIZES["),
                        "{first}"
                    ),
                }
            }
        }
    }
}

#[test]
fn a_rare_part_s_commands_and_a_hint_are_found() {
    let of = |role: Role| names(role.commands().cloned());
    // lua/lib/crashes.lua in sweep, lua/lib/remember.lua in enqueue; lua/lib/publish.lua.
    assert!(of(Worker).contains("PUBLISH") && !of(Producer).contains("PUBLISH"));
    let rare = "-- 'SORT'\ncall('TIME') return { 'RETRY', 'x', 'NX' } redis.pcall('PUBLISH', 1) call('LPOS', k)";
    let found: Vec<_> = in_script(rare).into_iter().map(|one| (one.words, one.needed)).collect();
    let expected = [("LPOS *", true), ("PUBLISH", false), ("TIME", true)];
    assert_eq!(found, expected.map(|(words, needed)| (words.to_owned(), needed)));
}

/// What redis-rs sends for the library.
const BY_THE_CLIENT: [&str; 5] = ["ASKING", "CLUSTER", "SELECT", "SUBSCRIBE", "WAIT"];

fn sources(folder: &std::path::Path, code: &mut String) {
    for entry in std::fs::read_dir(folder).expect("src/") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, code);
        } else if !path.ends_with("tests.rs") {
            code.push_str(&std::fs::read_to_string(path).expect("UTF-8"));
        }
    }
}

#[test]
fn the_table_has_what_rust_sends_and_nothing_else() {
    let mut code = String::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/redis"), &mut code);
    // Commands by name, and one that is chosen.
    let forms = ["redis::cmd(\"", "registry(\"", "on_list(\"", "Wish::Stop { \"HSET\" } else { \""];
    let sent: BTreeSet<_> = forms
        .iter()
        .flat_map(|form| code.split(form).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .chain(BY_THE_CLIENT)
        // Redis 7.0 has no such command, and refuses a rule that names it: docs/acl.md tells of it. The
        // other one is sent to sentinels.
        .filter(|name| !["WAITAOF", "SENTINEL"].contains(name))
        .collect();
    let table: BTreeSet<_> =
        PLAIN.iter().filter_map(|(words, ..)| words.split(' ').next()).collect();
    assert_eq!(sent, table);
}

#[test]
fn a_worker_may_all_that_a_producer_may() {
    let of = |role: Role| role.rules(&Namespace::default());
    let worker = of(Worker);
    let missing: Vec<_> = of(Producer).into_iter().filter(|rule| !worker.contains(rule)).collect();
    assert_eq!(missing, Vec::<String>::new(), "docs/acl.md says so");
}

#[test]
fn no_role_may_more_than_it_must() {
    let of = |role: Role| names(role.commands().cloned());
    for command in ["KEYS", "FLUSHALL", "FLUSHDB", "DEL", "CONFIG SET", "EVAL_RO", "SORT"] {
        assert!(Role::ALL.iter().all(|role| !of(*role).contains(command)), "{command}");
    }
    let only = |role: Role| {
        Role::ALL
            .iter()
            .filter(|one| **one != role)
            .map(|one| of(*one))
            .fold(of(role), |left, other| left.difference(&other).cloned().collect())
    };
    for (role, own) in [(Worker, "BLPOP"), (Operator, "SREM")] {
        assert!(only(role).contains(own), "{role}: {:?}", only(role));
    }
}
