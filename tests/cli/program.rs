//! Runs the program.

use crate::support::Server;
use serde_json::Value;
use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

pub(crate) const SPRAG: &str = env!("CARGO_BIN_EXE_sprag");

/// The program on a server of its own.
pub(crate) struct Program {
    pub(crate) server: Server,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with nothing of the tests' own environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(SPRAG);
    for name in ["SPRAG_REDIS_URL", "REDIS_URL", "SPRAG_NAMESPACE", "RUST_LOG", "SPRAG_CONFIG"] {
        command.env_remove(name);
    }
    for name in ["SPRAG_REDIS_PASSWORD", "SPRAG_REDIS_PASSWORD_FILE", "NO_COLOR"] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/no/such/folder");
    command
}

pub(crate) fn run(command: &mut Command) -> Ran {
    Ran::from(command.output().expect("the program runs"))
}

impl Program {
    pub(crate) async fn start() -> Self {
        Self { server: Server::start().await }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command();
        command.env("SPRAG_REDIS_URL", self.server.url()).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run(&mut self.command(args))
    }

    /// Runs with `--json`, must succeed, and gives the objects.
    pub(crate) fn objects(&self, args: &[&str]) -> Vec<Value> {
        let ran = self.run(&[&["--json"], args].concat());
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran.objects()
    }

    /// The same for a command that answers one object.
    pub(crate) fn object(&self, args: &[&str]) -> Value {
        let mut objects = self.objects(args);
        assert_eq!(objects.len(), 1, "{args:?}: {objects:?}");
        objects.remove(0)
    }

    /// Runs with `--json`, must fail with this code, and gives the error's object.
    pub(crate) fn error(&self, code: i32, args: &[&str]) -> Value {
        let ran = self.run(&[&["--json"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}: {ran:?}");
        ran.error()
    }

    pub(crate) fn with_stdin(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        child.stdin.take().expect("a pipe").write_all(stdin).expect("it reads");
        Ran::from(child.wait_with_output().expect("it ends"))
    }

    /// Claims one job by `w`.
    pub(crate) fn claim(&self, queue: &str) -> Value {
        self.object(&["claim", queue, "--worker", "w"])
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl Ran {
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The one object on stderr.
    /// Each error that it told of.
    #[allow(dead_code, reason = "shared by two suites")]
    pub(crate) fn errors(&self) -> Vec<Value> {
        self.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).expect(&self.stderr)
    }
}

/// A field that is a text.
pub(crate) fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_else(|| panic!("{field} of {object}")).to_owned()
}

/// Id and fence of a claimed job, as the next command takes them.
pub(crate) fn held(job: &Value) -> (String, String) {
    (text(job, "id"), job["fence"].to_string())
}
