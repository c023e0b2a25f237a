//! A worker in a process of its own: this program again, told to be one.
//!
//! It takes the URL from the environment, ends with its standard input, and says on its standard
//! output, if it is to tell, which jobs it starts, and at its end how many it ran and completed.

use crate::{jobs::Task, server::PATIENCE};
use clap::Parser;
use sprag::{Client, Worker, worker::Data};
use std::{
    convert::Infallible,
    io::{Read, Write},
    process::{ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{ChildStdout, Command},
};

pub(crate) const SUBCOMMAND: &str = "worker";
const URL: &str = "SPRAG_REDIS_URL";

/// What such a worker is told.
#[derive(Clone, Parser)]
pub(crate) struct Settings {
    /// Jobs at a time
    #[arg(long, default_value_t = 10)]
    pub(crate) concurrency: usize,
    /// The default of the library if none
    #[arg(long)]
    pub(crate) lease_ms: Option<u64>,
    /// How long a job takes
    #[arg(long, default_value_t = 0)]
    pub(crate) sleep_ms: u64,
    /// Threads of its runtime
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,
    /// Whether it says which jobs it starts
    #[arg(long)]
    pub(crate) tell: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self::parse_from([SUBCOMMAND])
    }
}

impl Settings {
    fn to_args(&self) -> Vec<String> {
        let mut args = vec![
            SUBCOMMAND.to_owned(),
            format!("--concurrency={}", self.concurrency),
            format!("--sleep-ms={}", self.sleep_ms),
            format!("--threads={}", self.threads),
        ];
        args.extend(self.lease_ms.map(|lease| format!("--lease-ms={lease}")));
        args.extend(self.tell.then(|| "--tell".to_owned()));
        args
    }
}

/// Killed with its handle.
pub(crate) struct Child {
    process: tokio::process::Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    pub(crate) fn start(url: &str, settings: &Settings) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        for name in ["SPRAG_REDIS_PASSWORD", "SPRAG_REDIS_PASSWORD_FILE"] {
            command.env_remove(name);
        }
        command.args(settings.to_args()).env(URL, url).kill_on_drop(true);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.expect("it starts");
        let stdout = process.stdout.take().expect("piped");
        Self { process, lines: BufReader::new(stdout).lines() }
    }

    /// The number of the job that it starts next.
    pub(crate) async fn started(&mut self) -> u64 {
        let line = self.lines.next_line().await.expect("a line").expect("it lives");
        let number = line.strip_prefix("start ").unwrap_or_else(|| panic!("{line:?}"));
        number.parse().expect("a number")
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.process.kill().await.expect("it is killed");
    }

    /// Lets it drain; answers how many jobs it ran. Panics unless it completed all of them.
    pub(crate) async fn end(mut self) -> u64 {
        drop(self.process.stdin.take());
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("it ends in time").expect("a line").expect("it says its end");
        let counts = line.strip_prefix("end ").and_then(|counts| counts.split_once(' '));
        let (ran, completed) = counts.unwrap_or_else(|| panic!("{line:?}"));
        assert_eq!(ran, completed, "every job that ran was completed");
        ran.parse().expect("a number")
    }
}

/// What the handler knows.
struct Ran {
    count: AtomicU64,
    sleep: Duration,
    tells: bool,
}

async fn run(task: Task, ran: Data<Arc<Ran>>) -> Result<(), Infallible> {
    ran.count.fetch_add(1, Relaxed);
    if ran.tells {
        say(&format!("start {}", task.number));
    }
    if !ran.sleep.is_zero() {
        tokio::time::sleep(ran.sleep).await;
    }
    Ok(())
}

/// A line, at once: stdout is a pipe.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("it is listened to");
}

/// The worker itself.
pub(crate) fn main() -> ExitCode {
    let settings = Settings::parse_from(std::env::args_os().skip(1));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(settings.threads).enable_all().build();
    runtime.expect("a runtime").block_on(work(settings));
    ExitCode::SUCCESS
}

async fn work(settings: Settings) {
    let client = Client::from_env().expect("a URL");
    let sleep = Duration::from_millis(settings.sleep_ms);
    let ran = Arc::new(Ran { count: AtomicU64::new(0), sleep, tells: settings.tell });
    let worker = Worker::builder(&client).data(ran.clone()).handler(run);
    let mut worker = worker.concurrency(settings.concurrency);
    if let Some(lease) = settings.lease_ms {
        worker = worker.lease(Duration::from_millis(lease));
    }
    let worker = worker.build().expect("worker");
    let shutdown = worker.shutdown();
    std::thread::spawn(move || {
        // The pipe ends by its parent's will, or with its parent.
        let _ = std::io::stdin().read(&mut [0]);
        shutdown.drain();
    });
    let report = worker.run_until_shutdown().await;
    say(&format!("end {} {}", ran.count.load(Relaxed), report.completed));
}
