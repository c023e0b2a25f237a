//! Every way in which a server fails a call, one row each: which error it is, whether the call is
//! repeated, whether the connection is used again, and what the text tells to do.
//!
//! The rows are those of what redis-rs makes of each fault. What a stub cannot play, drills and the
//! other modules do with real servers: refused connections, DNS, maxclients, no master among sentinels.

use crate::{
    rig::queue,
    stub::{Reply, Stub},
};
use Becomes::{Backend, Unavailable};
use Connection::{Kept, ThrownAway};
use sprag::{Codec, Envelope, Kind, RedisStore, Store, StoreError};
use std::time::Duration;

const PASSWORD: &str = "secret-of-the-url";
const PAYLOAD: &str = "secret-of-the-payload";
/// So long a call is repeated, if it is. A third of it, but at least a second, is waited for an answer.
const BUDGET: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Becomes {
    /// Repeated within the budget.
    Unavailable,
    /// Told at once.
    Backend,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Connection {
    Kept,
    ThrownAway,
}

struct Row {
    fault: &'static str,
    played: Reply,
    becomes: Becomes,
    connection: Connection,
    /// What the text says besides the server's address.
    says: &'static str,
}

const fn row(
    fault: &'static str,
    played: Reply,
    becomes: Becomes,
    connection: Connection,
    says: &'static str,
) -> Row {
    Row { fault, played, becomes, connection, says }
}

const fn error(line: &'static str) -> Reply {
    Reply::Bytes(line)
}

/// What a script call is answered with.
const SCRIPTS: [Row; 27] = [
    row("closed before the reply", Reply::Cut(""), Unavailable, ThrownAway, ""),
    row("reset before the reply", Reply::Reset(""), Unavailable, ThrownAway, ""),
    row("FIN in mid-reply", Reply::Cut("$9\r\n1 PEN"), Unavailable, ThrownAway, ""),
    row("RST in mid-reply", Reply::Reset("$9\r\n1 PEN"), Unavailable, ThrownAway, ""),
    row("garbage", error("HTTP/1.1 400 Bad\r\n\r\n"), Unavailable, ThrownAway, ""),
    row("no reply", Reply::Silence, Unavailable, ThrownAway, "no answer in time"),
    row("loading", error("-LOADING Redis is loading\r\n"), Unavailable, Kept, "is loading"),
    row("busy", error("-BUSY Redis is busy\r\n"), Unavailable, Kept, "SCRIPT KILL"),
    row("replica", error("-READONLY a replica\r\n"), Unavailable, ThrownAway, "redis+sentinel://"),
    row("replica cut off", error("-MASTERDOWN Link is down\r\n"), Unavailable, Kept, "is down"),
    row("slot unserved", error("-CLUSTERDOWN not served\r\n"), Unavailable, Kept, "not served"),
    row("slot elsewhere", error("-MOVED 1 h:1\r\n"), Unavailable, Kept, "redis+cluster://"),
    row("slot moving", error("-ASK 1 h:1\r\n"), Unavailable, Kept, "redis+cluster://"),
    row("slot half moved", error("-TRYAGAIN rehashing\r\n"), Unavailable, Kept, "rehashing"),
    row("memory full", error("-OOM used memory\r\n"), Unavailable, Kept, "raise maxmemory"),
    row("disk full", error("-MISCONF unable to persist\r\n"), Unavailable, Kept, "to persist"),
    row("no replica", error("-NOREPLICAS few\r\n"), Unavailable, ThrownAway, "min-replicas"),
    row("demoted", error("-UNBLOCKED role changed\r\n"), Unavailable, ThrownAway, "role changed"),
    row("script lost", error("-NOSCRIPT No matching\r\n"), Backend, Kept, "NOSCRIPT"),
    row("two slots", error("-CROSSSLOT Keys in request\r\n"), Backend, Kept, "CROSSSLOT"),
    row("key of another slot", error("-ERR a non local key\r\n"), Backend, Kept, "non local key"),
    row("login wanted", error("-NOAUTH wanted\r\n"), Backend, Kept, "check user and password"),
    row("not allowed", error("-NOPERM no permissions\r\n"), Backend, Kept, "NOPERM"),
    row("not allowed inside", error("-ERR can't run this\r\n"), Backend, Kept, "can't run this"),
    row("wrong type", error("-WRONGTYPE kind of value\r\n"), Backend, Kept, "kind of value"),
    row("no such command", error("-ERR unknown command\r\n"), Backend, Kept, "unknown command"),
    row("never heard of", error("-NEVERHEARD of it\r\n"), Backend, Kept, "NEVERHEARD"),
];

const NONE_SET: &str = "-ERR AUTH called without any password configured for the default user\r\n";

/// What the password is answered with. There is no connection to keep.
const PASSWORDS: [Row; 5] = [
    row("wrong password", error("-WRONGPASS invalid\r\n"), Backend, ThrownAway, "WRONGPASS"),
    row("none set", error(NONE_SET), Backend, ThrownAway, "check user and password"),
    row("closed", Reply::Cut(""), Unavailable, ThrownAway, "maxclients"),
    row("reset", Reply::Reset(""), Unavailable, ThrownAway, "maxclients"),
    row("silence", Reply::Silence, Unavailable, ThrownAway, "no answer in time"),
];

/// What a script call is answered with by a node of a cluster.
const NODES: [Row; 6] = [
    row("in a circle", error("-MOVED 1 127.0.0.1:{port}\r\n"), Unavailable, Kept, "slot 1"),
    row("asked in a circle", error("-ASK 1 127.0.0.1:{port}\r\n"), Unavailable, Kept, "slot 1"),
    row("to a dead node", error("-MOVED 1 127.0.0.1:1\r\n"), Unavailable, Kept, "127.0.0.1:1: "),
    row("to nowhere", error("-MOVED 1 nowhere\r\n"), Unavailable, Kept, "MOVED"),
    row("slot half moved", error("-TRYAGAIN rehashing\r\n"), Unavailable, Kept, "rehashing"),
    row("slot unserved", error("-CLUSTERDOWN not served\r\n"), Unavailable, Kept, "not served"),
];

async fn enqueue(store: &RedisStore) -> StoreError {
    let kind = Kind::new("k").expect("kind");
    let job = Envelope::builder(queue(), kind).payload(PAYLOAD, Codec::Raw).build().expect("job");
    store.enqueue(&queue(), &[job]).await.expect_err("the server fails it")
}

fn store(url: &str, budget: Duration) -> RedisStore {
    RedisStore::builder(url).repeat_budget(budget).build().expect("store")
}

/// What is wrong with how the row went.
async fn check(row: &Row, stub: Stub, url: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut told = |ok: bool, what: &str| {
        if !ok {
            wrong.push(format!("{}: {what}", row.fault));
        }
    };
    // Repeated or not: a login that is refused is no call.
    let error = enqueue(&store(url, BUDGET)).await;
    let asked = stub.scripts();
    let is = match &error {
        StoreError::Unavailable(_) => Some(Unavailable),
        StoreError::Backend(_) => Some(Backend),
        _ => None,
    };
    told(is == Some(row.becomes), &format!("{error:?}"));
    let text = error.to_string();
    told(text.contains(row.says), &format!("does not say {:?}: {text}", row.says));
    told(text.contains("127.0.0.1:"), &format!("does not name the server: {text}"));
    told(text.matches("127.0.0.1:").count() < 3, &format!("names it again and again: {text}"));
    told(!text.contains('\n'), &format!("more than a line: {text:?}"));
    for secret in [PASSWORD, PAYLOAD] {
        told(!format!("{error:?}").contains(secret), "has a secret");
    }
    let waits = matches!(row.played, Reply::Silence);
    if asked > 0 && !waits {
        // By its name, after loading, and whole: three in all.
        let once = if row.fault == "script lost" { 3 } else { 1 };
        told((asked > once) == (row.becomes == Unavailable), &format!("asked {asked} times"));
        // A few at first, then fewer and fewer.
        told(asked <= 40, &format!("asked {asked} times in {BUDGET:?}"));
    }
    // Used again or not.
    let again = store(url, Duration::ZERO);
    let before = stub.connections();
    for _ in 0..if waits { 0 } else { 2 } {
        enqueue(&again).await;
    }
    let connections = stub.connections() - before;
    if asked > 0 && !waits {
        let expected = if row.connection == Kept { 1 } else { 2 };
        told(connections == expected, &format!("{connections} connections, not {expected}"));
    }
    wrong
}

#[tokio::test]
async fn every_answer_to_a_script_is_the_right_error() {
    let mut wrong = Vec::new();
    for row in &SCRIPTS {
        let stub = Stub::answering(row.played).await;
        let url = stub.url(PASSWORD);
        wrong.extend(check(row, stub, &url).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_answer_to_a_password_is_the_right_error() {
    let mut wrong = Vec::new();
    for row in &PASSWORDS {
        for protocol in ["", "?protocol=resp3"] {
            let stub = Stub::refusing(row.played).await;
            let url = stub.url(PASSWORD) + protocol;
            wrong.extend(check(row, stub, &url).await);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn every_redirection_of_a_cluster_ends_in_the_right_error() {
    let mut wrong = Vec::new();
    for row in &NODES {
        let stub = Stub::answering(row.played).await;
        let url = stub.url(PASSWORD).replace("redis://", "redis+cluster://");
        wrong.extend(check(row, stub, &url).await);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
