//! Layers around handlers: tower's, and ones of the program's own.

use crate::bench::{Bench, HOUR, Log, Task, id, ms, queue, run, task};
use futures_util::future::BoxFuture;
use sprag::{
    Client, Context, MemoryStore, State, Verdict, Worker,
    worker::{Answer, BoxError},
};
use tower::{
    layer::layer_fn,
    limit::ConcurrencyLimitLayer,
    timeout::TimeoutLayer,
    util::{BoxCloneSyncService, MapFutureLayer},
};

/// A run of a handler, as a layer sees it.
type Run = BoxFuture<'static, Result<Answer, BoxError>>;
type Inner = BoxCloneSyncService<Context, Answer, BoxError>;

async fn succeed(_: Task) -> Result<(), Verdict> {
    Ok(())
}

async fn forever(_: Task) -> Result<(), Verdict> {
    std::future::pending().await
}

#[tokio::test]
async fn of_several_layers_the_last_is_the_outermost() {
    let (bench, log) = (Bench::new(), Log::default());
    let named = |name: &'static str| {
        let log = log.clone();
        MapFutureLayer::new(move |run: Run| {
            let log = log.clone();
            async move {
                log.add(format!("into {name}"));
                let answer = run.await;
                log.add(format!("out of {name}"));
                answer
            }
        })
    };
    bench.enqueue(task("a")).await.expect("admitted");
    let builder = bench.worker().layer(named("first")).handler(succeed).layer(named("last"));
    assert_eq!(run(builder).await.completed, 1);
    assert_eq!(log.all(), ["into last", "into first", "out of first", "out of last"]);
}

#[tokio::test]
async fn a_layer_sees_errors_also_those_of_decoding_and_may_answer_itself() {
    let log = Log::default();
    let forgiving = {
        let log = log.clone();
        MapFutureLayer::new(move |run: Run| {
            let log = log.clone();
            async move {
                let Err(error) = run.await else { return Ok(Answer::NONE) };
                log.add(error.to_string());
                Ok::<_, BoxError>(Answer::json(&"forgiven")?)
            }
        })
    };
    let bench = Bench::new();
    bench.enqueue(task("fails")).await.expect("admitted");
    let fail = |_: Task| async { Err::<(), _>("no") };
    run(bench.worker().handler(fail).layer(forgiving.clone())).await;
    assert_eq!(bench.result().await, r#""forgiven""#);
    let bench = Bench::new();
    bench.enqueue_raw("task", 1, &[0xc1], sprag::Codec::MsgPack).await;
    run(bench.worker().handler(fail).layer(forgiving)).await;
    assert_eq!(bench.result().await, r#""forgiven""#);
    assert_eq!((log.all().len(), log.all()[0].as_str()), (2, "no"));
}

#[tokio::test]
async fn a_layers_verdict_counts() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    let refuse = layer_fn(|_: Inner| {
        tower::service_fn(|_: Context| async {
            Err::<Answer, BoxError>(Verdict::snooze(HOUR).into())
        })
    });
    assert_eq!(run(bench.worker().handler(succeed).layer(refuse)).await.snoozed, 1);
    assert_eq!(bench.due_in().await, HOUR);
}

#[tokio::test]
async fn towers_timeout_is_a_failed_attempt() {
    let bench = Bench::new();
    bench.enqueue(task("a")).await.expect("admitted");
    run(bench.worker().handler(forever).layer(TimeoutLayer::new(ms(10)))).await;
    let (state, attempt, said) = bench.told().await;
    assert_eq!((state, attempt), (State::Retry, 1));
    assert!(said.as_deref().is_some_and(|said| said.contains("timed out")), "{said:?}");
}

/// A worker in real time whose jobs run under short leases, and how many ran at a time.
async fn live(limit: usize, jobs: usize) -> usize {
    let client = Client::new(MemoryStore::new());
    let (log, running) = (Log::default(), std::sync::Arc::new(tokio::sync::Semaphore::new(jobs)));
    let (done, mut finished) = tokio::sync::mpsc::channel(jobs);
    let handler = {
        let log = log.clone();
        move |_: Task| {
            let (log, running, done) = (log.clone(), running.clone(), done.clone());
            async move {
                let place = running.acquire().await?;
                log.add((jobs - running.available_permits()).to_string());
                tokio::time::sleep(ms(250)).await;
                drop(place);
                done.send(()).await?;
                Ok::<_, BoxError>(())
            }
        }
    };
    for i in 0..jobs {
        client.enqueue(task(&i.to_string())).await.expect("admitted");
    }
    let builder = Worker::builder(&client).handler(handler).lease(ms(600)).concurrency(jobs);
    let worker = builder.layer(ConcurrencyLimitLayer::new(limit)).build().expect("a worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    for _ in 0..jobs {
        finished.recv().await.expect("the worker lives");
    }
    shutdown.drain();
    let report = worker.await.expect("no panic");
    assert_eq!((report.completed, report.lost), (jobs as u64, 0));
    let most = log.all().iter().map(|count| count.parse().expect("a number")).max();
    most.expect("some ran")
}

#[tokio::test]
async fn towers_concurrency_limit_holds_jobs_back_without_losing_their_leases() {
    assert_eq!(live(2, 12).await, 2);
}

#[tokio::test]
async fn a_handler_and_its_aliases_share_one_limit() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Old(String);
    impl sprag::Job for Old {
        const KIND: &'static str = "new";
        const ALIASES: &'static [&'static str] = &["old"];
    }
    let made = Log::default();
    let counting = {
        let made = made.clone();
        layer_fn(move |inner: Inner| {
            made.add("made");
            inner
        })
    };
    let handler = |_: Old| async { Ok::<_, Verdict>(()) };
    let worker = Bench::new().worker().handler(handler).layer(counting).build();
    assert!(worker.is_ok());
    assert_eq!(made.all().len(), 1);
}

#[tokio::test]
async fn layers_that_panic_hang_or_never_call_cost_neither_slot_nor_lease() {
    let client = Client::new(MemoryStore::new());
    let odd = layer_fn(|inner: Inner| {
        tower::service_fn(move |context: Context| -> Run {
            match context.id().as_str() {
                "panics" => panic!("a layer's"),
                "hangs" => Box::pin(std::future::pending()),
                "answers" => Box::pin(async { Ok(Answer::json(&"not called")?) }),
                _ => {
                    let mut inner = inner.clone();
                    Box::pin(async move { tower::Service::call(&mut inner, context).await })
                }
            }
        })
    });
    let (done, mut finished) = tokio::sync::mpsc::channel::<()>(1);
    let handler = move |_: Task| {
        let done = done.clone();
        async move { done.send(()).await }
    };
    for name in ["panics", "hangs", "answers", "good"] {
        client.enqueue(task(name)).id(name).retention(HOUR).await.expect("admitted");
    }
    let builder = Worker::builder(&client).handler(handler).layer(odd).concurrency(1);
    let builder = builder.lease(ms(600)).timeout(ms(1_500)).cancel_grace(ms(1)).backoff(|_| HOUR);
    let worker = builder.build().expect("a worker");
    let shutdown = worker.shutdown();
    let worker = tokio::spawn(worker.run_until_shutdown());
    finished.recv().await.expect("the one slot is free again after each");
    shutdown.drain();
    let report = worker.await.expect("no panic");
    assert_eq!((report.completed, report.retried, report.lost), (2, 2, 0));
    for (name, state, said) in [
        ("panics", State::Retry, "panicked: a layer's"),
        ("hangs", State::Retry, "timed out after 1.5s: given up: timeout"),
        ("answers", State::Completed, ""),
    ] {
        let job = client.store().show(&queue(), &id(name)).await.expect("kept");
        assert_eq!((job.state, job.crash), (state, 0), "{name}");
        let last = job.errors.last().and_then(|failure| failure.error.as_deref());
        assert_eq!(last.unwrap_or_default(), said);
    }
}
