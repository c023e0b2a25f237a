//! A Redis or Valkey server of a test's own, gone with its handle.

use super::PATIENCE;
use super::make::Make;
use super::process::{Process, free_port, fresh_dir, taken};
use redis::aio::MultiplexedConnection;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where a server listens.
#[derive(Debug, Clone)]
pub enum Address {
    Unix(PathBuf),
    Tcp(u16),
}

/// How a server is to be.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `start`"]
pub struct Setup {
    make: Make,
    tcp: bool,
    tls: bool,
    port: Option<u16>,
    args: Vec<String>,
    config: Vec<String>,
    files: Vec<(&'static str, String)>,
    login: Option<(String, String)>,
}

impl Setup {
    pub fn make(mut self, make: Make) -> Self {
        self.make = make;
        self
    }

    /// On a free port of 127.0.0.1, beside the unix socket.
    pub fn tcp(mut self) -> Self {
        self.tcp = true;
        self
    }

    /// As [`tcp`](Self::tcp), but the port speaks only TLS.
    pub(super) fn tls(mut self) -> Self {
        self.tls = true;
        self.tcp()
    }

    /// On this port of 127.0.0.1.
    pub(super) fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self.tcp()
    }

    /// More arguments; they override the usual ones.
    pub fn args<A: ToString>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.to_string()));
        self
    }

    /// A line of the configuration file.
    pub fn config(mut self, line: impl Into<String>) -> Self {
        self.config.push(line.into());
        self
    }

    /// A user of the access control list: `user("peter", ["on", ">secret", "~sprag:*", "+get"])`.
    pub fn user<R: AsRef<str>>(self, name: &str, rules: impl IntoIterator<Item = R>) -> Self {
        let words = rules.into_iter().map(|rule| format!(" {}", rule.as_ref()));
        self.config(format!("user {name}{}", words.collect::<String>()))
    }

    /// The name and the password by which the test itself looks at the data. It needs a user who
    /// may do everything; `default` is one.
    pub fn login(mut self, user: &str, password: &str) -> Self {
        self.login = Some((user.to_owned(), password.to_owned()));
        self
    }

    /// The users of the list must give this password. The test itself does.
    pub fn password(self, password: &str) -> Self {
        self.config(format!("requirepass {password}")).login("default", password)
    }

    /// A file in the server's directory.
    pub(super) fn file(mut self, name: &'static str, text: String) -> Self {
        self.files.push((name, text));
        self
    }

    pub async fn start(self) -> Server {
        // The port is free when it is chosen; somebody else may take it before the server does.
        loop {
            let mut server = self.clone().spawn();
            match server.ready().await {
                Ok(()) => return server,
                Err(log) if taken(&log) && self.port.is_none() => {}
                Err(log) => panic!("{log}"),
            }
        }
    }

    /// The server starts, and does not answer yet.
    pub(super) fn spawn(self) -> Server {
        let dir = fresh_dir();
        let write = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).expect("the directory is writable");
        };
        self.files.iter().for_each(|(name, text)| write(name, text));
        write("conf", &self.config.iter().map(|line| format!("{line}\n")).collect::<String>());
        let port = self.port.or_else(|| self.tcp.then(free_port));
        let mut server = Server { process: None, port, setup: self, dir };
        server.run();
        server
    }
}

/// A server without persistence in a fresh directory. Killed, and the directory removed, on drop.
#[derive(Debug)]
pub struct Server {
    // Declared first, so dropped first: the process goes before its directory.
    process: Option<Process>,
    port: Option<u16>,
    setup: Setup,
    dir: TempDir,
}

impl Server {
    /// On a unix socket: no port to race for, and the fastest.
    pub async fn start() -> Self {
        Self::setup().start().await
    }

    /// As [`start`](Self::start), with more arguments; they override the usual ones.
    pub async fn with_args(args: &[&str]) -> Self {
        Self::setup().args(args).start().await
    }

    /// On a free port of 127.0.0.1.
    pub async fn start_tcp() -> Self {
        Self::setup().tcp().start().await
    }

    /// As [`start_tcp`](Self::start_tcp), with more arguments; they override the usual ones.
    pub async fn tcp_with_args(args: &[&str]) -> Self {
        Self::setup().tcp().args(args).start().await
    }

    /// To choose more than that.
    pub fn setup() -> Setup {
        Setup {
            make: Make::Local,
            tcp: false,
            tls: false,
            port: None,
            args: Vec::new(),
            config: Vec::new(),
            files: Vec::new(),
            login: None,
        }
    }

    pub fn address(&self) -> Address {
        self.port.map_or_else(|| Address::Unix(self.socket()), Address::Tcp)
    }

    /// Without any password.
    pub fn url(&self) -> String {
        match self.address() {
            Address::Unix(path) => format!("redis+unix://{}", path.display()),
            Address::Tcp(port) if self.setup.tls => format!("rediss://127.0.0.1:{port}"),
            Address::Tcp(port) => format!("redis://127.0.0.1:{port}"),
        }
    }

    /// The port of one that listens on TCP.
    pub fn port(&self) -> u16 {
        self.port.expect("the server listens on TCP")
    }

    /// Where the server keeps its files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    /// A URL for the test's own look at the data, whoever may see it and however others connect: by
    /// the unix socket, as the user who may do everything.
    pub fn own_url(&self) -> String {
        let login = self.setup.login.as_ref();
        let login = login.map(|(user, password)| format!("?user={user}&pass={password}"));
        format!("redis+unix://{}{}", self.socket().display(), login.unwrap_or_default())
    }

    /// A connection of its own, to look at the data past the library and the proxy.
    pub async fn connection(&self) -> MultiplexedConnection {
        self.connect(PATIENCE).await.expect("the server answers")
    }

    async fn connect(&self, timeout: Duration) -> redis::RedisResult<MultiplexedConnection> {
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout));
        let client = redis::Client::open(self.own_url())?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// SIGKILL, and waits for the end: what was not written to disk is gone.
    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Kills the server if it runs, and starts it again in the same place.
    pub async fn restart(&mut self) {
        self.kill();
        self.run();
        self.ready().await.unwrap_or_else(|log| panic!("{log}"));
    }

    /// SIGSTOP: connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.process.as_ref().expect("the server runs").signal("-STOP");
    }

    /// SIGCONT: what arrived meanwhile is worked off.
    pub fn resume(&self) {
        self.process.as_ref().expect("the server runs").signal("-CONT");
    }

    fn run(&mut self) {
        // A socket that its last server left behind: nobody is to take it for the new one's.
        let _ = std::fs::remove_file(self.socket());
        self.process = Some(Process::spawn(&self.command(), self.dir.path()));
    }

    /// Waits until it answers. The error is what the server had to say.
    pub(super) async fn ready(&mut self) -> Result<(), String> {
        let started = Instant::now();
        while !self.answers().await {
            let process = self.process.as_mut().expect("just spawned");
            if process.has_ended() || started.elapsed() > PATIENCE {
                self.process = None;
                let log = std::fs::read_to_string(self.dir.path().join("log"));
                return Err(format!("the server did not start: {}", log.unwrap_or_default()));
            }
            // Not tokio's sleep: a test may have stopped its clock.
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// False also while it loads its data. Nobody else listens on its socket.
    async fn answers(&self) -> bool {
        let Ok(mut connection) = self.connect(Duration::from_secs(1)).await else { return false };
        redis::cmd("PING").query_async::<()>(&mut connection).await.is_ok()
    }

    fn command(&self) -> Vec<OsString> {
        let usual = ["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"];
        let port = self.port.unwrap_or(0).to_string();
        let mut command =
            vec![self.setup.make.binary().into(), self.dir.path().join("conf").into()];
        command.extend(usual.map(Into::into));
        command.push(self.dir.path().into());
        command.extend(["--bind", "127.0.0.1", "--unixsocket"].map(Into::into));
        command.push(self.socket().into());
        let listen =
            if self.setup.tls { vec!["--port", "0", "--tls-port"] } else { vec!["--port"] };
        command.extend(listen.into_iter().map(Into::into));
        command.push(port.into());
        command.extend(self.setup.args.iter().map(Into::into));
        command
    }
}
