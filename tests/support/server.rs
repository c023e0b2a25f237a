//! A Redis or Valkey server of a test's own, gone with its handle.

use super::PATIENCE;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where a server listens.
#[derive(Debug, Clone)]
pub enum Address {
    Unix(PathBuf),
    Tcp(u16),
}

/// A server without persistence in a fresh directory. Killed, and the directory removed, on drop.
#[derive(Debug)]
pub struct Server {
    // Declared first, so dropped first: the process goes before its directory.
    process: Option<Process>,
    address: Address,
    args: Vec<String>,
    dir: TempDir,
}

impl Server {
    /// On a unix socket: no port to race for, and the fastest.
    pub async fn start() -> Self {
        Self::with_args(&[]).await
    }

    /// As [`start`](Self::start), with more arguments; they override the usual ones.
    pub async fn with_args(args: &[&str]) -> Self {
        let dir = fresh_dir();
        let address = Address::Unix(dir.path().join("s"));
        Self::launch(dir, address, args).await.unwrap_or_else(|log| panic!("{log}"))
    }

    /// On a free port of 127.0.0.1.
    pub async fn start_tcp() -> Self {
        Self::tcp_with_args(&[]).await
    }

    /// As [`start_tcp`](Self::start_tcp), with more arguments; they override the usual ones.
    pub async fn tcp_with_args(args: &[&str]) -> Self {
        // The port is free when it is chosen; somebody else may take it before the server does.
        loop {
            match Self::launch(fresh_dir(), Address::Tcp(free_port()), args).await {
                Ok(server) => return server,
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("{log}"),
            }
        }
    }

    async fn launch(dir: TempDir, address: Address, args: &[&str]) -> Result<Self, String> {
        let args = args.iter().map(ToString::to_string).collect();
        let mut server = Self { process: None, address, args, dir };
        server.run().await?;
        Ok(server)
    }

    pub fn address(&self) -> Address {
        self.address.clone()
    }

    pub fn url(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("redis+unix://{}", path.display()),
            Address::Tcp(port) => format!("redis://127.0.0.1:{port}"),
        }
    }

    /// A connection of its own, to look at the data past the library and the proxy.
    pub async fn connection(&self) -> redis::aio::MultiplexedConnection {
        self.connect(PATIENCE).await.expect("the server answers")
    }

    async fn connect(
        &self,
        timeout: Duration,
    ) -> redis::RedisResult<redis::aio::MultiplexedConnection> {
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout));
        let client = redis::Client::open(self.url())?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// SIGKILL, and waits for the end: what was not written to disk is gone.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Kills the server if it runs, and starts it again in the same place.
    pub async fn restart(&mut self) {
        self.kill();
        self.run().await.unwrap_or_else(|log| panic!("{log}"));
    }

    /// SIGSTOP: connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT: what arrived meanwhile is worked off.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("the server runs");
        let sent = Command::new("kill").arg(signal).arg(process.0.id().to_string()).status();
        assert!(sent.expect("`kill` runs").success(), "kill {signal} failed");
    }

    /// Starts the process and waits until it answers. The error is what the server had to say.
    async fn run(&mut self) -> Result<(), String> {
        self.process = Some(Process::spawn(&self.command(), self.dir.path()));
        let started = Instant::now();
        loop {
            if self.answers().await {
                return Ok(());
            }
            let process = self.process.as_mut().expect("just spawned");
            let ended = process.0.try_wait().expect("a child can be waited for");
            if ended.is_some() || started.elapsed() > PATIENCE {
                self.process = None;
                let log = std::fs::read_to_string(self.dir.path().join("log"));
                return Err(format!("the server did not start: {}", log.unwrap_or_default()));
            }
            // Not tokio's sleep: a test may have stopped its clock.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// False also while it loads its data, and if somebody else has the port and answers.
    async fn answers(&self) -> bool {
        let Ok(mut connection) = self.connect(Duration::from_secs(1)).await else { return false };
        let info = redis::cmd("INFO").arg("server").query_async(&mut connection).await;
        let info: redis::InfoDict = info.unwrap_or_else(|_| redis::InfoDict::new(""));
        let ping = redis::cmd("PING").query_async::<()>(&mut connection).await;
        info.get("process_id") == self.process.as_ref().map(|process| process.0.id())
            && ping.is_ok()
    }

    fn command(&self) -> Vec<OsString> {
        let usual = ["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"];
        let listen = match &self.address {
            Address::Unix(path) => {
                ["--port".into(), "0".into(), "--unixsocket".into(), path.into()]
            }
            Address::Tcp(port) => {
                ["--bind".into(), "127.0.0.1".into(), "--port".into(), port.to_string().into()]
            }
        };
        let mut command = vec![binary().into()];
        command.extend(usual.map(Into::into));
        command.push(self.dir.path().into());
        command.extend(listen);
        command.extend(self.args.iter().map(Into::into));
        command
    }
}

/// Becomes the server, leaving behind a shell that waits for a line on its standard input. A pipe
/// that ends without one means that the test process died: the server goes too.
const GUARDED: &str = r#"
    exec 3<&0 </dev/null
    { read _ <&3 && exit; kill -9 $$; rm -rf "$0"; } &
    exec "$@" 3<&-
"#;

/// The server process, which does not outlive this one, however this one ends.
#[derive(Debug)]
struct Process(Child);

impl Process {
    fn spawn(args: &[OsString], dir: &Path) -> Self {
        let log = File::create(dir.join("log")).expect("the directory is writable");
        let shell = Command::new("sh")
            .args(["-c", GUARDED])
            .arg(dir)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle can be cloned"))
            .stderr(log)
            .spawn();
        Self(shell.expect("`sh` runs"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Calls off the guard first: once waited for, the process id may be somebody else's.
        if let Some(mut guard) = self.0.stdin.take() {
            let _ = guard.write_all(b"\n");
        }
        // It may have ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn fresh_dir() -> TempDir {
    tempfile::Builder::new().prefix("sprag-test-").tempdir().expect("a temporary directory")
}

/// From below the range that systems give to clients, so that it is still free for a restart.
fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(10_000..30_000)).find(is_free).expect("endless")
}

/// `SPRAG_REDIS_SERVER`, else the first that is on the PATH.
fn binary() -> &'static str {
    static BINARY: OnceLock<String> = OnceLock::new();
    BINARY.get_or_init(|| {
        let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        let named = std::env::var("SPRAG_REDIS_SERVER").ok().filter(|name| !name.is_empty());
        named.unwrap_or_else(|| {
            ["redis-server", "valkey-server"].iter().find(|name| runs(name)).map_or_else(
                || {
                    panic!(
                        "no redis-server or valkey-server on the PATH: run `scripts/need \
                         redis-server`, or set SPRAG_REDIS_SERVER to the path of one"
                    )
                },
                ToString::to_string,
            )
        })
    })
}
