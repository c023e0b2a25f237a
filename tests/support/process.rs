//! Processes that do not outlive their test, and what they need: a directory, a port.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Becomes the server, leaving behind a shell that waits for a line on its standard input. A pipe
/// that ends without one means that the test process died: the server goes too.
const GUARDED: &str = r#"
    exec 3<&0 </dev/null
    { read _ <&3 && exit; kill -9 $$; rm -rf "$0"; } &
    exec "$@" 3<&-
"#;

/// The server process, which does not outlive this one, however this one ends.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    /// Its output goes to the file `log` in the directory.
    pub(super) fn spawn(args: &[OsString], dir: &Path) -> Self {
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

    pub(super) fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child can be waited for").is_some()
    }

    pub(super) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.0.id().to_string()).status();
        assert!(sent.expect("`kill` runs").success(), "kill {signal} failed");
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

pub(super) fn fresh_dir() -> TempDir {
    tempfile::Builder::new().prefix("sprag-test-").tempdir().expect("a temporary directory")
}

/// From below the range that systems give to clients, so that it is still free for a restart.
/// Somebody else may take it before the server does: see [`taken`].
pub(super) fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(10_000..30_000)).find(is_free).expect("endless")
}

/// A server that said this lost the race for its port.
pub(super) fn taken(log: &str) -> bool {
    log.contains("Address already in use")
}
