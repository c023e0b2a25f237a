//! A script touches no key that its call did not declare: DESIGN §6, and what a cluster stands on.
//! The whole suite runs under MONITOR, which shows every call of a script and what the script did.

use crate::{
    elsewhere::{CASES, MANY},
    support::{Elsewhere, Server},
};
use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use std::collections::{HashMap, HashSet};

/// Keys of the tests' own clock, which no real script reads.
const TESTS: [&str; 2] = [":clock", ":dies"];
/// Marks the end of what is looked at.
const END: &str = "\"echo\" \"the suite is over\"";

/// Where a command's keys are: the first, the last (from the end if negative), and the step.
type Places = HashMap<String, (i64, i64, i64)>;

/// Reads what MONITOR says, line by line.
struct Declared {
    places: Places,
    /// The script that is running, and what it declared.
    running: Option<(String, HashSet<String>)>,
    scripts: HashSet<String>,
    touched: usize,
    wrong: Vec<String>,
}

impl Declared {
    fn new(places: Places) -> Self {
        let scripts = HashSet::new();
        Self { places, running: None, scripts, touched: 0, wrong: Vec::new() }
    }

    /// `1764500000.123456 [0 unix:/tmp/s] "EVALSHA" "<sha>" "<number of keys>" "<key>" …`; what a
    /// script does comes after its call, before anything else, as `[0 lua] "HGET" "<key>" …`.
    fn read(&mut self, line: &str) {
        let (from, command) = line.split_once("] \"").expect("a line of MONITOR");
        let mut words = words(command);
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        if from.ends_with(" lua") {
            self.judge(&name, words, line);
        } else if name.starts_with("eval") {
            let script = words.next().unwrap_or_default().to_owned();
            let keys = words.next().and_then(|count| count.parse().ok()).expect("a number of keys");
            self.scripts.insert(script.clone());
            self.running = Some((script, words.take(keys).map(str::to_owned).collect()));
        } else {
            self.running = None;
        }
    }

    fn judge<'a>(&mut self, name: &str, words: impl Iterator<Item = &'a str>, line: &str) {
        let Some((script, declared)) = &self.running else {
            self.wrong.push(format!("no call precedes {line:.200}"));
            return;
        };
        let Some(places) = self.places.get(name) else {
            self.wrong.push(format!("an unknown command: {line:.200}"));
            return;
        };
        for key in keys(*places, words) {
            self.touched += 1;
            let is_of_tests = TESTS.iter().any(|end| key.ends_with(end));
            if !is_of_tests && !declared.contains(key) {
                self.wrong.push(format!("{script} did not declare {key}: {line:.200}"));
            }
        }
    }
}

/// The words between quotes, as MONITOR writes them: `\"` and other escapes are left as they are.
fn words(command: &str) -> impl Iterator<Item = &str> {
    // The first quote is gone already.
    let mut rest = Some(command);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut is_escaped = false;
        let end = text.bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        rest = text[end + 1..].strip_prefix(" \"");
        Some(&text[..end])
    })
}

/// Those of a command's arguments that are keys.
fn keys<'a>(
    (first, last, step): (i64, i64, i64),
    words: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let at = |place: i64| usize::try_from(place).ok();
    let (Some(first @ 1..), Some(step @ 1..)) = (at(first), at(step)) else { return Vec::new() };
    let words: Vec<&str> = match at(last) {
        // A payload that follows need not be taken apart.
        Some(last) => words.take(last).collect(),
        None => {
            let mut all: Vec<&str> = words.collect();
            all.truncate(all.len() - at(-1 - last).unwrap_or(0));
            all
        }
    };
    words.into_iter().skip(first - 1).step_by(step).collect()
}

/// `COMMAND` tells of each command its name, arity, flags, and the places of its keys.
async fn places(server: &mut MultiplexedConnection) -> Places {
    let commands: Vec<Vec<redis::Value>> =
        redis::cmd("COMMAND").query_async(server).await.expect("COMMAND");
    let place = |command: Vec<redis::Value>| {
        let number = |place: usize| redis::from_redis_value_ref(&command[place]).expect("a number");
        let name: String = redis::from_redis_value_ref(&command[0]).expect("a name");
        (name, (number(3), number(4), number(5)))
    };
    commands.into_iter().map(place).collect()
}

#[tokio::test]
async fn every_script_of_the_suite_declares_the_keys_that_it_touches() {
    let server = Server::start().await;
    let mut connection = server.connection().await;
    let mut declared = Declared::new(places(&mut connection).await);
    let monitor = redis::Client::open(server.own_url()).expect("a url");
    let monitor = monitor.get_async_monitor().await.expect("MONITOR");
    let mut lines = Box::pin(monitor.into_on_message::<String>());
    let suite = async {
        Elsewhere::server(&server).passes(CASES, MANY).await;
        let mut end = redis::cmd("echo");
        let _: () = end.arg("the suite is over").query_async(&mut connection).await.expect("ECHO");
    };
    let judge = async {
        loop {
            let line = lines.next().await.expect("the server lives");
            if line.ends_with(END) {
                return;
            }
            declared.read(&line);
        }
    };
    tokio::join!(suite, judge);
    let Declared { wrong, touched, scripts, .. } = declared;
    assert!(
        wrong.is_empty(),
        "{} times, first:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    assert!(touched > 100_000 && scripts.len() >= 20, "{touched} keys, {} scripts", scripts.len());
}

mod by_itself {
    use super::*;

    fn judged(lines: &[&str]) -> Declared {
        let places = [
            ("hget", (1, 1, 1)),
            ("hset", (1, 1, 1)),
            ("unlink", (1, -1, 1)),
            ("blpop", (1, -2, 1)),
            ("time", (0, 0, 0)),
        ];
        let places = places.map(|(name, places)| (name.to_owned(), places)).into();
        let mut declared = Declared::new(places);
        lines.iter().for_each(|line| declared.read(&format!("1764500000.123456 {line}")));
        declared
    }

    const CALL: &str =
        r#"[0 unix:/tmp/s] "EVALSHA" "f00" "2" "s:{q}:jobs" "s:{q}:meta" "s:{q}:tries" "7""#;

    #[test]
    fn declared_keys_are_touched() {
        let lines = [
            CALL,
            r#"[0 lua] "TIME""#,
            r#"[0 lua] "HGET" "s:{q}:jobs" "a""#,
            r#"[0 lua] "UNLINK" "s:{q}:meta" "s:{q}:jobs""#,
            r#"[0 lua] "GET" "s:{q}:clock""#,
        ];
        let declared = judged(&lines[..4]);
        assert_eq!((declared.wrong.len(), declared.touched), (0, 3), "{:?}", declared.wrong);
        assert_eq!(judged(&lines).wrong.len(), 1, "a command that is not known");
    }

    #[test]
    fn a_key_that_is_an_argument_is_not_declared() {
        let declared = judged(&[CALL, r#"[0 lua] "HSET" "s:{q}:tries" "a" "1""#]);
        assert_eq!(declared.wrong.len(), 1);
        assert!(
            declared.wrong[0].starts_with("f00 did not declare s:{q}:tries"),
            "{:?}",
            declared.wrong
        );
    }

    #[test]
    fn every_key_of_a_command_is_looked_at() {
        let declared = judged(&[CALL, r#"[0 lua] "UNLINK" "s:{q}:jobs" "s:{q}:seen""#]);
        assert_eq!((declared.wrong.len(), declared.touched), (1, 2));
        let blocking = judged(&[CALL, r#"[0 lua] "BLPOP" "s:{q}:jobs" "s:{q}:meta" "0""#]);
        assert_eq!((blocking.wrong.len(), blocking.touched), (0, 2), "the timeout is no key");
    }

    #[test]
    fn what_one_call_declared_is_not_another_s() {
        let other = r#"[0 127.0.0.1:5] "evalsha" "bad" "1" "s:{p}:jobs""#;
        let declared = judged(&[CALL, other, r#"[0 lua] "HGET" "s:{q}:jobs" "a""#]);
        assert!(
            declared.wrong[0].starts_with("bad did not declare s:{q}:jobs"),
            "{:?}",
            declared.wrong
        );
        let outside =
            judged(&[CALL, r#"[0 unix:/tmp/s] "PING""#, r#"[0 lua] "HGET" "s:{q}:jobs" "a""#]);
        assert!(outside.wrong[0].starts_with("no call precedes"), "{:?}", outside.wrong);
    }

    #[test]
    fn quotes_inside_of_words_do_not_end_them() {
        let declared =
            judged(&[CALL, r#"[0 lua] "UNLINK" "s:{q}:jo\"bs" "s:{q}:meta\\" "s:{q}:meta""#]);
        assert_eq!((declared.wrong.len(), declared.touched), (2, 3), "{:?}", declared.wrong);
    }
}
