//! `enqueue` and `claim`.

use crate::program::{Program, text};
use serde_json::json;

#[tokio::test]
async fn an_enqueued_job_is_claimed_whole() {
    let sprag = Program::start().await;
    let mut args = vec!["enqueue", "email", "email:welcome", r#"{"user":7}"#, "--id", "a"];
    args.extend(["--unique", "u7", "--priority", "7", "--max-attempts", "3", "--timeout", "2m"]);
    args.extend(["--retention", "1h", "--partition", "acme", "--header", "traceparent=00=x"]);
    let made = sprag.object(&args);
    let expected = json!({ "id": "a", "queue": "email", "state": "pending", "existing": false });
    assert_eq!(made, expected);

    let job = sprag.object(&["claim", "email", "--worker", "w", "--lease", "10s"]);
    for (field, value) in [
        ("id", json!("a")),
        ("kind", json!("email:welcome")),
        ("queue", json!("email")),
        ("attempt", json!(0)),
        ("crash", json!(0)),
        ("payload", json!({ "user": 7 })),
        ("priority", json!(7)),
        ("max_attempts", json!(3)),
        ("timeout_ms", json!(120_000)),
        ("retention_ms", json!(3_600_000)),
        ("partition", json!("acme")),
        ("headers", json!({ "traceparent": "00=x" })),
        ("unique", json!({ "key": "u7", "any_kind": false, "mode": "lifecycle" })),
    ] {
        assert_eq!(job[field], value, "{field} of {job}");
    }
    let ms = |field: &str| job[field].as_u64().expect(field);
    assert!(ms("fence") > 0 && ms("lease_expires_at") >= ms("enqueued_at") + 10_000, "{job}");
}

#[tokio::test]
async fn each_refusal_has_its_exit_code_and_its_object() {
    let sprag = Program::start().await;
    let id = text(&sprag.object(&["enqueue", "q", "k", "1", "--unique", "u"]), "id");
    let again = ["enqueue", "q", "k", "2", "--unique", "u"];
    let error = sprag.error(4, &again);
    assert_eq!(error["error"], "duplicate");
    assert_eq!((&error["existing_id"], &error["replaced"]), (&json!(id), &json!(false)));
    let joined = sprag.object(&[&again[..], &["--join"]].concat());
    assert_eq!((&joined["id"], &joined["joined"]), (&json!(id), &json!(true)));
    assert_eq!((&joined["state"], &joined["existing"]), (&json!("pending"), &json!(true)));

    sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    let existing = sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    assert_eq!(existing["existing"], true);
    let error = sprag.error(5, &["enqueue", "q", "k", "other", "--codec", "raw", "--id", "x"]);
    assert_eq!((&error["error"], &error["job_id"]), (&json!("id_conflict"), &json!("x")));

    sprag.object(&["queue", "limit", "q", "2"]);
    let error = sprag.error(7, &["enqueue", "q", "k", "3"]);
    assert_eq!(error["error"], "backpressure");
    assert_eq!(
        (&error["limit"], &error["current"], &error["incoming"]),
        (&json!(2), &json!(2), &json!(1))
    );

    for invalid in [
        vec!["enqueue", "q", "k", "{"],
        vec!["enqueue", "q", "k", "1", "--priority", "10"],
        vec!["enqueue", "q", "k", "1", "--delay", "0s"],
        vec!["enqueue", "q", "k", "1", "--delay", "soon"],
        vec!["enqueue", "a b", "k", "1"],
        vec!["enqueue", "q"],
        vec!["enqueue", "q", "k", "1", "--throttle", "5s"],
    ] {
        assert_eq!(sprag.error(2, &invalid)["error"], "invalid", "{invalid:?}");
    }
}

#[tokio::test]
async fn a_job_may_be_due_later() {
    let sprag = Program::start().await;
    for when in [["--delay", "1h"], ["--at", "2100-01-01T00:00:00+01:00"]] {
        let made = sprag.object(&[&["enqueue", "q", "k", "1"], &when[..]].concat());
        assert_eq!(made["state"], "scheduled", "{when:?}");
    }
    let past = sprag.object(&["enqueue", "q", "k", "1", "--at", "1960-01-01T00:00:00Z"]);
    assert_eq!(past["state"], "pending");
}

#[tokio::test]
async fn a_payload_comes_from_the_argument_a_file_or_stdin() {
    let sprag = Program::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "{\n  \"lines\": 2\n}\n").expect("written");
    let at_file = format!("@{}", file.path().display());
    sprag.object(&["enqueue", "q", "k", &at_file]);
    let ran = sprag.with_stdin(&["enqueue", "q", "k", "-"], b"[1e400]");
    assert_eq!(ran.code, 0, "{ran:?}");
    sprag.object(&["enqueue", "q", "k", "-5"]);
    sprag.object(&["enqueue", "q", "k"]);
    let ran = sprag.with_stdin(&["enqueue", "q", "k", "-", "--codec", "raw"], &[0xff, 0, b'\n']);
    assert_eq!(ran.code, 0, "{ran:?}");

    let ran = sprag.run(&["--json", "claim", "q", "--worker", "w", "--count", "9"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let payloads = [
        r#""payload":{   "lines": 2 }"#,
        r#""payload":[1e400]"#,
        r#""payload":-5"#,
        r#""payload":null"#,
        r#""payload_base64":"/wAK""#,
    ];
    assert_eq!(lines.len(), payloads.len(), "{ran:?}");
    for (line, payload) in lines.iter().zip(payloads) {
        assert!(line.contains(payload), "{payload} in {line}");
    }
    let missing = sprag.error(2, &["enqueue", "q", "k", "@/no/such/file"]);
    assert_eq!(missing["error"], "invalid");
    let message = missing["message"].as_str().expect("a text");
    assert!(message.starts_with("invalid payload: cannot read /no/such/file: "), "{message}");
}

#[tokio::test]
async fn a_number_that_begins_with_a_hyphen_is_a_payload_and_a_flag_is_none() {
    let sprag = Program::start().await;
    for number in ["-1", "-0.5", "-1e5", "-1E5", "-1E+5", "-2.5e-3"] {
        let made = sprag.object(&["enqueue", "q", "k", number, "--priority", "4"]);
        assert_eq!(made["state"], "pending", "{number}");
        let ran = sprag.run(&["--json", "claim", "q", "--worker", "w"]);
        assert!(ran.stdout.contains(&format!(r#""payload":{number}}}"#)), "{number}: {ran:?}");
    }
    for flag in ["--no-such-flag", "-x", "-1x"] {
        let message = sprag.error(2, &["enqueue", "q", "k", flag])["message"].to_string();
        assert!(message.contains("unexpected argument"), "{message}");
    }
}

#[tokio::test]
async fn json_that_is_not_utf_8_is_invalid() {
    let sprag = Program::start().await;
    let ran = sprag.with_stdin(&["--json", "enqueue", "q", "k", "-"], b"{\"a\":\"\xff\"}");
    assert_eq!((ran.code, &ran.error()["error"]), (2, &json!("invalid")), "{ran:?}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), b"\"\xc3\"").expect("written");
    let at_file = format!("@{}", file.path().display());
    assert_eq!(sprag.error(2, &["enqueue", "q", "k", &at_file])["error"], "invalid");
    let complete = ["complete", "q", "x", "--fence", "1", "--result", &at_file];
    assert_eq!(sprag.error(2, &complete)["error"], "invalid");
}

#[tokio::test]
async fn a_typed_payload_is_shown_as_json() {
    let sprag = Program::start().await;
    let store = sprag::RedisStore::builder(sprag.server.url()).build().expect("valid");
    let names = (sprag::QueueName::new("q").expect("q"), sprag::Kind::new("k").expect("k"));
    let job = sprag::Envelope::builder(names.0.clone(), names.1)
        .payload(&b"\x81\xa4user\x07"[..], sprag::Codec::MsgPack);
    use sprag::Store;
    store.enqueue(&names.0, &[job.build().expect("valid")]).await.expect("enqueued");
    let claimed = sprag.claim("q");
    assert_eq!(
        (&claimed["payload"], &claimed["codec"]),
        (&json!({ "user": 7 }), &json!("msgpack"))
    );
}

#[tokio::test]
async fn people_get_the_id_on_stdout_and_the_talk_on_stderr() {
    let sprag = Program::start().await;
    let ran = sprag.run(&["enqueue", "q", "k", "1", "--id", "mine"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("mine\n", "enqueued: pending\n"));
    let ran = sprag.run(&["--quiet", "enqueue", "q", "k", "\"\\u001b[31m\"", "--id", "b"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("b\n", ""));
    let ran = sprag.run(&["claim", "q", "--worker", "w", "--count", "2"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert!(lines[0].contains("fence") && lines[1].contains("mine"), "{ran:?}");
    assert!(!ran.stdout.contains('\u{1b}') && lines.iter().all(|line| line.len() <= 80), "{ran:?}");
    let empty = sprag.run(&["claim", "q", "--worker", "w"]);
    assert_eq!((empty.stdout.as_str(), empty.stderr.as_str()), ("", "nothing to claim\n"));
    assert_eq!(sprag.objects(&["claim", "no-such-queue", "--worker", "w"]).len(), 0);
}
