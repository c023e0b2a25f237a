//! What is published arrives, or there is a gap; and publishing never stands in anybody's way.

use crate::{
    case::Case,
    rig::{HOUR, LEASE, Rig, queue},
    support::{PATIENCE, Server},
    world::{World, claim, enqueue, held, id, job},
};
use redis::cmd;
use sprag::{
    RedisStore, State, Store, StoreError, WorkerId,
    store::{
        Archive, ArchiveReason, Change, Channel, Complete, Event, Events, Operation, Pace, Retry,
        Wish, WorkerInfo, WorkerState,
    },
};
use std::time::Duration;

async fn told(events: &mut Events) -> Event {
    let next = tokio::time::timeout(PATIENCE, events.next()).await.expect("something is told");
    next.expect("the subscription goes on")
}

async fn publish(rig: &Rig, channel: &str, message: &str) -> u64 {
    rig.run(cmd("PUBLISH").arg(channel).arg(message)).await
}

async fn subscriptions(rig: &Rig, channel: &str) -> u64 {
    let (_, count): (String, u64) = rig.run(cmd("PUBSUB").arg("NUMSUB").arg(channel)).await;
    count
}

async fn until_subscriptions(rig: &Rig, channel: &str, count: u64) {
    let started = std::time::Instant::now();
    while subscriptions(rig, channel).await != count {
        assert!(started.elapsed() < PATIENCE, "not in time");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn asked(wish: Wish) -> Event {
    Event::Asked { worker: WorkerId::new("w").expect("worker"), wish }
}

fn info(id: &str) -> WorkerInfo {
    WorkerInfo {
        id: id.to_owned(),
        queues: Vec::new(),
        host: "h".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        concurrency: 1,
        busy: 0,
        state: WorkerState::Running,
        jobs: Vec::new(),
        started_at: sprag::Timestamp::now(),
        seen_at: sprag::Timestamp::now(),
        gone: false,
    }
}

#[tokio::test]
async fn a_lost_connection_is_a_gap_and_then_it_goes_on() {
    let rig = Rig::new().await;
    let mut events = rig.direct().listen(Channel::Control).await.expect("listens");
    for _ in 0..3 {
        assert_eq!(publish(&rig, "sprag:control", "stop w").await, 1);
        assert_eq!(told(&mut events).await, asked(Wish::Stop));
        let killed: u64 = rig.run(cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub")).await;
        assert_eq!(killed, 1);
        assert_eq!(told(&mut events).await, Event::Gap);
        assert_eq!(publish(&rig, "sprag:control", "quiet w").await, 1, "subscribed by then");
        assert_eq!(told(&mut events).await, asked(Wish::Quiet));
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_a_gap() {
    let mut server = Server::start().await;
    let store = RedisStore::builder(server.url()).build().expect("store");
    let mut events = store.listen(Channel::Done).await.expect("listens");
    server.restart().await;
    assert_eq!(told(&mut events).await, Event::Gap);
    let mut ended = cmd("PUBLISH");
    ended.arg("sprag:done").arg("ended q cancelled a");
    let heard: u64 = ended.query_async(&mut server.connection().await).await.expect("PUBLISH");
    assert_eq!(heard, 1);
    assert!(matches!(told(&mut events).await, Event::Ended { state: Some(State::Cancelled), .. }));
}

/// Cut as soon as it is made: the next is made after a pause that grows.
#[tokio::test]
async fn a_subscription_that_is_cut_again_and_again_is_made_anew_ever_less_often() {
    let rig = Rig::new().await;
    let mut events = rig.direct().listen(Channel::Done).await.expect("listens");
    let (started, mut cut) = (std::time::Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(3) {
        cut += rig.run::<u64>(cmd("CLIENT").arg(&["KILL", "TYPE", "pubsub"])).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // 50 ms, twice as long each time, less up to a half: no more than eight in three seconds.
    assert!((3..=9).contains(&cut), "{cut}");
    assert_eq!(told(&mut events).await, Event::Gap);
    until_subscriptions(&rig, "sprag:done", 1).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_passed_over() {
    let rig = Rig::new().await;
    let mut events = rig.direct().listen(Channel::Control).await.expect("listens");
    for message in
        ["", "superseded", "superseded q x a", "ended q active a", "dance w", "stop \u{e9}"]
    {
        publish(&rig, "sprag:control", message).await;
    }
    rig.run::<u64>(cmd("PUBLISH").arg("sprag:control").arg(&[0xff_u8, 0xfe][..])).await;
    publish(&rig, "sprag:done", "stop other").await;
    publish(&rig, "other:control", "stop other").await;
    publish(&rig, "sprag:control", "stop w").await;
    assert_eq!(told(&mut events).await, asked(Wish::Stop));
}

#[tokio::test]
async fn a_dropped_listener_s_connection_ends() {
    let rig = Rig::new().await;
    let store = rig.direct();
    let (first, second) =
        (store.listen(Channel::Done).await.expect("listens"), store.listen(Channel::Done).await);
    assert_eq!(subscriptions(&rig, "sprag:done").await, 2);
    drop(first);
    until_subscriptions(&rig, "sprag:done", 1).await;
    // Also one that is dropped while its connection is lost.
    rig.run::<u64>(cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub")).await;
    drop(second);
    until_subscriptions(&rig, "sprag:done", 0).await;
}

#[tokio::test]
async fn a_flood_is_a_gap_and_not_a_full_memory() {
    let rig = Rig::new().await;
    let mut events = rig.direct().listen(Channel::Done).await.expect("listens");
    let ids: Vec<_> = (0..1_000).map(|i| format!("job-{i}")).collect();
    let message = format!("ended q archived {}", ids.join(" "));
    for _ in 0..10 {
        publish(&rig, "sprag:done", &message).await;
    }
    publish(&rig, "sprag:done", "ended q deleted last").await;
    let (mut gaps, mut ended) = (0, 0);
    loop {
        match told(&mut events).await {
            Event::Gap => gaps += 1,
            Event::Ended { state: None, .. } => break,
            Event::Ended { .. } => ended += 1,
            event => panic!("{event:?}"),
        }
        if gaps > 0 && ended == 4_096 {
            // The last one may have been among those that were missed.
            break;
        }
    }
    assert!(gaps > 0 || ended == 10_000, "{gaps} gaps, {ended} ended");
}

#[tokio::test]
async fn an_idle_listener_sends_nothing() {
    let rig = Rig::new().await;
    let _events = rig.direct().listen(Channel::Control).await.expect("listens");
    rig.run::<()>(cmd("CONFIG").arg("RESETSTAT")).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let stats: String = rig.run(cmd("INFO").arg("commandstats")).await;
    let sent: Vec<_> = stats.lines().filter(|line| line.starts_with("cmdstat_")).collect();
    assert!(sent.iter().all(|line| line.starts_with("cmdstat_config|resetstat:")), "{sent:?}");
}

/// A store of a user who may do everything but touch channels.
async fn without_channels(rig: &Rig) -> RedisStore {
    let rules = ["deaf", "reset", "on", "nopass", "~*", "+@all", "resetchannels"];
    rig.run::<()>(cmd("ACL").arg("SETUSER").arg(&rules)).await;
    let url = rig.server.url();
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}user=deaf&pass=any");
    let store = RedisStore::builder(url).virtual_clock().repeat_budget(Duration::ZERO);
    store.build().expect("store")
}

#[tokio::test]
async fn every_script_that_publishes_succeeds_without_permission_for_channels() {
    let rig = Rig::new().await;
    World::build(&rig, &rig.direct()).await;
    let store = without_channels(&rig).await;
    store.watch(&queue(), HOUR).await.expect("watches");
    // The world's own jobs in hand: by operate.
    for (operation, name) in [(Operation::Cancel, "plain"), (Operation::Archive, "tried")] {
        let outcomes = store.operate(&queue(), operation, &[id(name)]).await.expect("operate");
        assert_eq!(outcomes, [Ok(Change::Changed)]);
    }
    let jobs = ["a", "b", "c"].map(|name| job(name).priority(9).max_attempts(1));
    enqueue(&store, jobs).await;
    let claimed = claim(&store, 3).await;
    let done = Complete { held: held(&claimed[0]), result: None };
    assert_eq!(store.complete(&queue(), &[done]).await, Ok(vec![Ok(())]));
    let failed = Retry { held: held(&claimed[1]), delay: LEASE, error: "boom".into() };
    assert_eq!(store.retry(&queue(), &[failed]).await, Ok(vec![Ok(State::Archived)]));
    let reason = ArchiveReason::Discarded;
    let given_up = Archive { held: held(&claimed[2]), reason, error: None };
    assert_eq!(store.archive(&queue(), &[given_up]).await, Ok(vec![Ok(())]));
    rig.on::<u64>("HSET", "jobs", &["first", "nonsense"]).await;
    store.claim(&queue(), &crate::world::worker(), 10, LEASE).await.expect("claim");
    assert_eq!(store.show(&queue(), &id("first")).await.expect("shown").state, State::Archived);
    store.sweep(&queue(), Pace::Now).await.expect("sweep");
}

#[tokio::test]
async fn who_may_not_listen_is_told_so_and_can_work() {
    let rig = Rig::new().await;
    let store = without_channels(&rig).await;
    let refused = store.listen(Channel::Done).await.expect_err("refused");
    let told_why = matches!(&refused, StoreError::Backend(text) if text.contains("no permissions"));
    assert!(told_why, "{refused:?}");
    enqueue(&store, [job("a")]).await;
    store.beat(&info("w")).await.expect("a beat");
    let worker = WorkerId::new("w").expect("worker");
    store.ask(&worker, Wish::Stop).await.expect("asked all the same");
    assert_eq!(store.beat(&info("w")).await, Ok(Some(Wish::Stop)));
}

#[tokio::test]
async fn an_undecodable_job_met_by_a_claim_has_ended() {
    let rig = Rig::new().await;
    let store = rig.direct();
    Case::ClaimBroken.prepare(&rig, &store).await;
    let mut events = store.listen(Channel::Done).await.expect("listens");
    store.watch(&queue(), HOUR).await.expect("watches");
    claim(&store, 10).await;
    let (queue, state) = (queue(), Some(State::Archived));
    assert_eq!(told(&mut events).await, Event::Ended { queue, id: id("first"), state });
}

#[tokio::test]
async fn a_worker_that_is_forgotten_takes_what_it_was_asked_with_it() {
    let rig = Rig::new().await;
    let store = rig.direct();
    store.beat(&info("w")).await.expect("a beat");
    let worker = WorkerId::new("w").expect("worker");
    store.ask(&worker, Wish::Quiet).await.expect("asked");
    let fields = async || -> Vec<String> { rig.run(cmd("HKEYS").arg("sprag:workers")).await };
    assert_eq!(fields().await.len(), 2);
    let mut old = serde_json::to_value(info("w")).expect("JSON");
    old["seen_at"] = (sprag::Timestamp::now().as_millis() - 3_700_000).into();
    rig.run::<()>(cmd("HSET").arg("sprag:workers").arg("w").arg(old.to_string())).await;
    rig.run::<()>(cmd("HSET").arg("sprag:workers").arg("wish other").arg("stop")).await;
    assert!(matches!(store.ask(&worker, Wish::Stop).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.workers().await, Ok(Vec::new()));
    assert_eq!(fields().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_beat_is_two_round_trips_and_three_commands() {
    let rig = Rig::new().await;
    let store = rig.direct();
    store.beat(&info("w")).await.expect("a beat");
    rig.run::<()>(cmd("CONFIG").arg("RESETSTAT")).await;
    store.beat(&info("w")).await.expect("a beat");
    let stats: String = rig.run(cmd("INFO").arg("commandstats")).await;
    let mut sent: Vec<_> = stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split(',').next())
        .filter(|line| !line.starts_with("config"))
        .collect();
    sent.sort_unstable();
    assert_eq!(sent, ["hget:calls=1", "hset:calls=1", "time:calls=1"]);
}

#[tokio::test]
async fn a_silent_server_is_found_out_and_heard_anew() {
    let rig = Rig::new().await;
    let mut events = rig.direct().listen(Channel::Control).await.expect("listens");
    rig.server.pause();
    // Stopped, the clock goes on by itself when nothing is left to do: over the watchdog's pause.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(40)).await;
    tokio::time::resume();
    rig.server.resume();
    assert_eq!(told(&mut events).await, Event::Gap);
    publish(&rig, "sprag:control", "stop w").await;
    assert_eq!(told(&mut events).await, asked(Wish::Stop));
}
