//! A worker in a process of its own: this test program again, told to be a worker.

use crate::bench::{Answer, Bench, Log, Task, client, ms, worker};
use crate::support::PATIENCE;
use sprag::{Client, Context};
use std::{io::Read, process::Stdio, time::Duration};
use tokio::process::{Child, Command};

const URL: &str = "SPRAG_TEST_WORKER_URL";
const SLEEP: &str = "SPRAG_TEST_WORKER_SLEEP_MS";
const SLOTS: &str = "SPRAG_TEST_WORKER_SLOTS";
/// Where such a worker puts the names of the jobs that it starts.
const STARTED: &str = "test:started";

pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Killed with its handle.
pub(crate) struct Process(Child, Option<tempfile::NamedTempFile>);

impl Process {
    /// A worker with one slot, whose jobs take so long. A job named `poison` kills it.
    pub(crate) fn start(url: &str, sleep: Duration) -> Self {
        Self::with_slots(url, sleep, 1)
    }

    /// The same with so many slots.
    pub(crate) fn with_slots(url: &str, sleep: Duration, slots: usize) -> Self {
        Self(Self::spawn(url, sleep, slots, Stdio::inherit()), None)
    }

    /// One with [`log_lines`](Self::log_lines).
    pub(crate) fn with_log(url: &str) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let stderr = log.reopen().expect("a file").into();
        Self(Self::spawn(url, Duration::ZERO, 1, stderr), Some(log))
    }

    fn spawn(url: &str, sleep: Duration, slots: usize, stderr: Stdio) -> Child {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "process::worker_process", "--nocapture"])
            .env(URL, url)
            .env(SLEEP, sleep.as_millis().to_string())
            .env(SLOTS, slots.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn();
        child.expect("it starts")
    }

    /// Waits until it ends by itself; answers whether it ended well.
    pub(crate) async fn ended(&mut self) -> bool {
        let _pipe = self.0.stdin.take();
        self.0.wait().await.expect("it is ours").success()
    }

    pub(crate) async fn kill(mut self) {
        self.0.kill().await.expect("it is killed");
    }

    /// Sends a signal: `TERM`, `TSTP`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.0.id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("`kill` runs").success());
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }

    /// SIGTERM; answers whether it ended well.
    pub(crate) async fn terminate(mut self) -> bool {
        self.signal("TERM");
        // Waiting would close the pipe, and the worker end by that.
        let _pipe = self.0.stdin.take();
        let end = tokio::time::timeout(PATIENCE, self.0.wait()).await.expect("it ends in time");
        end.expect("it is ours").success()
    }

    /// What it has logged at `WARN` and above, if it was started to be read.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        let log = self.1.as_ref().expect("started with a log");
        let text = std::fs::read_to_string(log.path()).expect("the log is there");
        text.lines().map(str::to_owned).collect()
    }
}

impl Bench {
    /// Waits until a worker process starts a job; its name.
    pub(crate) async fn started_elsewhere(&self) -> String {
        let seconds = PATIENCE.as_secs().to_string();
        let popped: Option<(String, String)> = self.run(&["BLPOP", STARTED, &seconds]).await;
        popped.expect("a worker process starts a job").1
    }
}

/// Not a test by itself: the worker of [`Process`].
#[test]
fn worker_process() {
    let Ok(url) = std::env::var(URL) else { return };
    tracing::subscriber::set_global_default(ToStderr).expect("the first");
    // The pipe ends with the process that started this one: so does this one.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let sleep = std::env::var(SLEEP).expect("set together").parse().expect("a number");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(be_a_worker(client(&url), &url, ms(sleep)));
}

/// A line per event at `WARN` and above.
struct ToStderr;

impl tracing::Subscriber for ToStderr {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!(" {field}={value:?}"));
        });
        eprintln!("{line}");
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

async fn be_a_worker(client: Client, url: &str, sleep: Duration) {
    let redis = redis::Client::open(url).expect("a url");
    let connection = redis.get_multiplexed_async_connection().await.expect("a server");
    let handler = move |task: Task, _: Context| {
        let mut connection = connection.clone();
        async move {
            let mut push = redis::cmd("RPUSH");
            push.arg(STARTED).arg(&task.0);
            push.query_async::<()>(&mut connection).await.expect("a server");
            if task.0 == "poison" {
                // Its neighbours have begun by then.
                tokio::time::sleep(ms(200)).await;
                std::process::abort();
            }
            tokio::time::sleep(sleep).await;
            Answer::Ok(())
        }
    };
    let slots = std::env::var(SLOTS).expect("set together").parse().expect("a number");
    let worker = worker(&client, &Log::new(), handler).lease(LEASE).concurrency(slots);
    worker.build().expect("worker").run().await;
}
