//! Sentinels tell that another server is the master; the old one has not heard of it.

use crate::{
    rig::queue,
    support::{
        PATIENCE, Server, key,
        resp::{Frames, words},
    },
};
use redis::AsyncCommands;
use sprag::{Codec, Envelope, JobId, Kind, RedisStore, Store, StoreError};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncWriteExt, split},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// A sentinel that names this server's port as that of the master `m`, and tells of the switch.
struct Sentinel {
    port: u16,
    says: watch::Sender<u16>,
    accepting: JoinHandle<()>,
}

impl Sentinel {
    async fn naming(master: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let (says, said) = watch::channel(master);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(serve(client, said.clone(), master));
            }
        });
        Self { port, says, accepting }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn bulks(words: &[&str]) -> String {
    let all: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{all}", words.len())
}

async fn serve(
    client: TcpStream,
    mut says: watch::Receiver<u16>,
    first: u16,
) -> std::io::Result<()> {
    let (read, mut write) = split(client);
    let mut requests = Frames::new(read);
    let mut listens = false;
    loop {
        tokio::select! {
            Ok(()) = says.changed(), if listens => {
                let to = *says.borrow_and_update();
                let said = format!("m 127.0.0.1 {first} 127.0.0.1 {to}");
                write.write_all(bulks(&["message", "+switch-master", &said]).as_bytes()).await?;
            }
            request = requests.next() => {
                let Some(request) = request? else { return Ok(()) };
                let name = words(&request)?[0].to_ascii_lowercase();
                let port = says.borrow().to_string();
                let reply = match &*name {
                    b"role" => format!("*2\r\n$8\r\nsentinel\r\n{}", bulks(&["m"])),
                    b"sentinel" => bulks(&["127.0.0.1", &port]),
                    b"subscribe" => {
                        listens = true;
                        says.mark_unchanged();
                        "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned()
                    }
                    _ => "+OK\r\n".to_owned(),
                };
                write.write_all(reply.as_bytes()).await?;
            }
        }
    }
}

fn job(id: usize) -> Envelope {
    let kind = Kind::new("kind").expect("a kind");
    let job = Envelope::builder(queue(), kind).id(JobId::new(format!("job-{id}")).expect("an id"));
    job.payload(b"1".to_vec(), Codec::Json).build().expect("a job")
}

/// How many jobs the server has.
async fn has(server: &Server) -> usize {
    server.connection().await.hlen(key(&queue(), "jobs")).await.expect("HLEN")
}

#[tokio::test]
async fn an_old_master_is_left_at_the_sentinels_word_also_if_one_of_them_has_not_heard() {
    let (old, new) = (Server::start_tcp().await, Server::start_tcp().await);
    let deaf = Sentinel::naming(old.port()).await;
    let hears = Sentinel::naming(old.port()).await;
    let url = format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{}/m", deaf.port, hears.port);
    let store = RedisStore::builder(url).build().expect("a store");
    let enqueue = async |id| {
        let answer = store.enqueue(&queue(), &[job(id)]).await.expect("answered");
        assert!(answer[0].is_ok(), "{answer:?}");
    };
    enqueue(0).await;
    assert_eq!((has(&old).await, has(&new).await), (1, 0));
    hears.says.send_replace(new.port());
    let (started, mut sent) = (Instant::now(), 1);
    while has(&new).await == 0 {
        assert!(started.elapsed() < PATIENCE, "it stays with the old master");
        enqueue(sent).await;
        sent += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // There it stays: what the deaf one says is not asked for while all is well.
    let before = has(&old).await;
    for id in sent..sent + 20 {
        enqueue(id).await;
    }
    assert_eq!((has(&old).await, has(&new).await), (before, sent + 20 - before));
}

/// A sentinel that has not heard of a change names a server that is a replica by now.
#[tokio::test]
async fn a_replica_that_a_sentinel_names_as_the_master_is_not_used() {
    let (master, replica) = (Server::start_tcp().await, Server::start_tcp().await);
    let mut follow = redis::cmd("REPLICAOF");
    follow.arg("127.0.0.1").arg(master.port());
    follow.query_async::<()>(&mut replica.connection().await).await.expect("it follows");
    let (stale, right) =
        (Sentinel::naming(replica.port()).await, Sentinel::naming(master.port()).await);
    let store = |url: String| {
        RedisStore::builder(url).repeat_budget(Duration::ZERO).build().expect("a store")
    };
    let both = format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{}/m", stale.port, right.port);
    let answer = store(both).enqueue(&queue(), &[job(0)]).await.expect("at the master");
    assert!(answer[0].is_ok(), "{answer:?}");
    let alone = store(format!("redis+sentinel://127.0.0.1:{}/m", stale.port));
    let error = alone.enqueue(&queue(), &[job(1)]).await.expect_err("a replica");
    let text = error.to_string();
    assert!(matches!(error, StoreError::Unavailable(_)) && error.wrote_nothing(), "{error}");
    assert!(text.contains("is a replica, though a sentinel names it as the master"), "{text}");
}
