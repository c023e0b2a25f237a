//! Who tries to connect, and how often.

use crate::support::{PATIENCE, Server};
use redis::aio::MultiplexedConnection;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};

/// Stands where a server was that is dead now: takes connections, closes them at the first word, and
/// counts. Sentinels, who knock ten times a second, do not count.
pub(crate) struct Tomb {
    knocks: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Tomb {
    pub(crate) async fn at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port of the dead");
        let knocks = Arc::new(AtomicU64::new(0));
        let counted = knocks.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stranger, _)) = listener.accept().await {
                let counted = counted.clone();
                tokio::spawn(async move {
                    if !is_sentinel(stranger).await {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self { knocks, accepting }
    }

    /// The port is free again.
    pub(crate) async fn leave(mut self) -> u64 {
        self.accepting.abort();
        // It was called off: that is its end.
        let _ = (&mut self.accepting).await;
        self.knocks()
    }

    pub(crate) fn knocks(&self) -> u64 {
        self.knocks.load(Ordering::Relaxed)
    }
}

/// They give their name first: `CLIENT SETNAME sentinel-…`.
async fn is_sentinel(mut stranger: TcpStream) -> bool {
    let mut word = [0; 128];
    let read = timeout(PATIENCE, stranger.read(&mut word)).await;
    let read = read.map_or(0, |read| read.unwrap_or(0));
    word[..read].windows(9).any(|part| part == b"sentinel-")
}

impl Drop for Tomb {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Counts the connections that servers accept, or send away. Its own are made before it counts.
pub(crate) struct Doors(Vec<(MultiplexedConnection, u64)>);

impl Doors {
    pub(crate) async fn of(servers: impl IntoIterator<Item = &Server>) -> Self {
        let mut doors = Vec::new();
        for server in servers {
            let mut connection = server.connection().await;
            let received = received(&mut connection).await.expect("it runs");
            doors.push((connection, received));
        }
        Self(doors)
    }

    /// Connections since then, over all servers that can still tell.
    pub(crate) async fn passed(&self) -> u64 {
        let mut passed = 0;
        for (connection, before) in &self.0 {
            passed += received(&mut connection.clone()).await.map_or(0, |now| now - before);
        }
        passed
    }
}

async fn received(connection: &mut MultiplexedConnection) -> Option<u64> {
    let stats = redis::cmd("INFO").arg("stats").query_async::<redis::InfoDict>(connection).await;
    let stats = stats.ok()?;
    // Those for whom there was no room are counted apart.
    let received: u64 = stats.get("total_connections_received")?;
    Some(received + stats.get::<u64>("rejected_connections")?)
}
