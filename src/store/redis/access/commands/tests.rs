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
