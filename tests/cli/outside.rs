//! Faults from outside: no server, a wrong one, no reader, secrets in the wrong place.

use crate::{
    program::{Program, Ran, SPRAG, command, run, text as text_of},
    support::{ANY_SCRIPT, Proxy},
};
use serde_json::json;
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const SECRET: &str = "s3cret";

#[tokio::test]
async fn an_unreachable_server_is_exit_9_within_the_budget() {
    for url in ["redis://127.0.0.1:1", "redis+unix:///no/such/socket"] {
        let started = Instant::now();
        let ran = run(command().args(["--json", "--url", url, "queue", "show", "q"]));
        assert_eq!((ran.code, &ran.error()["error"]), (9, &json!("unavailable")), "{ran:?}");
        // The budget is 6 s.
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_reply_never_comes_is_made_again() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "--id", "first"]);
    let proxy = Proxy::in_front_of(&sprag.server).await;
    // The first asks what the user may; a new connection asks again.
    proxy.on(ANY_SCRIPT).after(1).hold_reply();
    let url = proxy.url();
    let enqueue = ["--json", "--url", &url, "enqueue", "q", "k", "--id", "x"];
    let ran = run(command().args(enqueue));
    assert_eq!((ran.code, proxy.seen(ANY_SCRIPT)), (0, 4), "{ran:?}");
    let made = json!({ "id": "x", "queue": "q", "state": "pending", "existing": false });
    assert_eq!(ran.objects(), [made]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_without_answer_tells_the_id_that_makes_it_safe_to_repeat() {
    let sprag = Program::start().await;
    let proxy = Proxy::in_front_of(&sprag.server).await;
    let url = proxy.url();
    // The proxy learns its name.
    let loads = ["--url", &url, "enqueue", "other", "k", "--id", "loads-the-script"];
    assert_eq!(run(command().args(loads)).code, 0);
    proxy.on("enqueue").times(1_000_000).drop_reply();
    let via_proxy = |args: &[&str]| {
        let mut command = command();
        command.args(["--url", &url]).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it runs")
    };
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "1\n\n2\n").expect("written");
    let path = file.path().display().to_string();
    let json = via_proxy(&["--json", "enqueue", "q", "k", "7"]);
    let text = via_proxy(&["enqueue", "q", "k", "8"]);
    let lines = via_proxy(&["--json", "enqueue", "l", "k", "--from", &path]);
    let people = via_proxy(&["--quiet", "enqueue", "l", "k", "--from", &path]);
    let atomic = via_proxy(&["--json", "enqueue", "l", "k", "--from", &path, "--atomic"]);
    let ended = |child: std::process::Child| Ran::from(child.wait_with_output().expect("it ends"));

    let json = ended(json);
    let error = json.error();
    assert_eq!((json.code, &error["error"]), (9, &json!("unavailable")), "{json:?}");
    let again = sprag.object(&["enqueue", "q", "k", "7", "--id", &text_of(&error, "id")]);
    assert_eq!((&again["id"], &again["existing"]), (&error["id"], &json!(true)));

    let text = ended(text);
    let (_, id) = text.stderr.split_once("--id ").unwrap_or_else(|| panic!("{text:?}"));
    let id = id.split(' ').next().expect("an id");
    assert!(text.code == 9 && text.stderr.contains("may have been enqueued"), "{text:?}");
    assert_eq!(sprag.object(&["enqueue", "q", "k", "8", "--id", id])["existing"], true);

    let people = ended(people);
    let last = people.stderr.lines().last().and_then(|line| line.strip_prefix("line 3: "));
    let id = last.unwrap_or_else(|| panic!("{people:?}"));
    assert_eq!(sprag.object(&["enqueue", "l", "k", "2", "--id", id])["existing"], true);
    for ran in [ended(lines), ended(atomic)] {
        let error = ran.error();
        assert_eq!((ran.code, &error["line"]), (9, &json!(1)), "{ran:?}");
        for (job, (line, payload)) in [(1, "1"), (3, "2")].into_iter().enumerate() {
            let told = &error["jobs"][job];
            assert_eq!(told["line"], line, "{error}");
            let id = text_of(told, "id");
            let again = sprag.object(&["enqueue", "l", "k", payload, "--id", &id]);
            assert_eq!(again["existing"], true, "{error}");
        }
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_exit_1() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut set = redis::cmd("SET");
    set.arg("sprag:{q}:meta").arg("x").query_async::<()>(&mut connection).await.expect("set");
    let error = sprag.error(1, &["enqueue", "q", "k"]);
    assert_eq!(error["error"], "backend");
    let message = text_of(&error, "message");
    assert!(message.contains(": WRONGTYPE Operation against"), "{message}");
}

#[tokio::test]
async fn a_password_in_a_url_is_never_printed() {
    let with_secret = |ran: &Ran| ran.stdout.contains(SECRET) || ran.stderr.contains(SECRET);
    for url in [
        "redis://u:s3cret@127.0.0.1:1",
        "redis://u:s3cret@127.0.0.1:bad",
        "redis://:s3cret@h:99999",
        "redis://u:s3cret@@@h/x",
        "http://u:s3cret@h",
        "redis+unix://u:s3cret@/no/socket",
    ] {
        // All at once: those that try to connect take as long as their budget.
        let mut commands = Vec::new();
        for json in [&[][..], &["--json"]] {
            let mut make = |args: &[&str], variables: &[(&str, &str)]| {
                let mut command = command();
                command.args(json).args(args).envs(variables.iter().copied());
                commands.push(command);
            };
            let show = ["--url", url, "queue", "show", "q"];
            make(&show, &[]);
            make(&show, &[("RUST_LOG", "trace"), ("NO_COLOR", "1")]);
            make(&["queue", "show", "q"], &[("REDIS_URL", url)]);
            make(&[url], &[]);
            make(&[&format!("--urll={url}")], &[]);
            make(&["enqueue", url, "k"], &[]);
            make(&["enqueue", &format!("{url}{}", "x".repeat(100)), "k"], &[]);
            make(&["--url", url, "demo"], &[]);
        }
        let spawn = |mut command: Command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
        };
        for child in commands.into_iter().map(spawn).collect::<Vec<_>>() {
            let ran = Ran::from(child.wait_with_output().expect("it ends"));
            assert!(ran.code > 0 && !with_secret(&ran), "{url}: {ran:?}");
        }
        let help = run(command().arg("--help").env("SPRAG_REDIS_URL", url));
        assert!(help.code == 0 && !with_secret(&help), "{help:?}");
    }
}

#[tokio::test]
async fn a_broken_pipe_is_a_success() {
    let sprag = Program::start().await;
    let text: String = (0..1_000).map(|i| format!("\"{i:0200}\"\n")).collect();
    sprag.with_stdin(&["enqueue", "q", "k", "--from", "-"], text.as_bytes());
    let pipe = format!(
        "{{ {SPRAG} --json claim q --worker w --count 1000; echo $? >&2; }} | head -n 1 >/dev/null"
    );
    let ran =
        run(Command::new("sh").args(["-c", &pipe]).env("SPRAG_REDIS_URL", sprag.server.url()));
    assert!(ran.code == 0 && ran.stderr.ends_with("0\n"), "{ran:?}");

    // The same for help, and for a line that is too short for the pipe to notice in between.
    let mut child = command().arg("--help").stdout(Stdio::piped()).spawn().expect("it runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[tokio::test]
async fn flag_beats_environment_and_namespaces_do_not_meet() {
    let sprag = Program::start().await;
    sprag.object(&["--namespace", "a", "enqueue", "q", "k", "--id", "x"]);
    let show = ["--json", "job", "show", "q", "x"];
    assert_eq!(sprag.run(&show).code, 3);
    assert_eq!(run(sprag.command(&show).env("SPRAG_NAMESPACE", "a")).code, 0);
    let flag = [&["--namespace", "b"], &show[..]].concat();
    assert_eq!(run(sprag.command(&flag).env("SPRAG_NAMESPACE", "a")).code, 3);
    assert_eq!(run(sprag.command(&show).env("SPRAG_NAMESPACE", "a b")).code, 2);

    let url = sprag.server.url();
    let other = |name: &str| {
        let mut command = command();
        command.args(["queue", "show", "q", "--namespace", "a"]).env(name, &url);
        command
    };
    assert_eq!(run(&mut other("REDIS_URL")).code, 0);
    assert_eq!(run(other("REDIS_URL").env("SPRAG_REDIS_URL", "")).code, 0);
    assert_eq!(run(other("SPRAG_REDIS_URL").env("REDIS_URL", "redis://127.0.0.1:1")).code, 0);
    assert_eq!(run(other("REDIS_URL").args(["--url", "redis://127.0.0.1:1"])).code, 9);
}

#[tokio::test]
async fn memory_is_refused_with_the_reason() {
    let ran = run(command().args(["--json", "--url", "memory://", "enqueue", "q", "k"]));
    let message = ran.error()["message"].to_string();
    assert!(ran.code == 2 && message.contains("a process of its own"), "{ran:?}");
}

#[tokio::test]
async fn a_wrong_command_line_is_exit_2() {
    for args in [&[][..], &["no-such-command"], &["claim", "q"], &["complete", "q", "x"]] {
        assert_eq!(run(command().args(args)).code, 2, "{args:?}");
    }
    let ran = run(command().args(["--json", "no-such-command"]));
    let object =
        json!({ "error": "invalid", "message": "unrecognized subcommand 'no-such-command'" });
    assert_eq!((ran.error(), ran.stdout.as_str()), (object, ""));
}

#[tokio::test]
async fn a_usage_error_as_an_object_says_it_all() {
    let message = |args: &[&str]| {
        let ran = run(command().arg("--json").args(args));
        assert_eq!((ran.code, &ran.error()["error"]), (2, &json!("invalid")), "{ran:?}");
        ran.error()["message"].as_str().expect("a text").to_owned()
    };
    let missing = message(&["complete"]);
    for name in ["<QUEUE>", "<ID>", "--fence <F>"] {
        assert!(missing.contains(name), "{missing}");
    }
    assert!(!missing.contains("Usage") && !missing.contains("--help"), "{missing}");
    let newline = message(&["enqueue", "q", "k", "--timeout", "1\n\nUsage: 2"]);
    assert!(newline.ends_with("7d") && newline.contains("--timeout <DUR>"), "{newline}");
    let similar = message(&["enqueue", "q", "k", "--priorit", "1"]);
    assert!(similar.contains("; tip: ") && similar.contains("'--priority'"), "{similar}");
    assert_eq!(message(&["queue"]), "a command is missing: see --help");
}

#[tokio::test]
async fn a_bound_is_named_as_the_command_takes_it() {
    let enqueue = ["enqueue", "q", "k", "1"];
    let late = "9999-12-31T23:59:59Z";
    let (whole, duration) = ("must be a whole number", "must be 1ms to 3650d");
    for (command_line, bound) in [
        ([&enqueue[..], &["--priority", "-1"]].concat(), "0 to 9"),
        ([&enqueue[..], &["--priority", "300"]].concat(), "0 to 9"),
        ([&enqueue[..], &["--max-attempts", "-1"]].concat(), "1 to 1000"),
        ([&enqueue[..], &["--max-attempts", "0"]].concat(), "1 to 1000"),
        ([&enqueue[..], &["--delay", "0ms"]].concat(), duration),
        ([&enqueue[..], &["--timeout", "3651d"]].concat(), duration),
        ([&enqueue[..], &["--delay", "-5s"]].concat(), "must be a duration such as"),
        ([&enqueue[..], &["--at", late]].concat(), "must be before 2286-11-20T17:46:40Z"),
        ([&enqueue[..], &["--deadline", late]].concat(), "must be before 2286-11-20T17:46:40Z"),
        (vec!["claim", "q", "--worker", "w", "--count", "-1"], "1 to 1000"),
        (vec!["claim", "q", "--worker", "w", "--count", "1001"], "1 to 1000"),
        (vec!["claim", "q", "--worker", "w", "--lease", "99ms"], "must be 100ms to 24h"),
        (vec!["extend", "q", "x", "--fence", "1", "--lease", "25h"], "must be 100ms to 24h"),
        (vec!["extend", "q", "x", "--fence", "-1"], whole),
        (vec!["snooze", "q", "x", "--fence", "x", "--delay", "1s"], whole),
        (vec!["queue", "limit", "q", "-1"], "must be a whole number or none"),
    ] {
        let ran = run(command().arg("--json").args(&command_line));
        let message = ran.error()["message"].to_string();
        assert!(ran.code == 2 && message.contains(bound), "{command_line:?}: {ran:?}");
    }
}

#[tokio::test]
async fn flags_that_need_another_are_refused_without_it() {
    for flags in [
        &["1", "--atomic"][..],
        &["--atomic", "--id", "x"],
        &["--atomic"],
        &["--unique", "u", "--throttle", "1s", "--max-wait", "5s"],
    ] {
        let ran = run(command().args(["--json", "enqueue", "q", "k"]).args(flags));
        assert_eq!((ran.code, &ran.error()["error"]), (2, &json!("invalid")), "{flags:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_not_utf_8_is_refused_and_not_quoted() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let bad = OsStr::from_bytes(b"redis://u:s3cret@h\xff");
    let silent = |ran: &Ran| !ran.stderr.contains(SECRET) && !ran.stderr.contains("\\x");
    for before in [&[][..], &["--url"], &["--no-such-flag"], &["enqueue", "q", "k"], &["queue"]] {
        let ran = run(command().arg("--json").args(before).arg(bad));
        assert_eq!((ran.code, &ran.error()["error"]), (2, &json!("invalid")), "{before:?} {ran:?}");
        assert!(silent(&ran), "{ran:?}");
        let ran = run(command().args(before).arg(bad));
        assert!(ran.code == 2 && silent(&ran), "{ran:?}");
        assert!(before == ["--no-such-flag"] || ran.stderr.contains("UTF-8"), "{ran:?}");
    }
    let variables = ["SPRAG_REDIS_URL", "REDIS_URL", "SPRAG_NAMESPACE", "RUST_LOG"];
    for (name, verb) in variables
        .into_iter()
        .map(|name| (name, &["queue", "show", "q"][..]))
        .chain([("SPRAG_REDIS_URL", &["demo"][..]), ("SPRAG_REDIS_SERVER", &["demo"])])
    {
        let ran = run(command().arg("--json").args(verb).env(name, bad));
        assert_eq!((ran.code, &ran.error()["error"]), (2, &json!("invalid")), "{name} {ran:?}");
        assert!(silent(&ran) && ran.stderr.contains(&format!("variable {name}:")), "{ran:?}");
    }
    // What a flag says is not looked for elsewhere; and a path is what it is.
    let flag = ["--url", "redis://127.0.0.1:bad", "queue", "show", "q"];
    assert!(!run(command().args(flag).env("REDIS_URL", bad)).stderr.contains("UTF-8"));
    let path = OsStr::from_bytes(b"/no/such/\xff");
    let ran = run(command().args(["enqueue", "q", "k", "--from"]).arg(path));
    assert!(ran.code == 2 && ran.stderr.contains("No such file"), "{ran:?}");
}
