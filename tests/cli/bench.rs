//! `bench` on a server of its own: its figures, and that nothing is left behind.

use crate::{program::Program, support::PATIENCE};
use serde_json::Value;
use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const FIELDS: [&str; 12] = [
    "jobs",
    "concurrency",
    "payload_bytes",
    "enqueue_per_s",
    "drain_per_s",
    "redis_cpu_us_per_job",
    "floor_cpu_us_per_job",
    "ratio",
    "bytes_per_waiting_job",
    "commands_per_job",
    "start_p50_us",
    "start_p99_us",
];

impl Program {
    /// All keys of the server.
    async fn keys(&self) -> Vec<String> {
        let mut connection = self.server.connection().await;
        redis::cmd("KEYS").arg("*").query_async(&mut connection).await.expect("keys")
    }
}

#[tokio::test]
async fn a_bench_tells_its_figures_and_leaves_no_key() {
    let sprag = Program::start().await;
    let ran = sprag.run(&["--json", "bench", "--jobs", "300", "--concurrency", "20"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let figures = ran.objects().remove(0);
    let places: Vec<_> =
        FIELDS.iter().map(|name| ran.stdout.find(&format!("\"{name}\":")).expect(name)).collect();
    assert!(places.is_sorted() && figures.as_object().expect("an object").len() == FIELDS.len());
    let number = |name: &str| figures[name].as_f64().expect(name);
    assert_eq!(["jobs", "concurrency", "payload_bytes"].map(number), [300.0, 20.0, 200.0]);
    assert!(FIELDS.iter().all(|name| number(name) > 0.0), "{figures}");
    // A promise costs something, and less than a hundred times the work.
    assert!((1.0..100.0).contains(&number("ratio")), "{figures}");
    // The payload, the id in two places, and what Redis spends on them.
    assert!((200.0..1_000.0).contains(&number("bytes_per_waiting_job")), "{figures}");
    assert!(number("start_p50_us") <= number("start_p99_us"), "{figures}");
    assert_eq!(sprag.keys().await, [""; 0]);
}

#[tokio::test]
async fn a_bench_for_people_is_a_table_and_spares_what_is_not_its_own() {
    let sprag = Program::start().await;
    sprag.object(&["enqueue", "mine", "k", "--id", "x"]);
    let before = sprag.keys().await.len();
    let ran = sprag.run(&["bench", "--jobs", "1", "--concurrency", "1", "--payload", "2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for name in ["enqueue", "drain", "Redis' CPU", "the floor's", "ratio", "start, median"] {
        assert!(ran.stdout.contains(name), "{name}: {ran:?}");
    }
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{ran:?}");
    assert_eq!(sprag.keys().await.len(), before);
    assert_eq!(sprag.object(&["job", "show", "mine", "x"])["state"], "pending");
}

#[tokio::test]
async fn a_bench_that_is_broken_off_leaves_no_key() {
    let sprag = Program::start().await;
    // While it listens, while jobs start, while the floor or the queue is full.
    for (signal, ms) in [("-INT", 100), ("-TERM", 1_500), ("-INT", 6_000), ("-HUP", 8_000)] {
        let mut bench = sprag.command(&["--quiet", "bench", "--jobs", "1000000"]);
        let mut bench = bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(ms));
        let kill = Command::new("kill").args([signal, &bench.id().to_string()]).status();
        assert!(kill.expect("`kill` runs").success(), "it still ran");
        let told = Instant::now();
        assert_eq!(bench.wait().expect("gone").code(), Some(1), "{signal} after {ms} ms");
        assert!(told.elapsed() < PATIENCE, "{signal} after {ms} ms");
        assert_eq!(sprag.keys().await, [""; 0], "{signal} after {ms} ms");
    }
}

#[tokio::test]
async fn a_bench_that_meets_an_error_leaves_no_key_and_says_why() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("maxmemory").arg("16mb");
    set.query_async::<()>(&mut connection).await.expect("CONFIG");
    let error = sprag.error(9, &["bench", "--jobs", "100000", "--payload", "4000"]);
    assert_eq!(error["error"], "unavailable");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("OOM")), "{error}");
    assert_eq!(sprag.keys().await, [""; 0]);
}

#[tokio::test]
async fn a_bench_beside_others_says_that_they_count_too() {
    let sprag = Program::start().await;
    let mut connection = sprag.server.connection().await;
    let others = tokio::spawn(async move {
        loop {
            redis::cmd("PING").query_async::<()>(&mut connection).await.expect("PONG");
        }
    });
    let mut bench = sprag.command(&["--json", "bench", "--jobs", "1"]);
    let ran = tokio::task::spawn_blocking(move || crate::program::run(&mut bench));
    let ran = ran.await.expect("no panic");
    others.abort();
    assert!(ran.code == 0 && ran.stderr.contains("busy with others"), "{ran:?}");
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused() {
    let sprag = Program::start().await;
    let bad: [&[&str]; 9] = [
        &["--jobs", "0"],
        &["--jobs", "10000001"],
        &["--jobs", "-1"],
        &["--concurrency", "0"],
        &["--concurrency", "1001"],
        &["--payload", "1"],
        &["--payload", "1048577"],
        &["--payload", "1048576"],
        &["--namespace", "mine"],
    ];
    for args in bad {
        let error = sprag.error(2, &[&["bench"], args].concat());
        assert_eq!(error["error"], Value::from("invalid"), "{args:?}");
    }
    let nowhere = ["bench", "--url", "redis://127.0.0.1:1"];
    assert_eq!(sprag.error(9, &nowhere)["error"], "unavailable");
    assert_eq!(sprag.keys().await, [""; 0]);
}
