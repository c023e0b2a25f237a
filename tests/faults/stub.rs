//! A server that speaks RESP and answers scripts as a test wants it: by the book, or not.

use crate::support::resp::{Frames, words};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncWriteExt, split},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What a script call, or the password, is answered with. `{port}` stands for the stub's own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reply {
    /// These bytes.
    Bytes(&'static str),
    /// These bytes, then the end.
    Cut(&'static str),
    /// These bytes, then a reset.
    Reset(&'static str),
    /// Nothing.
    Silence,
}

/// Gone with its handle, and its connections with it.
pub(crate) struct Stub {
    pub(crate) port: u16,
    seen: Arc<Seen>,
    accepting: JoinHandle<()>,
}

/// What came so far.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicU64,
    scripts: AtomicU64,
}

impl Stub {
    /// Connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Script calls so far, by name or whole.
    pub(crate) fn scripts(&self) -> u64 {
        self.seen.scripts.load(Ordering::Relaxed)
    }

    pub(crate) async fn answering(script: Reply) -> Self {
        Self::start(script, Reply::Bytes("+OK\r\n")).await
    }

    /// Answers the password with this, and every command as a server without user would.
    pub(crate) async fn refusing(password: Reply) -> Self {
        Self::start(Reply::Bytes("-NOAUTH Authentication required.\r\n"), password).await
    }

    async fn start(script: Reply, password: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let (replies, seen) = (Arc::new((script, password)), Arc::new(Seen::default()));
        let counts = seen.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (replies, seen) = (replies.clone(), counts.clone());
                seen.connections.fetch_add(1, Ordering::Relaxed);
                connections
                    .spawn(async move { serve(client, port, &replies.0, &replies.1, &seen).await });
            }
        });
        Self { port, seen, accepting }
    }

    pub(crate) fn url(&self, password: &str) -> String {
        format!("redis://user:{password}@127.0.0.1:{}", self.port)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    client: TcpStream,
    port: u16,
    script: &Reply,
    password: &Reply,
    seen: &Seen,
) -> std::io::Result<()> {
    let (read, mut write) = split(client);
    let mut requests = Frames::new(read);
    let filled = |bytes: &str| bytes.replace("{port}", &port.to_string()).into_bytes();
    while let Some(request) = requests.next().await? {
        let command = words(&request)?[0].to_ascii_lowercase();
        let reply = match &*command {
            b"evalsha" | b"eval" => {
                seen.scripts.fetch_add(1, Ordering::Relaxed);
                *script
            }
            b"auth" | b"hello" => *password,
            b"script" => Reply::Bytes("$40\r\n0000000000000000000000000000000000000000\r\n"),
            // A cluster of its own.
            b"cluster" => {
                Reply::Bytes("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
            }
            _ => Reply::Bytes("+OK\r\n"),
        };
        match reply {
            Reply::Bytes(bytes) => write.write_all(&filled(bytes)).await?,
            Reply::Cut(bytes) => {
                write.write_all(&filled(bytes)).await?;
                return write.shutdown().await;
            }
            Reply::Reset(bytes) => {
                write.write_all(&filled(bytes)).await?;
                // The bytes get there first.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let client = requests.into_inner().unsplit(write);
                return client.set_zero_linger();
            }
            Reply::Silence => {}
        }
    }
    Ok(())
}
