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

/// What a script call, or the password, is answered with.
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
    port: u16,
    accepting: JoinHandle<()>,
    counts: Arc<Counts>,
}

/// What came.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) scripts: AtomicU64,
}

impl Stub {
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
        let replies = Arc::new((script, password));
        let counts = Arc::<Counts>::default();
        let counted = counts.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                counted.connections.fetch_add(1, Ordering::Relaxed);
                let (replies, counted) = (replies.clone(), counted.clone());
                connections
                    .spawn(async move { serve(client, &replies.0, &replies.1, &counted).await });
            }
        });
        Self { port, accepting, counts }
    }

    /// Connections, and calls of scripts.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let Counts { connections, scripts } = &*self.counts;
        (connections.load(Ordering::Relaxed), scripts.load(Ordering::Relaxed))
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
    script: &Reply,
    password: &Reply,
    counts: &Counts,
) -> std::io::Result<()> {
    let (read, mut write) = split(client);
    let mut requests = Frames::new(read);
    while let Some(request) = requests.next().await? {
        let command = words(&request)?[0].to_ascii_lowercase();
        let reply = match &*command {
            b"evalsha" | b"eval" => {
                counts.scripts.fetch_add(1, Ordering::Relaxed);
                *script
            }
            b"auth" => *password,
            b"script" => Reply::Bytes("$40\r\n0000000000000000000000000000000000000000\r\n"),
            _ => Reply::Bytes("+OK\r\n"),
        };
        match reply {
            Reply::Bytes(bytes) => write.write_all(bytes.as_bytes()).await?,
            Reply::Cut(bytes) => {
                write.write_all(bytes.as_bytes()).await?;
                return write.shutdown().await;
            }
            Reply::Reset(bytes) => {
                write.write_all(bytes.as_bytes()).await?;
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
