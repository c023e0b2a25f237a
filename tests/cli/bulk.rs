//! `enqueue --from`.

use crate::program::Program;
use serde_json::json;
use std::io::Write;
use tempfile::NamedTempFile;

fn file(text: &[u8]) -> (NamedTempFile, String) {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text).expect("written");
    let path = file.path().display().to_string();
    (file, path)
}

#[tokio::test]
async fn each_line_is_judged_by_itself_and_refused_ones_are_told() {
    let sprag = Program::start().await;
    let (_file, path) = file(b"1\nbad\n\n{\"a\":2}\r\n[\n\xff\n1\n  \n3");
    let from = ["--json", "enqueue", "q", "k", "--unique-payload", "--from", &path];
    let (invalid, duplicate) = (json!("invalid"), json!("duplicate"));
    let ran = sprag.run(&from);
    // The command's own error is on stderr: what its exit code says.
    let error = ran.error();
    assert_eq!((ran.code, &error["error"]), (2, &invalid), "{ran:?}");
    assert_eq!((&error["line"], &error["refused"]), (&json!(2), &json!(4)), "{error}");
    let objects = ran.objects();
    let (summary, refused) = objects.split_last().expect("a summary");
    let told: Vec<_> = refused.iter().map(|o| (&o["line"], &o["error"])).collect();
    let expected = [
        (&json!(2), &invalid),
        (&json!(5), &invalid),
        (&json!(6), &invalid),
        (&json!(7), &duplicate),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        *summary,
        json!({ "lines": 7, "enqueued": 3, "existing": 0, "joined": 0, "refused": 4 })
    );

    let joined = sprag.run(&[&from[..], &["--join"]].concat());
    let summary = joined.objects().pop().expect("a summary");
    assert_eq!(
        summary,
        json!({ "lines": 7, "enqueued": 0, "existing": 0, "joined": 4, "refused": 3 })
    );
}

#[tokio::test]
async fn thousands_of_lines_come_in_order_from_stdin_too() {
    let sprag = Program::start().await;
    let text: String = (0..2_500).map(|i| format!("{i}\n")).collect();
    let ran = sprag.with_stdin(&["enqueue", "q", "k", "--from", "-"], text.as_bytes());
    let summary = "2500 lines: 2500 enqueued, 0 existing, 0 joined, 0 refused\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, summary, ""));
    let claimed = sprag.objects(&["claim", "q", "--worker", "w", "--count", "1000"]);
    let payloads: Vec<_> = claimed.iter().map(|job| job["payload"].as_u64()).collect();
    assert_eq!(payloads, (0..1_000).map(Some).collect::<Vec<_>>());
}

#[tokio::test]
async fn backpressure_refuses_the_lines_that_find_no_room() {
    let sprag = Program::start().await;
    sprag.object(&["queue", "limit", "q", "2"]);
    let (_file, path) = file(b"1\n2\n3\n");
    let ran = sprag.run(&["enqueue", "q", "k", "--from", &path]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert_eq!(ran.stdout, "3 lines: 2 enqueued, 0 existing, 0 joined, 1 refused\n");
    assert!(ran.stderr.starts_with("line 3: queue q is full"), "{ran:?}");
}

#[tokio::test]
async fn an_atomic_file_is_written_whole_or_not_at_all() {
    let sprag = Program::start().await;
    let (_bad, path) = file(b"1\n\nbad\n2\n");
    let error = sprag.error(2, &["enqueue", "q", "k", "--from", &path, "--atomic"]);
    assert_eq!((&error["error"], &error["line"]), (&json!("invalid"), &json!(3)));
    let (_twice, path) = file(b"1\n\n1\n");
    let atomic = ["enqueue", "q", "k", "--unique-payload", "--from", &path, "--atomic"];
    let error = sprag.error(4, &atomic);
    assert_eq!((&error["error"], &error["line"]), (&json!("duplicate"), &json!(3)));
    let (_many, path) = file("1\n".repeat(1_001).as_bytes());
    sprag.error(2, &["enqueue", "q", "k", "--from", &path, "--atomic"]);
    assert_eq!(sprag.objects(&["claim", "q", "--worker", "w"]).len(), 0);

    let (_good, path) = file(b"1\n2\n");
    let summary = sprag.object(&["enqueue", "q", "k", "--from", &path, "--atomic"]);
    assert_eq!(
        summary,
        json!({ "lines": 2, "enqueued": 2, "existing": 0, "joined": 0, "refused": 0 })
    );
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error() {
    let sprag = Program::start().await;
    for (file, atomic) in [("/no/such/file", false), ("/no/such/file", true), ("/", false)] {
        let mut args = vec!["enqueue", "q", "k", "--from", file];
        args.extend(atomic.then_some("--atomic"));
        let error = sprag.error(2, &args);
        let message = error["message"].as_str().expect("a text");
        assert_eq!(error["error"], "invalid");
        assert!(message.starts_with(&format!("invalid --from: cannot read {file}: ")), "{message}");
    }
}

#[tokio::test]
async fn a_raw_line_is_every_byte_of_it() {
    let sprag = Program::start().await;
    let raw = ["enqueue", "q", "k", "--codec", "raw", "--from", "-"];
    let ran = sprag.with_stdin(&raw, b"a \r\n\n \nb");
    assert_eq!(ran.code, 0, "{ran:?}");
    let claimed = sprag.objects(&["claim", "q", "--worker", "w", "--count", "9"]);
    let payloads: Vec<_> = claimed.iter().map(|job| &job["payload_base64"]).collect();
    assert_eq!(payloads, ["YSAN", "IA==", "Yg=="]);
}

#[tokio::test]
async fn refused_lines_are_told_also_when_it_shall_be_quiet() {
    let sprag = Program::start().await;
    let ran = sprag.with_stdin(&["--quiet", "enqueue", "q", "k", "--from", "-"], b"1\nbad\n");
    assert!(ran.code == 2 && ran.stderr.starts_with("line 2: invalid payload"), "{ran:?}");
}
