//! The fault proxy and the test server do what the other tests rely on.

mod support;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, RedisResult, Script};
use std::time::{Duration, Instant};
use support::resp::{frame_len, words};
use support::{ANY_SCRIPT, PATIENCE, Proxy, Server};

const PROBE: &str = "-- probe: counts its calls\nreturn redis.call('INCR', KEYS[1])";

struct Bench {
    proxy: Proxy,
    server: Server,
    script: Script,
}

impl Bench {
    async fn new() -> Self {
        Self::with(Server::start().await).await
    }

    async fn with(server: Server) -> Self {
        let proxy = Proxy::in_front_of(&server).await;
        let script = Script::new(PROBE);
        let bench = Self { proxy, server, script };
        let mut client = bench.client().await;
        bench.script.load_async(&mut client).await.expect("the proxy is transparent");
        bench
    }

    async fn client(&self) -> MultiplexedConnection {
        self.client_with_timeout(PATIENCE).await.expect("the proxy accepts")
    }

    async fn client_with_timeout(&self, timeout: Duration) -> RedisResult<MultiplexedConnection> {
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(timeout));
        let client = redis::Client::open(self.proxy.url())?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    async fn probe(&self, client: &mut MultiplexedConnection) -> RedisResult<u64> {
        self.script.key("calls").invoke_async(client).await
    }

    /// What a new client gets, whose only call meets the fault.
    async fn failing_probe(&self) -> RedisError {
        let mut client = self.client().await;
        self.probe(&mut client).await.expect_err("the fault strikes")
    }

    async fn calls(&self) -> u64 {
        let mut direct = self.server.connection().await;
        let calls: Option<u64> =
            redis::cmd("GET").arg("calls").query_async(&mut direct).await.expect("a counter");
        calls.unwrap_or(0)
    }
}

#[tokio::test]
async fn without_a_fault_it_is_transparent_and_counts() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut pipeline = redis::pipe();
    pipeline.set("big", &bytes).ignore().get("big").hset("h", "f", "v").hgetall("h");
    type Answers = (Vec<u8>, u64, Vec<(String, String)>);
    let answers: Answers = pipeline.query_async(&mut client).await.expect("no fault");
    assert_eq!(answers, (bytes, 1, vec![("f".into(), "v".into())]));
    assert_eq!(bench.probe(&mut client).await.expect("no fault"), 1);
    assert_eq!((bench.proxy.accepted(), bench.proxy.seen("probe")), (2, 1));
    assert_eq!((bench.proxy.seen(ANY_SCRIPT), bench.proxy.seen("script load")), (1, 1));
}

#[tokio::test]
async fn a_dropped_reply_was_applied() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").drop_reply();
    let error = bench.failing_probe().await;
    assert!(error.is_connection_dropped(), "{error:?}");
    assert_eq!((bench.calls().await, bench.proxy.struck("probe")), (1, 1));
}

#[tokio::test]
async fn a_reset_reply_was_applied() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").reset_reply();
    let error = bench.failing_probe().await;
    assert!(error.to_string().contains("reset"), "{error:?}");
    assert_eq!(bench.calls().await, 1);
}

#[tokio::test]
async fn half_a_reply_was_applied() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").half_reply();
    let error = bench.failing_probe().await;
    assert_eq!(error.kind(), ErrorKind::Parse, "{error:?}");
    bench.proxy.on("probe").reset_half_reply();
    let error = bench.failing_probe().await;
    assert!(error.to_string().contains("reset"), "{error:?}");
    assert_eq!(bench.calls().await, 2);
}

#[tokio::test]
async fn closed_before_it_was_not_applied() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").close_before();
    bench.proxy.on("probe").reset_before();
    let error = bench.failing_probe().await;
    assert!(error.is_connection_dropped(), "{error:?}");
    let error = bench.failing_probe().await;
    assert!(error.to_string().contains("reset"), "{error:?}");
    assert_eq!(bench.calls().await, 0);
}

#[tokio::test]
async fn a_late_request_arrives_after_the_client_came_back() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").arrive_late();
    bench.failing_probe().await;
    assert_eq!(bench.calls().await, 0);
    let mut client = bench.client().await;
    assert_eq!(bench.probe(&mut client).await.expect("no fault"), 1);
    assert_eq!(bench.proxy.release_late().await, [":2\r\n"]);
    assert_eq!(bench.calls().await, 2);
    assert!(bench.proxy.release_late().await.is_empty(), "once");
}

#[tokio::test]
async fn a_delayed_reply_comes() {
    let bench = Bench::new().await;
    let delay = Duration::from_millis(50);
    bench.proxy.on("probe").delay_reply(delay);
    let mut client = bench.client().await;
    let before = Instant::now();
    assert_eq!(bench.probe(&mut client).await.expect("late, but there"), 1);
    assert!(before.elapsed() >= delay);
}

#[tokio::test]
async fn a_held_reply_was_applied_and_comes_when_released() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").hold_reply();
    let mut client = bench.client().await;
    let look = async {
        bench.proxy.wait_struck("probe", 1).await;
        let calls = bench.calls().await;
        bench.proxy.release();
        calls
    };
    let (answer, calls_meanwhile) = tokio::join!(bench.probe(&mut client), look);
    assert_eq!((answer.expect("released"), calls_meanwhile), (1, 1));
}

#[tokio::test]
async fn a_held_request_is_applied_when_released_even_without_its_client() {
    let bench = Bench::new().await;
    bench.proxy.on("probe").hold_request();
    let timeout = Duration::from_millis(50);
    let mut client = bench.client_with_timeout(timeout).await.expect("the proxy accepts");
    let error = bench.probe(&mut client).await.expect_err("held");
    assert!(error.is_timeout(), "{error:?}");
    drop(client);
    assert_eq!(bench.calls().await, 0);
    // Others overtake it meanwhile: theirs is the first call that the server sees.
    bench.proxy.on("probe").hold_reply();
    let mut client = bench.client().await;
    let release = async {
        bench.proxy.wait_struck("probe", 2).await;
        assert_eq!(bench.calls().await, 1);
        bench.proxy.release();
        while bench.calls().await < 2 {}
    };
    let (answer, ()) = tokio::join!(bench.probe(&mut client), release);
    assert_eq!(answer.expect("released"), 1);
}

#[tokio::test]
async fn a_server_error_is_answered_in_its_place_and_not_applied() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    for error in ["LOADING not yet", "-READONLY a replica", "BUSY a script", "OOM full"] {
        bench.proxy.on("probe").answer_error(error);
        let seen = bench.probe(&mut client).await.expect_err("the fault strikes");
        assert_eq!(seen.code(), error.trim_start_matches('-').split(' ').next());
    }
    assert_eq!(bench.calls().await, 0);

    // In the middle of a pipeline the answers keep their order.
    bench.proxy.on("get").answer_error("ERR injected");
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors().cmd("ECHO").arg(1).cmd("GET").arg("x").cmd("ECHO").arg(2);
    let answers: Vec<RedisResult<u64>> = pipeline.query_async(&mut client).await.expect("answers");
    assert!(matches!(answers[..], [Ok(1), Err(_), Ok(2)]), "{answers:?}");
}

#[tokio::test]
async fn a_lost_script_is_loaded_again_by_the_client() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    bench.proxy.on("probe").answer_error("NOSCRIPT gone");
    assert_eq!(bench.probe(&mut client).await.expect("loaded again"), 1);
    assert_eq!((bench.proxy.seen("script load"), bench.proxy.seen("probe")), (2, 2));
}

#[tokio::test]
async fn a_reply_in_single_bytes_is_the_same_reply() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    bench.proxy.on("echo").split();
    let text = "a\r\nb".repeat(500);
    let reply: String =
        redis::cmd("ECHO").arg(&text).query_async(&mut client).await.expect("slow, but whole");
    assert_eq!((reply, bench.proxy.struck("echo")), (text, 1));
}

#[tokio::test]
async fn a_fault_strikes_after_some_for_some_times_and_only_its_name() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    bench.proxy.on("probe").after(1).times(2).answer_error("ERR injected");
    bench.proxy.on("other").answer_error("ERR never");
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(bench.probe(&mut client).await.is_ok());
    }
    assert_eq!(answers, [true, false, false, true]);

    bench.proxy.name_script(bench.script.get_hash(), "other");
    assert!(bench.probe(&mut client).await.is_err(), "by the name that was given");
    bench.proxy.on(ANY_SCRIPT).answer_error("ERR injected");
    assert!(bench.probe(&mut client).await.is_err(), "by any name");
    bench.proxy.on("other").answer_error("ERR injected");
    bench.proxy.disarm();
    assert!(bench.probe(&mut client).await.is_ok(), "disarmed");
}

#[tokio::test]
async fn all_connections_can_be_cut() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    bench.proxy.cut_all();
    assert!(bench.probe(&mut client).await.is_err());
    let mut client = bench.client().await;
    assert_eq!(bench.probe(&mut client).await.expect("a new connection"), 1);
}

#[tokio::test]
async fn connections_are_refused_and_accepted_again() {
    let bench = Bench::new().await;
    let mut old = bench.client().await;
    for _ in 0..2 {
        bench.proxy.refuse(true).await;
        let error = bench.client_with_timeout(PATIENCE).await.expect_err("refused");
        assert!(error.is_connection_refusal(), "{error:?}");
        bench.probe(&mut old).await.expect("open ones stay");
        bench.proxy.refuse(false).await;
        let mut client = bench.client().await;
        bench.probe(&mut client).await.expect("accepted again");
    }
}

#[tokio::test]
async fn events_are_awaited() {
    let bench = Bench::new().await;
    let mut client = bench.client().await;
    let wait = async {
        bench.proxy.wait_accepted(2).await;
        bench.proxy.wait_seen("probe", 2).await;
        bench.proxy.seen("probe")
    };
    let calls = async {
        bench.probe(&mut client).await.expect("no fault");
        bench.probe(&mut client).await.expect("no fault");
    };
    assert_eq!(tokio::join!(wait, calls).0, 2);
}

#[tokio::test]
async fn pub_sub_passes_through() {
    let bench = Bench::new().await;
    let client = redis::Client::open(bench.proxy.url()).expect("a URL");
    let mut subscriber = client.get_async_pubsub().await.expect("the proxy accepts");
    subscriber.subscribe(&["a", "b"]).await.expect("subscribed");
    let mut direct = bench.server.connection().await;
    for channel in ["a", "b"] {
        let publish = redis::cmd("PUBLISH").arg(channel).arg("news").to_owned();
        let heard: u64 = publish.query_async(&mut direct).await.expect("published");
        assert_eq!(heard, 1);
        let message = futures_util::StreamExt::next(&mut subscriber.on_message()).await;
        assert_eq!(message.expect("a message").get_channel_name(), channel);
    }
}

#[tokio::test]
async fn a_client_notices_the_end_of_the_server() {
    let mut bench = Bench::with(Server::start_tcp().await).await;
    let mut client = bench.client().await;
    bench.server.kill();
    assert!(bench.probe(&mut client).await.is_err());
    bench.server.restart().await;
    let mut client = bench.client().await;
    assert_eq!(bench.probe(&mut client).await.expect("loaded again"), 1);
}

#[tokio::test]
async fn a_server_takes_arguments_and_keeps_its_place_over_a_restart() {
    let args = ["--appendonly", "yes", "--appendfsync", "always"];
    for mut server in [Server::with_args(&args).await, Server::tcp_with_args(&args).await] {
        let (url, mut direct) = (server.url(), server.connection().await);
        redis::cmd("SET").arg("k").arg(7).exec_async(&mut direct).await.expect("written");
        server.restart().await;
        assert_eq!(server.url(), url);
        let mut direct = server.connection().await;
        let value: u64 = redis::cmd("GET").arg("k").query_async(&mut direct).await.expect("kept");
        assert_eq!(value, 7);
    }
}

#[tokio::test]
async fn a_paused_server_answers_when_it_is_resumed() {
    let bench = Bench::new().await;
    let timeout = Duration::from_millis(50);
    let mut client = bench.client_with_timeout(timeout).await.expect("the proxy accepts");
    bench.server.pause();
    let error = bench.probe(&mut client).await.expect_err("nobody answers");
    assert!(error.is_timeout(), "{error:?}");
    bench.server.resume();
    let mut client = bench.client().await;
    assert_eq!(bench.probe(&mut client).await.expect("answered"), 2, "the first was worked off");
}

#[tokio::test]
async fn a_dropped_server_leaves_nothing() {
    let server = Server::start().await;
    let socket = server.url().replace("redis+unix://", "");
    assert!(std::fs::exists(&socket).expect("readable"));
    drop(server);
    let dir = std::path::Path::new(&socket).parent().expect("a directory");
    assert!(!dir.exists());
}

#[test]
fn a_frame_is_whole_at_its_last_byte_and_not_before() {
    let frames: [&[u8]; 8] = [
        b"+OK\r\n",
        b"$5\r\na\r\nbc\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*2\r\n:1\r\n*1\r\n$0\r\n\r\n",
        b"%1\r\n+a\r\n,1.5\r\n",
        b">2\r\n+a\r\n_\r\n",
        b"|1\r\n+a\r\n+b\r\n:7\r\n",
    ];
    for frame in frames {
        let mut stream = frame.to_vec();
        stream.extend_from_slice(b"+next\r\n");
        assert_eq!(frame_len(&stream).expect("valid"), Some(frame.len()));
        for len in 0..frame.len() {
            assert_eq!(frame_len(&frame[..len]).expect("valid so far"), None, "{len} bytes");
        }
    }
}

#[test]
fn a_command_is_cut_into_words() {
    let frame = b"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n*1\r\n";
    assert_eq!(words(frame).expect("valid"), [&b"ECHO"[..], b"\r\n*1"]);
}

#[test]
fn what_is_not_resp_is_an_error() {
    assert!(frame_len(b"PING\r\n").is_err());
    assert!(frame_len(b"$x\r\n").is_err());
    assert!(frame_len(b"\r\n").is_err());
    assert!(words(b"+OK\r\n").is_err());
}
