//! A command in a process group of its own. However this value ends, nothing of the group is left.

use crate::payload;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use sprag::{Codec, Context, Envelope, TraceParent, worker::BoxError};
use std::{
    collections::VecDeque,
    io,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
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
/// So often it is looked whether a group that was told to end has ended.
const LOOK: Duration = Duration::from_millis(20);

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
    stdout: (JoinHandle<()>, Read),
    stderr: (JoinHandle<()>, Read),
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
        let (out, err) = (Read::default(), Read::default());
        Ok(Self {
            group,
            child,
            stdin: tokio::spawn(write(stdin, payload)),
            stdout: (tokio::spawn(read_start(stdout, out.clone())), out),
            stderr: (tokio::spawn(read_end(stderr, err.clone())), err),
        })
    }

    /// Waits for the shell's end. Cancel-safe: it may be called again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// What it said, after its end. What it has left running would be nobody's, and is killed.
    pub(super) async fn collect(mut self, status: ExitStatus) -> Ended {
        self.group.kill();
        let (out, err) = (&mut self.stdout, &mut self.stderr);
        let (out, err) = tokio::join!(in_time(&mut out.0, &out.1), in_time(&mut err.0, &err.1));
        Ended {
            status,
            stdout: out.kept.into(),
            stdout_overflowed: out.overflowed,
            stderr_end: err.kept.into(),
        }
    }

    /// SIGTERM to the group, and SIGKILL to what is left of it after so long. Not the shell alone is
    /// waited for: what it ran may have to clean up.
    pub(super) async fn stop(&mut self, kill_after: Duration) -> io::Result<ExitStatus> {
        self.group.signal(Signal::TERM);
        let empty = async {
            let status = self.child.wait().await;
            while self.group.is_there() {
                tokio::time::sleep(LOOK).await;
            }
            status
        };
        if let Ok(status) = tokio::time::timeout(kill_after, empty).await {
            return status;
        }
        self.group.kill();
        self.child.wait().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.kill();
        // They end with the group; should something hold the pipes, not for long.
        self.stdin.abort();
        self.stdout.0.abort();
        self.stderr.0.abort();
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

    fn is_there(&self) -> bool {
        self.0.is_some_and(|group| test_kill_process_group(group).is_ok())
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

/// What has been read of a pipe so far.
type Read = Arc<Mutex<Text>>;

#[derive(Default)]
struct Text {
    kept: VecDeque<u8>,
    overflowed: bool,
}

/// Reads the start of what is printed; all of it, so that nobody waits.
async fn read_start(mut pipe: impl AsyncRead + Unpin, read: Read) {
    let mut buffer = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut text = lock(&read);
        let room = MAX_STDOUT - text.kept.len();
        text.kept.extend(&buffer[..count.min(room)]);
        text.overflowed |= count > room;
    }
}

/// Reads the end of what is printed.
async fn read_end(mut pipe: impl AsyncRead + Unpin, read: Read) {
    let mut buffer = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut text = lock(&read);
        text.kept.extend(&buffer[..count]);
        let surplus = text.kept.len().saturating_sub(MAX_STDERR);
        text.kept.drain(..surplus);
    }
}

fn lock(read: &Read) -> std::sync::MutexGuard<'_, Text> {
    // Bytes: a panic leaves none half-done.
    read.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was read, once the pipe is closed, or as far as it came: something that left the group may
/// hold it for long.
async fn in_time(reader: &mut JoinHandle<()>, read: &Read) -> Text {
    let _ = tokio::time::timeout(PIPES, reader).await;
    std::mem::take(&mut *lock(read))
}
