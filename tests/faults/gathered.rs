//! Group commit: enqueues of many callers in few calls, each with its own answer.

use crate::{
    rig::{Rig, queue},
    support::PATIENCE,
};
use futures_util::future::join_all;
use sprag::{Client, Enqueued, Job, OrJoin, StoreError, store::Setting};
use std::{collections::HashSet, future::IntoFuture, task::Poll, time::Duration};

#[derive(serde::Serialize, serde::Deserialize)]
struct Task(String);

impl Job for Task {
    const KIND: &'static str = "task";
    const QUEUE: &'static str = "q";
}

fn task(name: impl ToString) -> Task {
    Task(name.to_string())
}

/// A client through the proxy, with one job enqueued: script and connection are there.
async fn warm() -> (Rig, Client) {
    let rig = Rig::new().await;
    let client = Client::new(rig.store());
    assert_eq!(queue().as_str(), Task::QUEUE);
    client.enqueue(task("first")).id("first").await.expect("enqueued");
    (rig, client)
}

impl Rig {
    async fn waiting(&self) -> HashSet<String> {
        let ids: Vec<String> = self.on("LRANGE", "pending:4", &["0", "-1"]).await;
        let count = ids.len();
        let ids: HashSet<_> = ids.into_iter().collect();
        assert_eq!(ids.len(), count, "each is there once");
        ids
    }

    /// Until so many jobs are there.
    async fn until_waiting(&self, count: usize) {
        let all = async {
            while self.waiting().await.len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("in time");
    }
}

/// Polls it once: its job is on its way.
async fn begin(enqueue: impl IntoFuture<IntoFuture = Enqueuing>) -> Enqueuing {
    let mut future = enqueue.into_future();
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    future
}

type Enqueuing = futures_util::future::BoxFuture<'static, Result<Enqueued, StoreError>>;

#[tokio::test]
async fn who_is_alone_calls_at_once() {
    let (rig, client) = warm().await;
    for n in 1..=5 {
        client.enqueue(task(n)).await.expect("enqueued");
        assert_eq!(rig.proxy.seen("enqueue"), 1 + n);
    }
}

#[tokio::test]
async fn those_who_come_meanwhile_leave_together_and_each_is_told_his_own() {
    let (rig, client) = warm().await;
    rig.proxy.on("enqueue").hold_reply();
    let one = begin(client.enqueue(task("one"))).await;
    rig.proxy.wait_struck("enqueue", 1).await;
    let (fresh, again) =
        (client.enqueue(task("a")).id("a"), client.enqueue(task("first")).id("first"));
    let (other, keyed) =
        (client.enqueue(task("else")).id("first"), client.enqueue(task("k")).unique_key("k"));
    let (joins, late) = (
        client.enqueue(task("k2")).unique_key("k"),
        client.enqueue(task("late")).delay(Duration::from_secs(9)),
    );
    let mut begun = Vec::new();
    for enqueue in [fresh, again, other, keyed, joins, late] {
        begun.push(begin(enqueue).await);
    }
    let before = rig.proxy.seen("enqueue");
    rig.proxy.release();
    let told = join_all(begun).await;
    one.await.expect("enqueued");
    let is = |n: usize, existing| told[n].as_ref().is_ok_and(|told| told.existing == existing);
    assert!(is(0, false) && is(1, true) && is(3, false) && is(5, false), "{told:?}");
    assert!(matches!(told[2], Err(StoreError::IdConflict { .. })), "{told:?}");
    let holder = &told[3].as_ref().expect("enqueued").id;
    assert!(
        matches!(&told[4], Err(StoreError::Duplicate { existing_id, .. }) if existing_id == holder.as_str())
    );
    // Once with the usual keys, once with all.
    assert!(rig.proxy.seen("enqueue") - before <= 2, "they left together");
    assert_eq!(rig.waiting().await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_at_once_are_few_calls_and_all_are_there() {
    let (rig, client) = warm().await;
    let enqueued = join_all((0..5_000).map(|n| client.enqueue(task(n)).into_future())).await;
    let ids: HashSet<_> =
        enqueued.into_iter().map(|told| told.expect("enqueued").id.to_string()).collect();
    assert_eq!(ids.len(), 5_000);
    let waiting = rig.waiting().await;
    assert!(ids.is_subset(&waiting) && waiting.len() == 5_001);
    assert!(rig.proxy.seen("enqueue") < 500, "{} calls", rig.proxy.seen("enqueue"));
}

#[tokio::test]
async fn who_is_refused_for_want_of_room_is_told_and_no_other() {
    let (rig, client) = warm().await;
    let limit = Setting::Limit(Some(3));
    sprag::Store::set(&rig.direct(), &queue(), &[limit]).await.expect("set");
    let told = join_all((0..5).map(|n| client.enqueue(task(n)).into_future())).await;
    let refused = told.iter().filter(|told| matches!(told, Err(StoreError::Backpressure { .. })));
    assert_eq!((refused.count(), rig.waiting().await.len()), (3, 3), "{told:?}");
}

#[tokio::test]
async fn who_stops_to_wait_loses_only_the_answer() {
    let (rig, client) = warm().await;
    rig.proxy.on("enqueue").hold_request();
    // The one that called, and one that waits for the next call.
    let caller = begin(client.enqueue(task("caller")).id("caller")).await;
    rig.proxy.wait_struck("enqueue", 1).await;
    let follower = begin(client.enqueue(task("follower")).id("follower")).await;
    let stays = begin(client.enqueue(task("stays")).id("stays")).await;
    drop((caller, follower));
    rig.proxy.release();
    stays.await.expect("enqueued");
    rig.until_waiting(4).await;
    client.enqueue(task("next")).await.expect("enqueued");
}

#[tokio::test]
async fn who_is_not_polled_holds_up_nobody() {
    let (rig, client) = warm().await;
    let idle = begin(client.enqueue(task("idle"))).await;
    for n in 0..3 {
        let enqueued = client.enqueue(task(n)).into_future();
        tokio::time::timeout(PATIENCE, enqueued).await.expect("in time").expect("enqueued");
    }
    idle.await.expect("enqueued");
    assert_eq!(rig.waiting().await.len(), 5);
}

#[tokio::test]
async fn a_call_that_takes_long_does_not_keep_others_from_leaving() {
    let (rig, client) = warm().await;
    rig.proxy.on("enqueue").hold_reply();
    let slow = begin(client.enqueue(task("slow"))).await;
    rig.proxy.wait_struck("enqueue", 1).await;
    let others = [begin(client.enqueue(task("a"))).await, begin(client.enqueue(task("b"))).await];
    // They are at the server while the first has no answer yet.
    rig.until_waiting(4).await;
    rig.proxy.release();
    join_all(others).await.into_iter().for_each(|told| drop(told.expect("enqueued")));
    slow.await.expect("enqueued");
}

#[tokio::test]
async fn a_lost_reply_is_asked_for_again_for_all_who_wait() {
    let (rig, client) = warm().await;
    rig.proxy.on("enqueue").times(2).reset_reply();
    let told = join_all((0..200).map(|n| client.enqueue(task(n)).into_future())).await;
    assert!(told.iter().all(|told| told.as_ref().is_ok_and(|told| !told.existing)), "{told:?}");
    assert_eq!(rig.waiting().await.len(), 201);
}

#[tokio::test]
async fn if_redis_stays_away_each_is_told_his_own_id() {
    let rig = Rig::new().await;
    let client = Client::new(rig.hasty_store());
    rig.proxy.refuse(true).await;
    let ids: Vec<_> = (0..5).map(|n| format!("job-{n}")).collect();
    let told = join_all(ids.iter().map(|id| client.enqueue(task(id)).id(id).into_future())).await;
    for (id, told) in ids.iter().zip(told) {
        let error = told.or_join().expect_err("nobody is there");
        assert!(
            matches!(error, StoreError::Unavailable(_)) && error.wrote_nothing(),
            "{id}: {error}"
        );
    }
    rig.proxy.refuse(false).await;
    // The back-off after the outage may turn the first away.
    let again = async {
        while client.enqueue(task("after")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("in time");
}

#[tokio::test]
async fn if_the_answer_is_lost_each_is_told_his_own_id() {
    let rig = Rig::new().await;
    let client = Client::new(rig.hasty_store());
    client.enqueue(task("first")).await.expect("the script is known");
    rig.proxy.on("enqueue").times(u64::MAX).drop_reply();
    let ids: Vec<_> = (0..5).map(|n| format!("job-{n}")).collect();
    let told = join_all(ids.iter().map(|id| client.enqueue(task(id)).id(id).into_future())).await;
    for (id, told) in ids.iter().zip(told) {
        let error = told.or_join().expect_err("no answer");
        assert!(matches!(error, StoreError::Unavailable(_)) && !error.wrote_nothing(), "{error}");
        assert!(
            error.to_string().ends_with(&format!("job {id} may have been enqueued")),
            "{error}"
        );
    }
}

/// A client may serve several runtimes, of which one ends: what it was to call for others they call.
#[test]
fn a_runtime_that_ends_leaves_the_others_what_was_not_sent() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().expect("a runtime")
    };
    let (mortal, lasting) = (runtime(), runtime());
    let (rig, client) = lasting.block_on(warm());
    rig.proxy.on("enqueue").hold_request();
    let doomed = client.clone();
    let first = mortal.spawn(async move { doomed.enqueue(task("doomed")).await });
    lasting.block_on(rig.proxy.wait_struck("enqueue", 1));
    let others: Vec<_> = (0..3)
        .map(|n| {
            let client = client.clone();
            lasting.spawn(async move { client.enqueue(task(n)).await })
        })
        .collect();
    drop(first);
    mortal.shutdown_timeout(Duration::from_secs(1));
    lasting.block_on(async {
        rig.proxy.release();
        for told in join_all(others).await {
            told.expect("no panic").expect("enqueued");
        }
        client.enqueue(task("next")).await.expect("enqueued");
        assert!(rig.waiting().await.len() >= 5);
    });
}

/// 64 MiB for all that waits and is in flight.
#[tokio::test]
async fn what_waits_is_bounded() {
    let (rig, client) = warm().await;
    rig.proxy.refuse(true).await;
    rig.proxy.cut_all();
    let large = || client.enqueue(Task("x".repeat(1_000_000)));
    let mut waiting = Vec::new();
    for _ in 0..100 {
        waiting.push(begin(large()).await);
    }
    // Who gave up before there was room for his job has not enqueued it.
    drop(waiting.split_off(80));
    rig.proxy.refuse(false).await;
    join_all(waiting).await.into_iter().for_each(|told| drop(told.expect("enqueued")));
    assert_eq!(rig.waiting().await.len(), 81);
}
