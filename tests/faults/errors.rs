//! Which error a call ends with, for every way in which a server can fail it.

use crate::{
    rig::queue,
    stub::{Reply, Stub},
    support::{Proxy, Server},
    world::{id, worker},
};
use sprag::{Codec, Envelope, Kind, RedisStore, Store, StoreError};
use std::time::{Duration, Instant};

const PASSWORD: &str = "secret-of-the-url";
const PAYLOAD: &str = "secret-of-the-payload";

fn store(url: &str) -> RedisStore {
    RedisStore::builder(url).repeat_budget(Duration::ZERO).build().expect("store")
}

async fn enqueue_at(url: &str) -> StoreError {
    let store = store(url);
    let kind = Kind::new("k").expect("kind");
    let job = Envelope::builder(queue(), kind).payload(PAYLOAD, Codec::Raw).build().expect("job");
    let error = store.enqueue(&queue(), &[job]).await.expect_err("the server fails it");
    for shown in [format!("{error}"), format!("{error:?}"), format!("{store:?}")] {
        assert!(!shown.contains(PASSWORD) && !shown.contains(PAYLOAD), "{shown}");
        assert!(!shown.contains('\n'), "one line: {shown:?}");
    }
    error
}

#[track_caller]
fn assert_unavailable(error: &StoreError, what: &str) {
    assert!(matches!(error, StoreError::Unavailable(why) if !why.is_empty()), "{what}: {error:?}");
}

#[track_caller]
fn assert_backend(error: &StoreError, what: &str) {
    assert!(matches!(error, StoreError::Backend(why) if !why.is_empty()), "{what}: {error:?}");
}

async fn enqueue_answered(reply: Reply) -> StoreError {
    let stub = Stub::answering(reply).await;
    enqueue_at(&stub.url(PASSWORD)).await
}

#[tokio::test]
async fn a_server_that_cannot_serve_now_is_unavailable() {
    for line in [
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
        "-CLUSTERDOWN Hash slot not served\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-MOVED 15891 127.0.0.1:7904\r\n",
        "-ASK 15891 127.0.0.1:7904\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n",
        "-MISCONF Redis is configured to save RDB snapshots, but it's unable to persist\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-UNBLOCKED force unblock from blocking operation, instance state changed\r\n",
    ] {
        let error = enqueue_answered(Reply::Bytes(line)).await;
        assert_unavailable(&error, line);
        let said = line.trim_end().split_once(' ').expect("a code and words").1;
        assert!(error.to_string().contains(said), "{line}: {error}");
    }
}

#[tokio::test]
async fn a_cluster_that_is_not_spoken_to_as_one_is_named() {
    for line in ["-MOVED 15891 127.0.0.1:7904\r\n", "-ASK 15891 127.0.0.1:7904\r\n"] {
        let error = enqueue_answered(Reply::Bytes(line)).await;
        assert!(error.to_string().contains("redis+cluster://"), "{error}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_unavailable() {
    for reply in [
        Reply::Cut(""),
        Reply::Reset(""),
        Reply::Cut("$9\r\n1 PEN"),
        Reply::Reset("$9\r\n1 PEN"),
        Reply::Bytes("HTTP/1.1 400 Bad Request\r\n\r\n"),
        Reply::Cut("\0\u{1}\u{2}"),
    ] {
        assert_unavailable(&enqueue_answered(reply).await, &format!("{reply:?}"));
    }
}

#[tokio::test]
async fn a_server_that_refuses_connections_is_unavailable() {
    let stub = Stub::answering(Reply::Silence).await;
    let url = stub.url(PASSWORD);
    drop(stub);
    tokio::task::yield_now().await;
    assert_unavailable(&enqueue_at(&url).await, "refused");
}

#[tokio::test]
async fn a_server_that_never_answers_is_unavailable_in_time() {
    let started = Instant::now();
    let error = enqueue_answered(Reply::Silence).await;
    assert_unavailable(&error, "silence");
    assert!(error.to_string().contains("no answer in time"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[tokio::test]
async fn what_a_repeat_cannot_mend_is_backend() {
    for line in [
        "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
        "-NOAUTH Authentication required.\r\n",
        "-NOPERM this user has no permissions to access one of the keys\r\n",
        "-ERR user_script:12: attempt to index a nil value\r\n",
        "-ERR unknown command 'EVALSHA'\r\n",
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        "-NEVERHEARD of it\r\n",
    ] {
        assert_backend(&enqueue_answered(Reply::Bytes(line)).await, line);
    }
}

#[tokio::test]
async fn an_answer_that_no_script_gives_is_backend() {
    for reply in [
        "+WHATEVER\r\n",
        "+OK\r\n",
        ":42\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*2\r\n:1\r\n:2\r\n",
        "*1\r\n*1\r\n*0\r\n",
        "$0\r\n\r\n",
        "$9\r\n1 UNKNOWN\r\n",
        "$9\r\nx PENDING\r\n",
        "$11\r\n999 PENDING\r\n",
        "$9\r\n0 PENDING\r\n",
    ] {
        assert_backend(&enqueue_answered(Reply::Bytes(reply)).await, reply);
    }
}

#[tokio::test]
async fn a_claim_answered_in_a_shape_that_no_script_gives_is_backend() {
    for reply in [
        "+WHATEVER\r\n",
        ":42\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*1\r\n$1\r\n5\r\n",
        "*4\r\n$1\r\nx\r\n:1\r\n:0\r\n*0\r\n",
        "*5\r\n$1\r\n5\r\n:1\r\n:0\r\n*0\r\n$1\r\na\r\n",
        "*6\r\n$1\r\n5\r\n:1\r\n:0\r\n*0\r\n$1\r\na\r\n$-1\r\n",
    ] {
        let stub = Stub::answering(Reply::Bytes(reply)).await;
        let store = store(&stub.url(PASSWORD));
        let claim = store.claim(&queue(), &worker(), 1, Duration::from_secs(1)).await;
        assert_backend(&claim.expect_err(reply), reply);
    }
}

#[tokio::test]
async fn a_show_answered_with_an_unknown_state_is_backend() {
    for reply in [
        "+WHATEVER\r\n",
        "*1\r\n+PENDING\r\n",
        "*8\r\n+LOST\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n",
    ] {
        let stub = Stub::answering(Reply::Bytes(reply)).await;
        let show = store(&stub.url(PASSWORD)).show(&queue(), &id("a")).await;
        assert_backend(&show.expect_err(reply), reply);
    }
}

#[tokio::test]
async fn a_wrong_password_is_backend_for_every_call_and_not_shown() {
    for reply in [
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        "-ERR Client sent AUTH, but no password is set\r\n",
    ] {
        let stub = Stub::refusing(Reply::Bytes(reply)).await;
        let store = store(&stub.url(PASSWORD));
        // The second call meets a closed gate: it is told the same.
        for call in ["the first", "the second"] {
            let error = store.queue(&queue()).await.expect_err("no way in");
            assert_backend(&error, call);
            assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_invalid_and_not_repeated() {
    for url in [
        format!("http://user:{PASSWORD}@127.0.0.1"),
        format!("redis://user:{PASSWORD}@[::1"),
        format!("redis://user:{PASSWORD}@host/database"),
        PASSWORD.to_owned(),
    ] {
        let error = RedisStore::builder(&url).build().expect_err("no such server");
        assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
        assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Greet;

impl sprag::Job for Greet {
    const KIND: &'static str = "greet";
}

#[tokio::test]
async fn an_enqueue_names_its_job_if_that_may_have_been_done_and_else_says_that_it_was_not() {
    let server = Server::start().await;
    let proxy = Proxy::in_front_of(&server).await;
    let hasty = RedisStore::builder(proxy.url()).repeat_budget(Duration::ZERO).build();
    let client = sprag::Client::new(hasty.expect("a store"));
    client.enqueue(Greet).id("first").await.expect("the script is known");
    let error = async |reply: &str| {
        proxy.on("enqueue").answer_error(reply);
        client.enqueue(Greet).id("mine").await.expect_err("refused")
    };
    for (reply, may) in [
        ("WRONGTYPE a key of another kind", true),
        ("OOM no memory left", true),
        ("NEVERHEARD of it", true),
        ("LOADING still", false),
        ("BUSY with another script", false),
        ("NOAUTH Authentication required.", false),
        ("MASTERDOWN no link", false),
    ] {
        let error = error(reply).await;
        let ends = if may { "; job mine may have been enqueued" } else { "; nothing was written" };
        assert!(error.to_string().ends_with(ends), "{error}");
        assert_eq!(error.wrote_nothing(), !may, "{error}");
    }
    proxy.on("enqueue").drop_reply();
    let lost = client.enqueue(Greet).id("mine").await.expect_err("no answer");
    assert!(lost.to_string().ends_with("; job mine may have been enqueued"), "{lost}");
}
