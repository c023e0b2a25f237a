//! The processes of a demo, none of which outlives it.

use super::place::Place;
use std::{io::Read, path::Path, process::Stdio, time::Duration};
use tokio::process::{Child, Command};

pub(super) const PRODUCERS: usize = 2;
pub(super) const WORKERS: usize = 3;

/// The parts that run. They are kept where they outlive the run, so that it can be waited for their
/// end however the run ends: one that still ran would write what was deleted.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) producers: Vec<Child>,
    pub(super) workers: Vec<Child>,
}

impl Parts {
    /// Kills them and waits for their end.
    pub(super) async fn end(&mut self) {
        for part in self.producers.iter_mut().chain(&mut self.workers) {
            // One that has ended already is what is wanted.
            let _ = part.kill().await;
        }
    }
}

/// Starts a part of the demo. It is killed when its handle is dropped, and it ends by itself when
/// the pipe to its stdin does, should this process be killed.
pub(super) fn start(place: &Place, dir: &Path, args: &[&str]) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("demo-part")
        .args(args)
        .arg("--dir")
        .arg(dir)
        // By the environment: arguments, and with them a password, are shown to all by `ps`.
        .env("SPRAG_REDIS_URL", &place.url)
        .env("SPRAG_NAMESPACE", place.namespace.as_str())
        // The URL has what it needs; a private server knows no password.
        .env_remove("SPRAG_REDIS_PASSWORD")
        .env_remove("SPRAG_REDIS_PASSWORD_FILE")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// In a part: calls `end` when the parent closes its pipe or dies, and insists a little later.
pub(super) fn end_with_parent(end: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let mut ignored = [0; 64];
        while std::io::stdin().read(&mut ignored).is_ok_and(|count| count > 0) {}
        end();
        std::thread::sleep(Duration::from_secs(5));
        std::process::exit(1);
    });
}

/// Lets a worker drain, and waits for its end.
pub(super) async fn drain(worker: &mut Child) -> std::io::Result<()> {
    drop(worker.stdin.take());
    worker.wait().await.map(drop)
}
