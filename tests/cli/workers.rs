//! `worker`.

use crate::program::Program;
use serde_json::json;
use sprag::{Client, Job, Worker};

#[derive(serde::Serialize, serde::Deserialize)]
struct Nothing;

impl Job for Nothing {
    const KIND: &'static str = "nothing";
    const QUEUE: &'static str = "q";
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_listed_while_it_works() {
    let sprag = Program::start().await;
    assert_eq!(sprag.run(&["worker", "list"]).stderr, "there is no worker\n");
    let client = Client::connect(&sprag.server.url()).expect("a url");
    let worker = Worker::builder(&client)
        .handler(|_: Nothing| async { Ok::<_, std::io::Error>(()) })
        .concurrency(3)
        .build()
        .expect("valid");
    let (id, shutdown) = (worker.id().to_string(), worker.shutdown());
    let running = tokio::spawn(worker.run_until_shutdown());
    let started = std::time::Instant::now();
    let listed = loop {
        let mut listed = sprag.objects(&["worker", "list"]);
        if let Some(one) = listed.pop() {
            break one;
        }
        assert!(started.elapsed() < crate::support::PATIENCE, "not in time");
    };
    assert_eq!((&listed["id"], &listed["queues"]), (&json!(id), &json!(["q"])));
    assert_eq!((&listed["busy"], &listed["concurrency"]), (&json!(0), &json!(3)));
    assert_eq!((&listed["pid"], &listed["gone"]), (&json!(std::process::id()), &json!(false)));
    assert!(listed["seen_at"].is_u64() && listed["started_at"].is_u64(), "{listed}");
    assert_eq!((&listed["state"], &listed["jobs"]), (&json!("running"), &json!([])));
    let table = sprag.run(&["worker", "list"]).stdout;
    assert!(table.contains(&id) && table.contains("running") && table.contains("0/3"), "{table}");
    shutdown.drain();
    running.await.expect("no panic");
    assert_eq!(sprag.objects(&["worker", "list"]).len(), 0);
    // One that died an hour and a half ago is dropped, one that died of late is told to be gone.
    let mut connection = sprag.server.connection().await;
    let now = sprag::Timestamp::now().as_millis();
    for (id, ago) in [("old", 5_400_000), ("dead", 120_000)] {
        let mut dead = listed.clone();
        (dead["id"], dead["seen_at"]) = (json!(id), json!(now - ago));
        let mut set = redis::cmd("HSET");
        set.arg("sprag:workers").arg(id).arg(dead.to_string());
        set.query_async::<()>(&mut connection).await.expect("set");
    }
    let dead = sprag.object(&["worker", "list"]);
    assert_eq!((&dead["id"], &dead["gone"]), (&json!("dead"), &json!(true)));
    let left: Vec<String> =
        redis::cmd("HKEYS").arg("sprag:workers").query_async(&mut connection).await.expect("keys");
    assert_eq!(left, ["dead"]);
}

#[tokio::test]
async fn a_worker_is_asked_to_be_quiet_or_to_stop() {
    let sprag = Program::start().await;
    assert_eq!(sprag.error(3, &["worker", "quiet", "w"])["error"], "not_found");
    assert_eq!(sprag.error(2, &["worker", "stop", "w w"])["error"], "invalid");
    let now = sprag::Timestamp::now().as_millis();
    let beat = json!({
        "id": "w", "queues": ["q"], "host": "h", "pid": 1, "version": "0", "concurrency": 4,
        "busy": 2, "started_at": now, "seen_at": now,
    });
    let mut connection = sprag.server.connection().await;
    let mut set = redis::cmd("HSET");
    set.arg("sprag:workers").arg("w").arg(beat.to_string());
    set.query_async::<()>(&mut connection).await.expect("set");
    assert_eq!(sprag.object(&["worker", "quiet", "w"]), json!({ "id": "w", "asked": "quiet" }));
    let ran = sprag.run(&["worker", "stop", "w"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "worker w is asked to stop\n"));
    let mut get = redis::cmd("HGET");
    let wish: String =
        get.arg("sprag:workers").arg("wish w").query_async(&mut connection).await.expect("get");
    assert_eq!(wish, "stop");
    let listed = sprag.object(&["worker", "list"]);
    assert_eq!((&listed["id"], &listed["state"]), (&json!("w"), &json!("running")));
}
