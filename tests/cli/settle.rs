//! The verbs of a job's holder.

use crate::program::{Program, held};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn each_verb_settles_and_the_same_command_again_succeeds() {
    let sprag = Program::start().await;
    for (verb, flags, state) in [
        ("complete", vec![], "completed"),
        ("complete", vec!["--result", r#"{"sent":true}"#], "completed"),
        ("retry", vec!["--error", "-503", "--delay", "1h"], "retry"),
        ("retry", vec!["--error", "503"], "retry"),
        ("archive", vec!["--error", "no use"], "archived"),
        ("archive", vec!["--undecodable"], "archived"),
        ("snooze", vec!["--delay", "1h"], "scheduled"),
        ("requeue", vec![], "pending"),
    ] {
        let queue = format!("{verb}-{}", flags.len());
        sprag.object(&["enqueue", &queue, "k", "1", "--retention", "1h"]);
        let (id, fence) = held(&sprag.claim(&queue));
        let command = [&[verb, &queue, &id, "--fence", &fence], &flags[..]].concat();
        let answer = sprag.object(&command);
        let number: u64 = fence.parse().expect("a number");
        let expected = json!({ "id": id, "queue": queue, "fence": number, "state": state });
        assert_eq!(answer, expected);
        assert_eq!(sprag.object(&command), expected, "again: {command:?}");
        assert_eq!(sprag.object(&["job", "show", &queue, &id])["state"], state);
        let error = sprag.error(8, &["extend", &queue, &id, "--fence", &fence]);
        assert_eq!((&error["error"], &error["job_id"]), (&json!("lease_rejected"), &json!(id)));
    }
}

#[tokio::test]
async fn the_same_verb_with_other_arguments_is_judged_anew() {
    let sprag = Program::start().await;
    for (verb, first, others) in [
        ("complete", vec![], vec![vec!["--result", "1"]]),
        ("complete", vec!["--result", "1"], vec![vec![], vec!["--result", "2"]]),
        (
            "retry",
            vec!["--error", "e"],
            vec![vec!["--error", "f"], vec!["--error", "e", "--delay", "1s"]],
        ),
        (
            "retry",
            vec!["--error", "e", "--delay", "1h"],
            vec![vec!["--error", "e", "--delay", "2h"], vec!["--error", "e"]],
        ),
        ("archive", vec![], vec![vec!["--error", "e"], vec!["--undecodable"]]),
        ("snooze", vec!["--delay", "1h"], vec![vec!["--delay", "2h"]]),
    ] {
        sprag.object(&["enqueue", "q", "k", "1", "--retention", "1h"]);
        let (id, fence) = held(&sprag.claim("q"));
        let command = |flags: &[&'static str]| {
            let start = [verb, "q", &id, "--fence", &fence].map(str::to_owned);
            start.into_iter().chain(flags.iter().map(ToString::to_string)).collect::<Vec<_>>()
        };
        let run = |flags: &[&'static str]| {
            let words = command(flags);
            sprag.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).code
        };
        assert_eq!((run(&first), run(&first)), (0, 0), "{verb} {first:?}");
        for other in &others {
            assert_eq!(run(other), 8, "{verb} {first:?}, then {other:?}");
        }
    }
}

#[tokio::test]
async fn another_fence_is_rejected_by_every_verb() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "x"]);
    sprag.claim("q");
    for (verb, flags) in [
        ("extend", vec![]),
        ("complete", vec![]),
        ("retry", vec!["--error", "e"]),
        ("archive", vec![]),
        ("snooze", vec!["--delay", "1s"]),
        ("requeue", vec![]),
    ] {
        for id in ["x", "no-such-job"] {
            let command = [&[verb, "q", id, "--fence", "1"], &flags[..]].concat();
            assert_eq!(sprag.error(8, &command)["job_id"], id, "{command:?}");
        }
    }
    assert_eq!(
        sprag.error(2, &["complete", "q", "x", "--fence", "1", "--result", "{"])["error"],
        "invalid"
    );
}

#[tokio::test]
async fn a_result_that_is_too_large_is_said_to_be_dropped() {
    let sprag = Program::start().await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    let at_file = format!("@{}", file.path().display());
    for (bytes, dropped) in [(256 << 10, false), ((256 << 10) + 1, true)] {
        std::fs::write(file.path(), format!("\"{}\"", "x".repeat(bytes - 2))).expect("written");
        for flags in [&["--json"][..], &["--quiet"]] {
            sprag.object(&["enqueue", "q", "k", "1", "--retention", "1h"]);
            let (id, fence) = held(&sprag.claim("q"));
            let complete = ["complete", "q", &id, "--fence", &fence, "--result", &at_file];
            let ran = sprag.run(&[flags, &complete].concat());
            assert_eq!(ran.code, 0, "{ran:?}");
            if flags == ["--json"] {
                let told = ran.objects().remove(0).get("result_dropped").cloned();
                assert_eq!(told, dropped.then_some(json!(true)), "{ran:?}");
            } else {
                assert_eq!(ran.stderr.contains("was dropped"), dropped, "{ran:?}");
            }
            let shown = sprag.object(&["job", "show", "q", &id]);
            assert_eq!(shown.get("result").is_none(), dropped);
        }
    }
}

#[tokio::test]
async fn a_result_of_a_job_that_is_not_kept_is_said_to_be_dropped() {
    let sprag = Program::start().await;
    for (retention, result, dropped) in
        [(None, Some("1"), true), (Some("1h"), Some("1"), false), (None, None, false)]
    {
        for flags in [&["--json"][..], &["--quiet"]] {
            let mut enqueue = vec!["enqueue", "q", "k", "1"];
            enqueue.extend(retention.iter().flat_map(|kept| ["--retention", kept]));
            sprag.object(&enqueue);
            let (id, fence) = held(&sprag.claim("q"));
            let mut complete = [flags, &["complete", "q", &id, "--fence", &fence]].concat();
            complete.extend(result.iter().flat_map(|result| ["--result", result]));
            let ran = sprag.run(&complete);
            assert_eq!(ran.code, 0, "{ran:?}");
            if flags == ["--quiet"] {
                assert_eq!(ran.stderr.contains("no retention"), dropped, "{ran:?}");
            } else {
                let told = ran.objects().remove(0).get("result_dropped").cloned();
                assert_eq!(told, dropped.then_some(json!(true)), "{ran:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_retry_without_delay_takes_the_usual_one_of_that_attempt() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--max-attempts", "2"]);
    let (id, fence) = held(&sprag.claim("q"));
    sprag.object(&["retry", "q", &id, "--fence", &fence, "--error", "first"]);
    let job = sprag.object(&["job", "show", "q", &id]);
    let ms = |value: &serde_json::Value| value.as_u64().expect("ms");
    let delay = ms(&job["due_at"]) - ms(&job["errors"][0]["failed_at"]);
    // 15 s ± 15 %
    assert!((12_749..=17_251).contains(&delay), "{delay}");

    let (id, fence) = {
        sprag.object(&["enqueue", "r", "k", "1", "--max-attempts", "1"]);
        held(&sprag.claim("r"))
    };
    let last = sprag.object(&["retry", "r", &id, "--fence", &fence, "--error", "last"]);
    assert_eq!(last["state"], "archived");
    assert_eq!(sprag.object(&["job", "show", "r", &id])["reason"], "exhausted");
}

#[tokio::test]
async fn an_extended_lease_outlives_its_first_end_and_sweep_reclaims_it_then() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "q", "k", "1", "--id", "long"]);
    sprag.object(&["enqueue", "q", "k", "2", "--id", "gone"]);
    let claim = ["claim", "q", "--worker", "w", "--count", "2", "--lease", "100ms"];
    let fence = sprag.objects(&claim)[0]["fence"].to_string();
    sprag.object(&["extend", "q", "long", "--fence", &fence, "--lease", "1h"]);
    tokio::time::sleep(Duration::from_millis(110)).await;
    let swept = sprag.object(&["sweep", "q"]);
    let none =
        json!({ "promoted": 0, "reclaimed": 1, "quarantined": 0, "expired": 0, "evicted": 0 });
    assert_eq!(swept, none);
    assert_eq!(sprag.object(&["job", "show", "q", "long"])["state"], "active");
    assert_eq!(sprag.error(8, &["complete", "q", "gone", "--fence", &fence])["job_id"], "gone");
    let again = sprag.claim("q");
    assert_eq!((&again["id"], &again["crash"]), (&json!("gone"), &json!(1)));
}
