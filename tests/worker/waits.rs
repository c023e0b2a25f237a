//! Waiting for a job's end, on both stores.

use crate::{
    bench::{HOUR, Task, ms},
    support::{PATIENCE, Server},
};
use redis::{FromRedisValue, aio::MultiplexedConnection};
use sprag::{
    Client, Enqueue, JobId, MemoryStore, QueueName, RedisStore, State, Store, WaitError, WorkerId,
    store::{Archive, ArchiveReason, Complete, EndingReason, Held, Operation, Retry, Setting},
};
use std::{
    future::IntoFuture,
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// Well below the time after which a wait looks for itself, told or not.
const SOON: Duration = Duration::from_secs(10);

/// A client of a store, and a worker that does what it is told.
struct Scene {
    client: Client,
    redis: Option<(Server, MultiplexedConnection)>,
}

impl Scene {
    fn memory() -> Self {
        Self { client: Client::new(MemoryStore::new()), redis: None }
    }

    async fn redis() -> Self {
        let server = Server::start().await;
        let store = RedisStore::builder(server.url()).build().expect("store");
        let redis = server.connection().await;
        Self { client: Client::new(store), redis: Some((server, redis)) }
    }

    async fn both() -> [Self; 2] {
        [Self::memory(), Self::redis().await]
    }

    fn store(&self) -> &dyn Store {
        &**self.client.store()
    }

    /// Runs a command past the library.
    async fn run<T: FromRedisValue>(&self, cmd: &mut redis::Cmd) -> T {
        let (_, redis) = self.redis.as_ref().expect("on Redis");
        cmd.query_async(&mut redis.clone()).await.expect("a command")
    }

    fn task(&self, name: &str) -> Enqueue {
        self.client.enqueue(Task(name.to_owned())).id(id(name))
    }

    async fn enqueue(&self, name: &str) {
        self.task(name).await.expect("admitted");
    }

    /// Takes the next job, which has this name.
    async fn claim(&self, name: &str) -> Held {
        let worker = WorkerId::new("w").expect("worker");
        let claim = self.store().claim(&queue(), &worker, 1, HOUR).await.expect("claim");
        let job = &claim.jobs[0];
        assert_eq!(job.id, id(name));
        Held { id: job.id.clone(), fence: job.fence }
    }

    async fn complete(&self, held: Held, result: Option<&'static str>) {
        let done = Complete { held, result: result.map(Into::into) };
        let outcomes = self.store().complete(&queue(), &[done]).await.expect("complete");
        assert_eq!(outcomes, [Ok(())]);
    }

    async fn operate(&self, operation: Operation, name: &str) {
        let outcomes = self.store().operate(&queue(), operation, &[id(name)]).await;
        outcomes.expect("operate").remove(0).expect("changed");
    }

    /// A wait that is sure to have looked when this returns.
    async fn waiting<R>(&self, name: &str) -> JoinHandle<Result<R, WaitError>>
    where
        R: serde::de::DeserializeOwned + Send + 'static,
    {
        // A look reads the job's fields; the call before it, that somebody waits, does not.
        let looks = self.sent("hget").await;
        let waiting = tokio::spawn(self.client.wait(&queue(), &id(name)).into_future());
        if self.redis.is_some() {
            until("it has looked", async || self.sent("hget").await > looks).await;
        }
        tokio::task::yield_now().await;
        waiting
    }

    async fn subscriptions(&self) -> u64 {
        let mut count = redis::cmd("PUBSUB");
        let (_, count): (String, u64) = self.run(count.arg("NUMSUB").arg("sprag:done")).await;
        count
    }

    /// How often the server has run a command so far, also within scripts.
    async fn sent(&self, command: &str) -> u64 {
        if self.redis.is_none() {
            return 0;
        }
        let stats: String = self.run(redis::cmd("INFO").arg("commandstats")).await;
        let start = format!("cmdstat_{command}:calls=");
        let line = stats.lines().find_map(|line| line.strip_prefix(&start));
        let calls = line.and_then(|line| line.split(',').next()).map(str::parse);
        calls.map_or(0, |calls| calls.expect("a number"))
    }

    /// Scripts that the server has run so far.
    async fn calls(&self) -> u64 {
        self.sent("evalsha").await
    }

    /// The numbers of the connections that listen.
    async fn listeners(&self) -> Vec<String> {
        let mut list = redis::cmd("CLIENT");
        let list: String = self.run(list.arg("LIST").arg("TYPE").arg("pubsub")).await;
        list.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }
}

fn id(name: &str) -> JobId {
    JobId::new(name).expect("id")
}

fn queue() -> QueueName {
    QueueName::new("default").expect("queue")
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < PATIENCE, "waited until {what}");
        tokio::time::sleep(ms(2)).await;
    }
}

/// What a wait came to, long before it would look for itself.
async fn soon<R>(waiting: JoinHandle<Result<R, WaitError>>) -> Result<R, WaitError> {
    tokio::time::timeout(SOON, waiting).await.expect("in time").expect("no panic")
}

#[tokio::test]
async fn a_result_is_given_whether_the_wait_begins_before_or_after_the_end() {
    for scene in Scene::both().await {
        scene.task("a").retention(HOUR).await.expect("admitted");
        let early = scene.waiting::<u64>("a").await;
        let held = scene.claim("a").await;
        let (during, ()) = tokio::join!(
            scene.client.wait::<u64>(&queue(), &id("a")).timeout(SOON),
            scene.complete(held, Some("7")),
        );
        assert_eq!((soon(early).await, during), (Ok(7), Ok(7)));
        assert_eq!(scene.client.wait::<u64>(&queue(), &id("a")).await, Ok(7));
        let text = scene.client.wait::<String>(&queue(), &id("a")).await;
        assert!(matches!(text, Err(WaitError::Undecodable(_))), "{text:?}");
    }
}

#[tokio::test]
async fn waits_that_begin_while_jobs_end_all_get_their_results() {
    for scene in Scene::both().await {
        for round in 0..50 {
            let name = format!("j-{round}");
            scene.task(&name).retention(HOUR).await.expect("admitted");
            let held = scene.claim(&name).await;
            let waiting = scene.client.wait::<u64>(&queue(), &id(&name)).timeout(SOON);
            let ending = async {
                for _ in 0..round {
                    tokio::task::yield_now().await;
                }
                scene.complete(held, Some("1")).await;
            };
            assert_eq!(tokio::join!(waiting.into_future(), ending).0, Ok(1), "round {round}");
        }
    }
}

#[tokio::test]
async fn without_a_result_what_needs_none_is_given() {
    for scene in Scene::both().await {
        for (name, job) in [("kept", Some(HOUR)), ("deleted", None)] {
            let job = match job {
                Some(kept) => scene.task(name).retention(kept),
                None => scene.task(name),
            };
            job.await.expect("admitted");
            let unit = scene.waiting::<()>(name).await;
            let option = scene.waiting::<Option<u64>>(name).await;
            let number = scene.waiting::<u64>(name).await;
            let held = scene.claim(name).await;
            scene.complete(held, None).await;
            assert_eq!((soon(unit).await, soon(option).await), (Ok(()), Ok(None)), "{name}");
            let error = soon(number).await.expect_err("no result");
            assert!(error == WaitError::NoResult && error.to_string().contains("retention"));
        }
    }
}

#[tokio::test]
async fn a_job_that_is_not_there_is_gone() {
    for scene in Scene::both().await {
        assert_eq!(scene.client.wait::<()>(&queue(), &id("a")).await, Err(WaitError::Gone));
        // The queue was not made when it was first waited for.
        scene.enqueue("a").await;
        let waiting = scene.waiting::<()>("a").await;
        scene.operate(Operation::Delete, "a").await;
        assert_eq!(soon(waiting).await, Err(WaitError::Gone));
        scene.enqueue("b").await;
        let held = scene.claim("b").await;
        scene.complete(held, None).await;
        assert_eq!(scene.client.wait::<()>(&queue(), &id("b")).await, Err(WaitError::Gone));
    }
}

#[tokio::test]
async fn a_job_that_ends_in_another_way_tells_why() {
    let failed = |state, reason, error: Option<&str>| WaitError::Failed {
        state,
        reason: Some(reason),
        error: error.map(str::to_owned),
    };
    for scene in Scene::both().await {
        for name in ["archived", "cancelled"] {
            scene.enqueue(name).await;
        }
        let archived = scene.waiting::<u64>("archived").await;
        let cancelled = scene.waiting::<u64>("cancelled").await;
        let held = scene.claim("archived").await;
        let (reason, error) = (ArchiveReason::Discarded, Some("no such user".to_owned()));
        let given_up = Archive { held, reason, error };
        scene.store().archive(&queue(), &[given_up]).await.expect("archive");
        scene.operate(Operation::Cancel, "cancelled").await;
        let why = failed(State::Archived, EndingReason::Discarded, Some("no such user"));
        assert_eq!(why.to_string(), "the job is archived (discarded): no such user");
        assert_eq!(soon(archived).await, Err(why));
        let why = failed(State::Cancelled, EndingReason::Operator, None);
        assert_eq!(soon(cancelled).await, Err(why.clone()));
        assert_eq!(scene.client.wait::<u64>(&queue(), &id("cancelled")).await, Err(why));
    }
}

#[tokio::test]
async fn a_retry_is_no_end_and_a_wait_may_give_up() {
    for scene in Scene::both().await {
        scene.enqueue("a").await;
        let waiting = scene.waiting::<()>("a").await;
        let held = scene.claim("a").await;
        let failed = Retry { held, delay: HOUR, error: "boom".into() };
        scene.store().retry(&queue(), &[failed]).await.expect("retry");
        let impatient = scene.client.wait::<()>(&queue(), &id("a")).timeout(ms(30));
        assert_eq!(impatient.await, Err(WaitError::TimedOut));
        scene.operate(Operation::Run, "a").await;
        assert!(!waiting.is_finished());
        let held = scene.claim("a").await;
        scene.complete(held, None).await;
        assert_eq!(soon(waiting).await, Ok(()));
    }
}

#[tokio::test]
async fn a_rerun_is_waited_for_as_well() {
    for scene in Scene::both().await {
        scene.enqueue("a").await;
        let waiting = scene.waiting::<()>("a").await;
        scene.operate(Operation::Cancel, "a").await;
        scene.operate(Operation::Rerun, "a").await;
        let held = scene.claim("a").await;
        scene.complete(held, None).await;
        let end = soon(waiting).await;
        let saw_cancelled = matches!(end, Err(WaitError::Failed { state: State::Cancelled, .. }));
        assert!(end == Ok(()) || saw_cancelled, "{end:?}");
    }
}

#[tokio::test]
async fn two_hundred_waits_share_a_subscription_and_do_not_poll() {
    let scene = Scene::redis().await;
    scene.store().set(&queue(), &[Setting::Limit(None)]).await.expect("the queue is made");
    let names: Vec<_> = (0..200).map(|i| format!("j-{i}")).collect();
    let jobs: Vec<_> = names
        .iter()
        .map(|name| scene.task(name).retention(HOUR).envelope().expect("valid"))
        .collect();
    scene.client.enqueue_envelopes(&jobs).await.expect("enqueue");
    // So that the server knows the scripts.
    let nobody = scene.client.wait::<()>(&queue(), &id("nobody")).await;
    assert_eq!(nobody, Err(WaitError::Gone));
    let before = scene.calls().await;
    let client = scene.client.clone();
    let waits: Vec<_> = names
        .iter()
        .map(|name| tokio::spawn(client.wait::<u64>(&queue(), &id(name)).into_future()))
        .collect();
    // One tells the store that somebody waits; each looks at its job once.
    until("all wait", async || scene.calls().await >= before + 201).await;
    assert_eq!(scene.subscriptions().await, 1);
    tokio::time::sleep(ms(300)).await;
    assert_eq!(scene.calls().await, before + 201, "nobody polls");

    let worker = WorkerId::new("w").expect("worker");
    let claim = scene.store().claim(&queue(), &worker, 200, HOUR).await.expect("claim");
    let held = |i: usize| Held { id: claim.jobs[i].id.clone(), fence: claim.jobs[i].fence };
    let done: Vec<_> =
        (0..200).map(|i| Complete { held: held(i), result: Some(i.to_string().into()) }).collect();
    scene.store().complete(&queue(), &done).await.expect("complete");
    for (i, wait) in waits.into_iter().enumerate() {
        assert_eq!(soon(wait).await, Ok(i as u64));
    }
    // Claim and completion, which the server does not know yet and which ask for more keys, what a
    // worker may, and a last look each.
    let calls = scene.calls().await - before - 201;
    assert!((203..=207).contains(&calls), "{calls} calls");
    until("the subscription is over", async || scene.subscriptions().await == 0).await;
}

#[tokio::test]
async fn a_wait_outlives_its_connection() {
    let scene = Scene::redis().await;
    for round in 0..20 {
        let name = format!("j-{round}");
        scene.task(&name).retention(HOUR).await.expect("admitted");
        let waiting = scene.waiting::<u64>(&name).await;
        let held = scene.claim(&name).await;
        until("it listens", async || scene.subscriptions().await == 1).await;
        // The end falls into the time without a subscription, or shortly before or after it.
        let mut kill = redis::cmd("CLIENT");
        let kill = scene.run::<u64>(kill.arg("KILL").arg("TYPE").arg("pubsub"));
        if round % 2 == 0 {
            assert_eq!(kill.await, 1);
            scene.complete(held, Some("3")).await;
        } else {
            tokio::join!(kill, scene.complete(held, Some("3")));
        }
        assert_eq!(soon(waiting).await, Ok(3), "round {round}");
    }
}

#[tokio::test]
async fn a_dropped_wait_ends_and_with_the_last_the_subscription() {
    let scene = Scene::redis().await;
    scene.enqueue("a").await;
    let (first, second) = (scene.waiting::<()>("a").await, scene.waiting::<()>("a").await);
    until("it listens", async || scene.subscriptions().await == 1).await;
    first.abort();
    assert!(first.await.expect_err("aborted").is_cancelled());
    let held = scene.claim("a").await;
    scene.complete(held, None).await;
    assert_eq!(soon(second).await, Ok(()));
    until("the subscription is over", async || scene.subscriptions().await == 0).await;
    scene.enqueue("b").await;
    let again = scene.waiting::<()>("b").await;
    until("it listens", async || scene.subscriptions().await == 1).await;
    again.abort();
    until("the subscription is over", async || scene.subscriptions().await == 0).await;
}

#[tokio::test]
async fn a_wait_goes_on_when_the_runtime_ends_that_heard_for_it() {
    let scene = Scene::redis().await;
    // Kept: the second wait may not look before the job is over.
    scene.task("a").retention(HOUR).await.expect("admitted");
    let first = scene.client.clone();
    // The first wait, on a runtime of its own, makes the subscription; then the runtime ends.
    let (started, is_started) = std::sync::mpsc::channel();
    let (end, ending) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("runtime").block_on(async {
            let waiting = tokio::spawn(first.wait::<()>(&queue(), &id("a")).into_future());
            tokio::task::yield_now().await;
            started.send(()).expect("heard");
            let _ = ending.await;
            assert!(!waiting.is_finished());
        });
    });
    is_started.recv().expect("started");
    until("it listens", async || scene.listeners().await.len() == 1).await;
    let listened = scene.listeners().await;
    let second = scene.waiting::<()>("a").await;
    end.send(()).expect("heard");
    tokio::task::spawn_blocking(move || thread.join()).await.expect("joined").expect("no panic");
    until("it listens anew", async || {
        let listeners = scene.listeners().await;
        listeners.len() == 1 && listeners != listened
    })
    .await;
    let other = Client::new(scene.store_of_its_own());
    let worker = WorkerId::new("w").expect("worker");
    let claim = other.store().claim(&queue(), &worker, 1, HOUR).await.expect("claim");
    let held = Held { id: claim.jobs[0].id.clone(), fence: claim.jobs[0].fence };
    let done = Complete { held, result: None };
    other.store().complete(&queue(), &[done]).await.expect("complete");
    assert_eq!(soon(second).await, Ok(()));
}

impl Scene {
    fn store_of_its_own(&self) -> RedisStore {
        let (server, _) = self.redis.as_ref().expect("on Redis");
        RedisStore::builder(server.url()).build().expect("store")
    }
}
