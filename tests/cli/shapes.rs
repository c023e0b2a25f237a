//! The shape of every command's `--json`: its exit code and the fields of its objects, held in
//! `shapes.txt`. Scripts build on it: it may grow, it may not change. `UPDATE_SHAPES=1` writes it anew.

use crate::program::{Program, Ran, held, text};
use serde_json::Value;
use std::{collections::BTreeSet, fmt::Write};

/// The fields of an object, those of objects inside it by their paths.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                found.insert(path.clone());
                fields(value, &path, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, path, found)),
        _ => {}
    }
}

struct Shapes {
    sprag: Program,
    lines: String,
}

impl Shapes {
    /// Runs a command with `--json` and notes its shape under this name.
    fn note(&mut self, name: &str, args: &[&str]) -> Ran {
        let ran = self.sprag.run(&[&["--json", "--yes"], args].concat());
        let mut shape = BTreeSet::new();
        for line in
            ran.stdout.lines().chain(ran.stderr.lines().filter(|line| line.starts_with('{')))
        {
            let object: Value = serde_json::from_str(line).expect("a JSON object a line");
            fields(&object, "", &mut shape);
        }
        let shape: Vec<_> = shape.into_iter().collect();
        writeln!(self.lines, "{name} ({}): {}", ran.code, shape.join(" ")).expect("a text");
        ran
    }

    /// Enqueues a job without a note.
    fn add(&self, id: &str, options: &[&str]) {
        self.sprag.object(&[&["enqueue", "q", "k", "{\"n\":1}", "--id", id], options].concat());
    }

    fn claimed(&self) -> (String, String) {
        held(&self.sprag.claim("q"))
    }
}

#[tokio::test]
async fn no_command_changes_the_shape_of_its_json() {
    let mut shapes = Shapes { sprag: Program::start().await, lines: String::new() };
    produce_and_hold(&mut shapes);
    look_and_steer(&mut shapes);
    fail(&mut shapes);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/shapes.txt");
    if std::env::var_os("UPDATE_SHAPES").is_some() {
        std::fs::write(file, &shapes.lines).expect("written");
    }
    let expected = std::fs::read_to_string(file).expect("read");
    for (line, expected) in shapes.lines.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(shapes.lines.lines().count(), expected.lines().count());
}

fn produce_and_hold(shapes: &mut Shapes) {
    let all = [
        "--unique",
        "u",
        "--throttle",
        "1h",
        "--priority",
        "5",
        "--max-attempts",
        "3",
        "--timeout",
        "5s",
        "--deadline",
        "1h",
        "--retention",
        "1h",
        "--remember",
        "1h",
        "--partition",
        "p",
        "--header",
        "a=b",
    ];
    shapes.note("enqueue", &[&["enqueue", "q", "k", "{\"n\":1}", "--id", "a"], &all[..]].concat());
    let claimed = shapes.note("claim", &["claim", "q", "--worker", "w"]);
    let (id, fence) = held(&claimed.objects()[0]);
    shapes.note("extend", &["extend", "q", &id, "--fence", &fence]);
    shapes.note("complete", &["complete", "q", &id, "--fence", &fence, "--result", "1"]);
    for (verb, options) in [
        ("retry", &["--error", "no"][..]),
        ("archive", &["--error", "no"]),
        ("snooze", &["--delay", "1h"]),
        ("requeue", &[]),
    ] {
        shapes.add(verb, &["--max-attempts", "5"]);
        let (id, fence) = shapes.claimed();
        shapes.note(verb, &[&[verb, "q", &id, "--fence", &fence], options].concat());
    }
    shapes.note("sweep", &["sweep", "q"]);
    shapes.note("work", &["work", "q", "--exec", "true", "--until-empty"]);
}

fn look_and_steer(shapes: &mut Shapes) {
    shapes.add("b", &[]);
    for (name, args) in [
        ("queue list", &["queue", "list"][..]),
        ("queue show", &["queue", "show", "q"]),
        ("queue stats", &["queue", "stats", "q"]),
        ("queue pause", &["queue", "pause", "q"]),
        ("queue resume", &["queue", "resume", "q"]),
        ("queue limit", &["queue", "limit", "q", "none"]),
        ("job list", &["job", "list", "q"]),
        ("job show, completed", &["job", "show", "q", "a", "--payload"]),
        ("job show, retry", &["job", "show", "q", "retry"]),
        ("job show, archived", &["job", "show", "q", "archive"]),
        ("job wait", &["job", "wait", "q", "a"]),
        ("job run", &["job", "run", "q", "retry"]),
        ("job cancel", &["job", "cancel", "q", "b"]),
        ("job rerun", &["job", "rerun", "q", "b"]),
        ("job archive", &["job", "archive", "q", "b"]),
        ("job delete", &["job", "delete", "q", "b"]),
        ("job cancel --all", &["job", "cancel", "q", "--state", "pending", "--all"]),
        ("quarantine add", &["quarantine", "add", "q", &"a".repeat(32), "--reason", "r"]),
        ("quarantine list", &["quarantine", "list"]),
        ("quarantine show", &["quarantine", "show", "q", &"a".repeat(32)]),
        ("quarantine release", &["quarantine", "release", "q", &"a".repeat(32)]),
        ("queue delete", &["queue", "delete", "q", "--force"]),
    ] {
        shapes.note(name, args);
    }
}

/// An error of every kind, with its exit code.
fn fail(shapes: &mut Shapes) {
    shapes.add("a", &["--unique", "u"]);
    let fingerprint = text(&shapes.sprag.object(&["job", "show", "q", "a"]), "fingerprint");
    shapes.note("invalid", &["enqueue", "a b", "k"]);
    shapes.note("not_found", &["job", "show", "q", "nobody"]);
    shapes.note("duplicate", &["enqueue", "q", "k", "--unique", "u"]);
    shapes.note("id_conflict", &["enqueue", "q", "k", "2", "--id", "a"]);
    shapes.note("lease_rejected", &["complete", "q", "a", "--fence", "1"]);
    shapes.sprag.object(&["queue", "limit", "q", "1"]);
    shapes.note("backpressure", &["enqueue", "q", "k", "3"]);
    shapes.sprag.object(&["quarantine", "add", "q", &fingerprint]);
    shapes.note("quarantined", &["enqueue", "q", "k", "{\"n\":1}"]);
    shapes.note("timed_out", &["job", "wait", "q", "a", "--timeout", "1s"]);
    let nowhere = ["--url", "redis+unix:///nowhere/at/all", "queue", "list"];
    shapes.note("unavailable", &nowhere);
}
