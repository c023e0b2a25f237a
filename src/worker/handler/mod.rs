//! Handlers: which function runs which kind. `function` says which functions are handlers, `extract`
//! makes their arguments, `verdict` reads their errors.

mod extract;
mod function;
mod verdict;

pub(super) use extract::DataMap;
pub use extract::{Attempt, Data, FromJob, Headers};
pub use function::{Answer, BoxError, Handler};
pub use verdict::Verdict;
pub(super) use verdict::{VerdictKind, chain, verdict};

use super::Context;
use crate::{
    Job,
    model::{Kind, StoreError},
};
use futures_util::future::BoxFuture;
use std::{collections::HashMap, sync::Arc, task, time::Duration};
use tower::{Layer, Service, ServiceExt, util::BoxCloneSyncService};

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
    runs: Vec<(Vec<Kind>, Run, KindBackoff)>,
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
        let kinds = std::iter::once(&H::Job::KIND).chain(H::Job::ALIASES).map(Kind::new);
        self.runs.push((kinds.collect::<Result<_, _>>()?, run, H::Job::backoff));
        Ok(())
    }

    pub(super) fn service(&mut self, kind: Kind, run: Run) {
        self.runs.push((vec![kind], run, |_| None));
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

    /// Puts the layers around each handler, the last one outermost. A handler and its aliases share
    /// theirs.
    pub(super) fn build(self, data: &DataMap) -> Result<Handlers, StoreError> {
        self.checks.iter().try_for_each(|check| check(data))?;
        if self.runs.is_empty() && self.fallback.is_none() {
            return Err(StoreError::invalid("handlers", "none", "at least one"));
        }
        let layered = |run| self.layers.iter().fold(run, |run, around| around(run));
        let mut by_kind = HashMap::new();
        for (kinds, run, backoff) in self.runs {
            let run = layered(run);
            for kind in kinds {
                let entry = Entry { run: run.clone(), backoff, label: kind.clone() };
                if by_kind.insert(kind.clone(), Arc::new(entry)).is_some() {
                    return Err(StoreError::invalid("handlers", &kind, "one per kind and alias"));
                }
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
