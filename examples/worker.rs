//! A worker with most of what there is: shared state, two kinds in two weighted queues, layers,
//! time limits, a back-off, progress, a hook, `tracing`, and an orderly end.
//!
//! ```sh
//! cargo run --example worker -- enqueue    # on SPRAG_REDIS_URL or REDIS_URL, else on this machine
//! ```
//!
//! `enqueue` makes a few jobs first; without it the worker waits for those of others. Ctrl-C or
//! SIGTERM ends it: it finishes what it has in hand and prints its report. `RUST_LOG=debug` tells
//! more. With `SPRAG_REDIS_URL=memory://` it needs no Redis.

#![allow(clippy::print_stdout, reason = "it prints its report")]

use sprag::{
    Client, Context, Job, StoreError, Verdict, Worker,
    worker::{Answer, Attempt, BoxError, Data, EndedJob, Exponential},
};
use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::{Duration, Instant},
};
use tower::{Layer, Service, limit::ConcurrencyLimitLayer};

#[derive(serde::Serialize, serde::Deserialize)]
struct SendMail {
    to: String,
}

impl Job for SendMail {
    const KIND: &'static str = "mail:send";
    const QUEUE: &'static str = "mail";
    const MAX_ATTEMPTS: u32 = 5;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Resize {
    picture: u64,
}

impl Job for Resize {
    const KIND: &'static str = "picture:resize";
    const QUEUE: &'static str = "pictures";
    // Completed, it is kept for an hour with what the handler returned.
    const RETENTION: Option<Duration> = Some(Duration::from_secs(3600));
}

/// What handlers share; in a real worker a pool of database connections, an HTTP client …
#[derive(Default)]
struct Mailer {
    sent: AtomicU64,
}

impl Mailer {
    async fn send(&self, to: &str, fails: bool) -> Result<(), std::io::Error> {
        if fails {
            return Err(std::io::Error::other(format!("{to}: greylisted, come back later")));
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Any error is tried again after the back-off; a `Verdict` says otherwise.
async fn send_mail(
    job: SendMail,
    mailer: Data<Mailer>,
    Attempt(attempt): Attempt,
) -> Result<(), BoxError> {
    if !job.to.contains('@') {
        return Err(Verdict::discard(format!("{:?} is no address", job.to)).into());
    }
    Ok(mailer.send(&job.to, job.to.ends_with("@slow.example") && attempt == 0).await?)
}

/// What it returns is the job's result. Told to stop, by a timeout, an operator, or because the
/// lease was lost, it is dropped at an `.await` a second later; who has to tidy up before that asks
/// `context.cancelled()`.
async fn resize(job: Resize, context: Context) -> Result<String, BoxError> {
    const TILES: u64 = 10;
    for tile in 1..=TILES {
        tokio::time::sleep(Duration::from_millis(20)).await;
        context.progress(tile, TILES, "tiles");
    }
    Ok(format!("pictures/{}-small.jpg", job.picture))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .from_env_lossy();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();

    let client = Client::from_env()?;
    if std::env::args().any(|argument| argument == "enqueue") {
        enqueue(&client).await?;
    }
    let backoff = Exponential { base: Duration::from_millis(500), ..Exponential::default() };
    let worker = Worker::builder(&client)
        .data(Mailer::default())
        .handler(send_mail)
        .handler(resize)
        // While both have jobs, three mails for one picture.
        .weighted_queue(SendMail::QUEUE, 3)
        .weighted_queue(Resize::QUEUE, 1)
        .concurrency(20)
        // Of each kind at most eight at a time. A job that waits here holds its slot.
        .layer(ConcurrencyLimitLayer::new(8))
        .layer(TimedLayer)
        .timeout(Duration::from_secs(30))
        .backoff(move |attempt| backoff.after(attempt))
        .on_archive(tell_somebody)
        .build()?;
    let report = worker.run().await;
    println!(
        "{} completed, {} retried, {} archived, {} requeued",
        report.completed, report.retried, report.archived, report.requeued
    );
    Ok(())
}

async fn enqueue(client: &Client) -> Result<(), StoreError> {
    for to in ["ada@example.org", "bob@slow.example", "nobody"] {
        client.enqueue(SendMail { to: to.to_owned() }).await?;
    }
    let pictures = (1..=5).map(|picture| Resize { picture });
    client.enqueue_many(pictures).await?.into_iter().try_for_each(|outcome| outcome.map(drop))
}

async fn tell_somebody(job: EndedJob) {
    tracing::warn!(queue = %job.queue, id = %job.id, reason = ?job.reason, error = job.error, "given up");
}

/// A layer of one's own: says how long each run took.
#[derive(Clone)]
struct TimedLayer;

impl<S> Layer<S> for TimedLayer {
    type Service = Timed<S>;

    fn layer(&self, inner: S) -> Timed<S> {
        Timed { inner }
    }
}

#[derive(Clone)]
struct Timed<S> {
    inner: S,
}

impl<S> Service<Context> for Timed<S>
where
    S: Service<Context, Response = Answer, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, task: &mut std::task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, context: Context) -> Self::Future {
        let started = Instant::now();
        let run = self.inner.call(context);
        Box::pin(async move {
            let answer = run.await;
            // Each run has a span that names queue, kind and id.
            tracing::info!(took = ?started.elapsed(), ok = answer.is_ok(), "ran");
            answer
        })
    }
}
