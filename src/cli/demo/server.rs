//! A private Redis, gone with its handle.

use crate::connect::env;
use anyhow::{Context, bail};
use std::{
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Becomes the server, leaving behind a shell that waits for a line on its standard input. A pipe
/// that ends without one means that the demo was killed: server and directory go too. A part of the
/// demo that was just starting may put a file into the directory while it is emptied: once more then.
const GUARDED: &str = r#"
    exec 3<&0 </dev/null
    { read _ <&3 && exit; kill -9 $$; until rm -rf "$0"; do sleep 1; done; } &
    exec "$@" 3<&-
"#;
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Server {
    pub(super) program: String,
    pub(super) url: String,
    process: Child,
}

impl Server {
    pub(super) async fn start(dir: &Path) -> anyhow::Result<Self> {
        let program = program()?.context("no redis-server or valkey-server on the PATH")?;
        let socket = dir.join("redis.sock");
        let process = Command::new("sh")
            .args(["-c", GUARDED])
            .arg(dir)
            .arg(&program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start sh")?;
        let url = format!("redis+unix://{}", socket.display());
        let mut server = Self { program, url, process };
        server.until_it_answers().await?;
        Ok(server)
    }

    async fn until_it_answers(&mut self) -> anyhow::Result<()> {
        let client = redis::Client::open(self.url.as_str())?;
        let started = Instant::now();
        while client.get_multiplexed_async_connection().await.is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("{} ended at once: {status}", self.program);
            }
            if started.elapsed() > PATIENCE {
                bail!("{} does not answer on its socket", self.program);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Calls off the guard first: once waited for, the process id may be somebody else's.
        if let Some(mut guard) = self.process.stdin.take() {
            let _ = guard.write_all(b"\n");
        }
        // It may have ended already, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn runs(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok()
}

/// Whether there is a server to start. One that is named, and is none, is an error.
pub(super) fn is_there() -> anyhow::Result<bool> {
    Ok(program()?.is_some())
}

/// `SPRAG_REDIS_SERVER`, else the first that is on the PATH.
fn program() -> anyhow::Result<Option<String>> {
    if let Some(named) = env("SPRAG_REDIS_SERVER")? {
        if runs(&named) {
            return Ok(Some(named));
        }
        bail!("SPRAG_REDIS_SERVER is not a program: {named}");
    }
    let found = ["redis-server", "valkey-server"].into_iter().find(|name| runs(name));
    Ok(found.map(str::to_owned))
}
