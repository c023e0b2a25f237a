//! The examples do what they say. Cargo builds them with the tests.

mod support;

use serde_json::{Value, json};
use sprag::{
    Client, Codec, Envelope, Kind, QueueName, State,
    store::{EndingReason, QueueInfo},
};
use std::{
    path::PathBuf,
    process::{Output, Stdio},
    time::{Duration, Instant},
};
use support::{PATIENCE, Server};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

/// An example about to run on this store. It does not outlive its handle.
fn example(name: &str, url: &str) -> Command {
    // target/debug/deps/examples-… is this test.
    let this = std::env::current_exe().expect("this program");
    let built = this.ancestors().nth(2).expect("a folder of programs");
    let program: PathBuf =
        built.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "{program:?} is not built: `cargo build --examples`");
    let mut command = Command::new(program);
    command.env("SPRAG_REDIS_URL", url).env_remove("RUST_LOG").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end; the last line that it prints.
async fn last_line(name: &str, url: &str) -> String {
    ended(example(name, url).spawn().expect("it starts")).await
}

async fn ended(running: Child) -> String {
    let end = tokio::time::timeout(PATIENCE, running.wait_with_output()).await;
    let Output { status, stdout, stderr } = end.expect("it ends in time").expect("it is ours");
    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}: {said}{complained}");
    said.lines().last().unwrap_or_default().to_owned()
}

fn terminate(running: &Child) {
    let pid = running.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.expect("`kill` runs").success());
}

async fn until(client: &Client, queue: &str, what: &str, is_so: impl Fn(&QueueInfo) -> bool) {
    let started = Instant::now();
    loop {
        let info = client.inspector().queue(queue).await;
        if info.as_ref().is_ok_and(&is_so) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "waited for {what}: {info:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_outbox_enqueues_each_row_once_though_its_relay_dies() {
    let server = Server::start().await;
    for url in [server.url().as_str(), "memory://"] {
        assert_eq!(last_line("outbox", url).await, "20 rows, 20 jobs, each of them ran once");
    }
}

#[tokio::test]
async fn handlers_and_producers_are_tested_without_redis() {
    assert_eq!(last_line("testing", "redis://127.0.0.1:1").await, "all 3 hold");
}

#[tokio::test]
async fn the_worker_runs_both_kinds_and_ends_well_when_told_to_terminate() {
    let server = Server::start().await;
    let client = Client::connect(&server.url()).expect("client");
    let running = example("worker", &server.url()).arg("enqueue").spawn().expect("it starts");
    until(&client, "mail", "the mails to be gone", |info| {
        info.completed_today == 2 && info.archived == 1
    })
    .await;
    until(&client, "pictures", "the pictures to be done", |info| info.completed == 5).await;
    terminate(&running);
    assert_eq!(ended(running).await, "7 completed, 1 retried, 1 archived, 0 requeued");

    let inspector = client.inspector();
    let mut archived = inspector.jobs("mail", State::Archived).expect("a queue");
    let archived = archived.next_page().await.expect("listed").expect("one");
    let given_up = inspector.job("mail", &archived[0].id).await.expect("it is kept");
    assert_eq!(given_up.ending.expect("it ended").reason, EndingReason::Discarded);
    let mut done = inspector.jobs("pictures", State::Completed).expect("a queue");
    let done = done.next_page().await.expect("listed").expect("five");
    let picture = inspector.job("pictures", &done[0].id).await.expect("it is kept");
    let result = String::from_utf8_lossy(&picture.result.expect("a result")).into_owned();
    assert!(result.ends_with("-small.jpg\""), "{result}");
}

/// The web app, and the server that it enqueues to.
struct App {
    server: Server,
    client: Client,
    running: Child,
    address: String,
}

/// What it answers: the status, the head of the answer in lower case, and the body.
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

impl App {
    async fn start() -> Self {
        let server = Server::start().await;
        let client = Client::connect(&server.url()).expect("client");
        let mut app = example("axum", &server.url());
        let mut running = app.env("ADDR", "127.0.0.1:0").spawn().expect("it starts");
        let mut lines = BufReader::new(running.stdout.as_mut().expect("a pipe")).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time");
        let line = line.expect("a line").expect("it says where it listens");
        let address = line.strip_prefix("listening on http://").expect("an address").to_owned();
        Self { server, client, running, address }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\n"), "").await
    }

    async fn sign_up(&self, email: &str, key: &str) -> Answer {
        let head = format!(
            "POST /signups HTTP/1.1\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n"
        );
        self.ask(&head, &json!({ "email": email }).to_string()).await
    }

    async fn ask(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).await.expect("it listens");
        let length = body.len();
        let request =
            format!("{head}Host: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
        read.expect("in time").expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer {
            status: status.expect("a status"),
            head: head.to_ascii_lowercase(),
            body: serde_json::from_str(body).unwrap_or_default(),
        }
    }
}

#[tokio::test]
async fn the_web_app_enqueues_a_request_once_and_tells_of_its_job() {
    let app = App::start().await;
    for existing in [false, true] {
        let answer = app.sign_up("ada@example.org", "one").await;
        assert_eq!((answer.status, &answer.body["existing"]), (202, &existing.into()));
        assert!(answer.head.contains("location: /jobs/email/one"), "{}", answer.head);
    }
    let info = app.client.inspector().queue("email").await.expect("a queue");
    assert_eq!(info.unfinished, 1);
    assert_eq!(app.get("/jobs/email/one").await.body["state"], "pending");
    terminate(&app.running);
    ended(app.running).await;
}

#[tokio::test]
async fn the_web_app_has_a_status_for_each_refusal_of_the_store() {
    let app = App::start().await;
    let inspector = app.client.inspector();
    app.sign_up("ada@example.org", "one").await;
    let duplicate = app.sign_up("ada@example.org", "two").await;
    assert_eq!((duplicate.status, &duplicate.body["existing_id"]), (409, &json!("one")));
    assert_eq!(app.sign_up("bob@example.org", "one").await.status, 409, "another content");
    assert_eq!(app.sign_up("bob@example.org", "no id").await.status, 400);
    assert_eq!(app.get("/jobs/email/none").await.status, 404);
    assert_eq!(app.get("/jobs/no%20queue/one").await.status, 400);

    let poison = fingerprint(&json!({ "email": "poison@example.org" }));
    inspector.quarantine("email", poison, None).await.expect("closed");
    assert_eq!(app.sign_up("poison@example.org", "three").await.status, 423);

    inspector.limit("email", Some(1)).await.expect("limited");
    let full = app.sign_up("bob@example.org", "four").await;
    assert_eq!(full.status, 429);
    assert!(full.head.contains("retry-after: "), "{}", full.head);

    let mut redis = app.server.connection().await;
    let wrong_type = redis::cmd("SET").arg("sprag:{email}:unique").arg("x").to_owned();
    wrong_type.query_async::<()>(&mut redis).await.expect("SET");
    let failed = app.sign_up("bob@example.org", "five").await;
    assert_eq!((failed.status, &failed.body["error"]), (500, &json!("Internal Server Error")));

    app.server.pause();
    let away = app.sign_up("bob@example.org", "six").await;
    assert_eq!(away.status, 503);
    assert!(away.head.contains("retry-after: "), "{}", away.head);
    app.server.resume();
}

/// Of a welcome mail's payload.
fn fingerprint(payload: &Value) -> String {
    let kind = Kind::new("email:welcome").expect("kind");
    let job = Envelope::builder(QueueName::new("email").expect("queue"), kind)
        .payload(rmp_serde::to_vec_named(payload).expect("it encodes"), Codec::MsgPack);
    job.build().expect("valid").fingerprint().to_string()
}

#[tokio::test]
async fn the_web_app_is_ready_when_its_server_is() {
    let mut app = App::start().await;
    assert_eq!(app.get("/ready").await.status, 200);
    app.server.kill();
    assert_eq!(app.get("/ready").await.status, 503);
    app.server.restart().await;
    let started = std::time::Instant::now();
    while app.get("/ready").await.status != 200 {
        assert!(started.elapsed() < PATIENCE, "it stays away");
    }
    terminate(&app.running);
    ended(app.running).await;
}
