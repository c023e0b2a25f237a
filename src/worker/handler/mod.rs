//! Handlers: which function runs which kind. `extract` makes their arguments, `verdict` reads their
//! errors.

mod extract;
mod verdict;

pub(super) use extract::DataMap;
pub use extract::{Attempt, Data, FromJob, Headers};
pub use verdict::Verdict;
pub(super) use verdict::{VerdictKind, chain, verdict};

use super::Context;
use crate::{
    Job,
    job::Payload,
    model::{Kind, StoreError},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::{collections::HashMap, error::Error, future::Future, sync::Arc, task, time::Duration};
use tower::{Layer, Service, ServiceExt, util::BoxCloneSyncService};

/// Any error of a handler.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a job leaves when it is done: nothing, or a result, which is kept for as long as the job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer(pub(super) Option<Bytes>);

impl Answer {
    /// No result.
    pub const NONE: Self = Self(None);

    /// A result, kept as JSON. One that is `null` is none.
    ///
    /// # Errors
    /// Its type cannot be encoded as JSON.
    pub fn json(result: &impl serde::Serialize) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_vec(result)?;
        Ok(Self((json != b"null").then(|| json.into())))
    }
}

/// An `async fn` that runs jobs of one type: its first argument is the job, the others, up to eight,
/// are whatever implements [`FromJob`]: [`Context`], [`Data<T>`](Data), [`JobId`](crate::JobId),
/// [`Attempt`], [`Fence`](crate::Fence), [`Headers`] … It returns `Result<R, E>`: any `R` that can be
/// serialised, any `E` that can become a `Box<dyn Error + Send + Sync>`.
///
/// ```
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Charge { cents: u64 }
/// # impl sprag::Job for Charge { const KIND: &'static str = "charge"; }
/// # struct Bank;
/// use sprag::{Client, StoreError, Verdict, Worker, worker::{Attempt, Data}};
///
/// async fn charge(job: Charge, bank: Data<Bank>, Attempt(attempt): Attempt) -> Result<u64, Verdict> {
///     println!("attempt {}", attempt + 1);
///     if job.cents == 0 {
///         return Err(Verdict::discard("nothing to charge"));
///     }
///     Ok(job.cents)
/// }
///
/// # fn example(client: Client) -> Result<Worker, StoreError> {
/// Worker::builder(&client).data(Bank).handler(charge).build()
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "this is not a handler of jobs",
    label = "not an `async fn(job, …) -> Result<_, _>` whose arguments can be made of a job",
    note = "its first argument must be the job itself, a type that implements `sprag::Job`",
    note = "each further argument, at most eight, must implement `sprag::worker::FromJob`: `Context`, `Data<T>`, `JobId`, `Attempt`, `Fence`, `Headers`, …",
    note = "it must return `Result<R, E>` with `R: serde::Serialize` and `E: Into<Box<dyn Error + Send + Sync>>`, and its future must be `Send`: no `Rc`, and no lock guard held over an `.await`",
    note = "a closure must be `Clone + Send + Sync + 'static` and name the types of its arguments"
)]
pub trait Handler<Args>: Clone + Send + Sync + 'static {
    /// The type of the jobs that it runs.
    type Job: Job;

    /// Whether its arguments can be made, looked at before the first job.
    ///
    /// # Errors
    /// Names what is missing.
    #[doc(hidden)]
    fn check(data: &DataMap) -> Result<(), StoreError>;

    /// Runs it.
    #[doc(hidden)]
    fn call(self, context: Context) -> BoxFuture<'static, Result<Answer, BoxError>>;
}

macro_rules! handlers {
    ($(($($arg:ident),*))*) => { $(
        impl<F, Fut, R, E, J, $($arg,)*> Handler<(J, $($arg,)*)> for F
        where
            F: Fn(J, $($arg),*) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<R, E>> + Send + 'static,
            R: serde::Serialize,
            E: Into<BoxError>,
            J: Job,
            $($arg: FromJob,)*
        {
            type Job = J;

            #[allow(unused_variables, reason = "a handler of the job alone needs no data")]
            fn check(data: &DataMap) -> Result<(), StoreError> {
                $(<$arg as FromJob>::check(data)?;)*
                Ok(())
            }

            #[allow(non_snake_case, reason = "types and arguments share their names")]
            fn call(self, context: Context) -> BoxFuture<'static, Result<Answer, BoxError>> {
                Box::pin(async move {
                    let job = job_of::<J>(&context)?;
                    $(let $arg = <$arg as FromJob>::from_job(&context)?;)*
                    drop(context);
                    let result = self(job, $($arg),*).await.map_err(Into::into)?;
                    // A result that cannot be encoded is the handler's error.
                    Answer::json(&result)
                        .map_err(|error| format!("its result cannot be encoded: {error}").into())
                })
            }
        }
    )* };
}

handlers! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, G) (A, B, C, D, G, H)
(A, B, C, D, G, H, I) (A, B, C, D, G, H, I, K) }

/// The job itself. A payload of a later version than this worker knows is another worker's, if it
/// cannot be read here: so a rolling deployment archives nothing.
fn job_of<J: Job>(context: &Context) -> Result<J, Verdict> {
    let envelope = context.envelope();
    let payload = Payload::of(envelope);
    if envelope.version() == J::VERSION {
        return payload.decode().map_err(Verdict::undecodable);
    }
    let (version, known) = (envelope.version(), J::VERSION);
    J::upgrade(payload).map_err(|why| match version > known {
        true => {
            Verdict::unhandled(format!("payload version {version}, known up to {known}: {why}"))
        }
        false => Verdict::undecodable(format!("payload version {version}, now {known}: {why}")),
    })
}

/// What runs a job, with all the layers around it.
pub(super) type Run = BoxCloneSyncService<Context, Answer, BoxError>;

/// A handler as a [`tower::Service`], for layers to stand around.
#[derive(Debug)]
pub(super) struct HandlerService<H, Args> {
    handler: H,
    args: std::marker::PhantomData<fn() -> Args>,
}

impl<H: Clone, Args> Clone for HandlerService<H, Args> {
    fn clone(&self) -> Self {
        Self { handler: self.handler.clone(), args: self.args }
    }
}

impl<H: Handler<Args>, Args> Service<Context> for HandlerService<H, Args> {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<(), BoxError>> {
        task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, context: Context) -> Self::Future {
        self.handler.clone().call(context)
    }
}

/// The kind's own back-off.
pub(super) type KindBackoff = fn(u32) -> Option<Duration>;

/// How to run jobs of a kind.
pub(super) struct Entry {
    pub(super) run: Run,
    pub(super) backoff: KindBackoff,
    /// The name under which it is counted: that of the kind, or of all that have no handler of
    /// their own.
    pub(super) label: Kind,
}

type Around = Box<dyn Fn(Run) -> Run + Send + Sync>;
type Check = fn(&DataMap) -> Result<(), StoreError>;

/// The handlers of a worker while it is built.
#[derive(Default)]
pub(super) struct Registry {
    runs: Vec<(Kind, Run, KindBackoff)>,
    fallback: Option<Run>,
    checks: Vec<Check>,
    layers: Vec<Around>,
}

impl Registry {
    pub(super) fn handler<H: Handler<Args>, Args: 'static>(
        &mut self,
        handler: H,
    ) -> Result<(), StoreError> {
        self.checks.push(H::check);
        let run = Run::new(HandlerService { handler, args: std::marker::PhantomData });
        for kind in std::iter::once(&H::Job::KIND).chain(H::Job::ALIASES) {
            self.runs.push((Kind::new(kind)?, run.clone(), H::Job::backoff));
        }
        Ok(())
    }

    pub(super) fn service(&mut self, kind: Kind, run: Run) {
        self.runs.push((kind, run, |_| None));
    }

    pub(super) fn fallback(&mut self, run: Run) {
        self.fallback = Some(run);
    }

    pub(super) fn layer<L>(&mut self, layer: L)
    where
        L: Layer<Run> + Send + Sync + 'static,
        L::Service: Service<Context, Response = Answer> + Clone + Send + Sync + 'static,
        <L::Service as Service<Context>>::Error: Into<BoxError>,
        <L::Service as Service<Context>>::Future: Send,
    {
        self.layers.push(Box::new(move |run| boxed(layer.layer(run))));
    }

    /// Puts the layers around all handlers, the last one outermost.
    pub(super) fn build(self, data: &DataMap) -> Result<Handlers, StoreError> {
        self.checks.iter().try_for_each(|check| check(data))?;
        if self.runs.is_empty() && self.fallback.is_none() {
            return Err(StoreError::invalid("handlers", "none", "at least one"));
        }
        let layered = |run| self.layers.iter().fold(run, |run, around| around(run));
        let mut by_kind = HashMap::new();
        for (kind, run, backoff) in self.runs {
            let entry = Entry { run: layered(run), backoff, label: kind.clone() };
            if by_kind.insert(kind.clone(), Arc::new(entry)).is_some() {
                return Err(StoreError::invalid("handlers", &kind, "one per kind and alias"));
            }
        }
        let fallback = self.fallback.map(|run| {
            let label = Kind::new("other")?;
            Ok::<_, StoreError>(Arc::new(Entry { run: layered(run), backoff: |_| None, label }))
        });
        Ok(Handlers { by_kind, fallback: fallback.transpose()? })
    }
}

/// Boxes a service whose errors are any.
pub(super) fn boxed<S>(service: S) -> Run
where
    S: Service<Context, Response = Answer> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    Run::new(service.map_err(Into::into))
}

/// The handlers of a worker, by kind.
pub(super) struct Handlers {
    by_kind: HashMap<Kind, Arc<Entry>>,
    fallback: Option<Arc<Entry>>,
}

impl Handlers {
    pub(super) fn get(&self, kind: &Kind) -> Option<&Arc<Entry>> {
        self.by_kind.get(kind).or(self.fallback.as_ref())
    }
}
