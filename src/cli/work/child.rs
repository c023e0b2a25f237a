//! A command in a process group of its own. However this value ends, nothing of the group is left.

use crate::payload;
use rustix::process::{Pid, Signal, kill_process_group};
use sprag::{Codec, Context, Envelope, TraceParent, worker::BoxError};
use std::{
    collections::VecDeque,
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, Command},
    task::JoinHandle,
};

/// A result is at most so long.
const MAX_STDOUT: usize = 64 << 10;
/// The end of stderr that is kept: an error's text is at most 4 KiB.
const MAX_STDERR: usize = 4_000;
/// What a command printed has been read so long after its end, unless something that left its group
/// still holds the pipe.
const PIPES: Duration = Duration::from_secs(1);

/// How a command ended, and what it said.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stdout_overflowed: bool,
    pub(super) stderr_end: Vec<u8>,
}

pub(super) struct Child {
    group: Group,
    child: tokio::process::Child,
    stdin: JoinHandle<()>,
    stdout: JoinHandle<(Vec<u8>, bool)>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Child {
    pub(super) fn start(command: &str, context: &Context) -> Result<Self, BoxError> {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(command)
            .process_group(0)
            .envs(environment(context))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(|error| format!("cannot run sh: {error}"))?;
        let group = Group::of(&child)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("a command without pipes".into());
        };
        let payload = readable(context.envelope());
        Ok(Self {
            group,
            child,
            stdin: tokio::spawn(write(stdin, payload)),
            stdout: tokio::spawn(read_start(stdout)),
            stderr: tokio::spawn(read_end(stderr)),
        })
    }

    /// Waits for the shell's end. Cancel-safe: it may be called again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// What it said, after its end. What it has left running would be nobody's, and is killed.
    pub(super) async fn collect(mut self, status: ExitStatus) -> Ended {
        self.group.kill();
        let (stdout, stderr) = tokio::join!(in_time(&mut self.stdout), in_time(&mut self.stderr));
        let (stdout, stdout_overflowed) = stdout.unwrap_or_default();
        Ended { status, stdout, stdout_overflowed, stderr_end: stderr.unwrap_or_default() }
    }

    /// SIGTERM to the group.
    pub(super) fn terminate(&self) {
        self.group.signal(Signal::TERM);
    }

    /// SIGKILL to the group.
    pub(super) fn kill(&mut self) {
        self.group.kill();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.kill();
        // They end with the group; should something hold the pipes, not for long.
        self.stdin.abort();
        self.stdout.abort();
        self.stderr.abort();
    }
}

/// A process group, for as long as somebody may be in it.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &tokio::process::Child) -> Result<Self, BoxError> {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self(Some(pid.ok_or("a command without a process id")?)))
    }

    fn signal(&self, signal: Signal) {
        // A group that nobody is in any more is no error.
        let _ = self.0.map(|group| kill_process_group(group, signal));
    }

    /// Once: after the leader was waited for, its number may become another's as soon as the group is
    /// empty.
    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }
}

fn environment(context: &Context) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("SPRAG_ID", context.id().to_string()),
        ("SPRAG_KIND", context.kind().to_string()),
        ("SPRAG_QUEUE", context.queue().to_string()),
        ("SPRAG_FENCE", context.fence().to_string()),
        ("SPRAG_ATTEMPT", context.attempt().to_string()),
        ("SPRAG_CRASH", context.crash().to_string()),
    ];
    variables
        .extend(context.traceparent().map(|span: TraceParent| ("TRACEPARENT", span.to_string())));
    variables
}

/// MessagePack as JSON, if it can be said so.
fn readable(envelope: &Envelope) -> Vec<u8> {
    let bytes = || envelope.payload().to_vec();
    match envelope.codec() {
        Codec::MsgPack => payload::msgpack_as_json(envelope.payload())
            .map_or_else(bytes, |json| json.get().into()),
        Codec::Json | Codec::Raw => bytes(),
    }
}

/// A command that does not read its payload is no error.
async fn write(mut stdin: ChildStdin, payload: Vec<u8>) {
    if let Err(error) = stdin.write_all(&payload).await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        tracing::warn!(%error, "payload not given to the command");
    }
}

/// The start of what is printed, and whether there was more; all of it is read, so that nobody waits.
async fn read_start(mut pipe: impl AsyncRead + Unpin) -> (Vec<u8>, bool) {
    let (mut start, mut overflowed) = (Vec::new(), false);
    let mut buffer = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let room = MAX_STDOUT - start.len();
        start.extend_from_slice(&buffer[..count.min(room)]);
        overflowed |= count > room;
    }
    (start, overflowed)
}

/// The end of what is printed.
async fn read_end(mut pipe: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut end = VecDeque::new();
    let mut buffer = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        end.extend(&buffer[..count]);
        end.drain(..end.len().saturating_sub(MAX_STDERR));
    }
    end.into()
}

/// What a reader has, once its pipe is closed; nothing if something still holds it.
async fn in_time<T>(reader: &mut JoinHandle<T>) -> Option<T> {
    tokio::time::timeout(PIPES, reader).await.ok()?.ok()
}
