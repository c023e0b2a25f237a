//! What handlers ask for in their arguments.

use super::BoxError;
use crate::{
    Client,
    model::{Fence, JobId, QueueName, StoreError},
    trace::TraceParent,
    worker::{Context, Shutdown},
};
use std::{
    any::{Any, TypeId, type_name},
    collections::{BTreeMap, HashMap},
    ops::Deref,
    sync::Arc,
};

/// An argument of a handler, made of the job that is about to run.
///
/// ```
/// use sprag::worker::{BoxError, Context, FromJob};
///
/// /// Whose job it is.
/// struct Tenant(String);
///
/// impl FromJob for Tenant {
///     fn from_job(context: &Context) -> Result<Self, BoxError> {
///         let tenant = context.envelope().headers().get("tenant");
///         tenant.cloned().map(Self).ok_or_else(|| "no header `tenant`".into())
///     }
/// }
/// ```
///
/// It may be made of others: `Data::<Pool>::from_job(context)?` is the shared pool. Whether such data
/// is there is found out when a job runs; only what a handler itself asks for is looked at before.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made of a job",
    label = "a handler cannot have an argument of this type",
    note = "it can have `Context`, `Data<T>`, `JobId`, `QueueName`, `Attempt`, `Fence`, `Headers`, `Client`, `Shutdown`, `Option<TraceParent>`, and what implements `sprag::worker::FromJob`",
    note = "the job itself is the first argument only; shared state is `Data<T>`, given to the worker by `.data(…)`"
)]
pub trait FromJob: Sized {
    /// Makes it, just before the handler is called.
    ///
    /// # Errors
    /// Any: the attempt has failed, or what a [`Verdict`](super::Verdict) in it says.
    fn from_job(context: &Context) -> Result<Self, BoxError>;

    /// Whether it can be made of this worker's data, asked once when the worker is built.
    ///
    /// # Errors
    /// Names what is missing.
    #[doc(hidden)]
    fn check(_: &DataMap) -> Result<(), StoreError> {
        Ok(())
    }
}

/// State that all handlers of a worker share, given to it by
/// [`data`](crate::worker::WorkerBuilder::data). Cheap to clone; read through `Deref`.
#[derive(Debug)]
pub struct Data<T>(Arc<T>);

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Data<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Data<T> {
    /// The shared state itself.
    pub fn into_inner(self) -> Arc<T> {
        self.0
    }
}

/// State by its type.
#[derive(Default, Clone)]
pub struct DataMap(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl DataMap {
    pub(in crate::worker) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    fn get<T: Send + Sync + 'static>(&self) -> Result<Data<T>, StoreError> {
        let found = self.0.get(&TypeId::of::<T>()).cloned();
        let found = found.and_then(|any| any.downcast::<T>().ok()).map(Data);
        found.ok_or_else(|| {
            let bound = "given to the worker by .data(…), as a handler asks for it";
            StoreError::invalid("data", type_name::<T>(), bound)
        })
    }
}

impl<T: Send + Sync + 'static> FromJob for Data<T> {
    fn from_job(context: &Context) -> Result<Self, BoxError> {
        Ok(context.data().get()?)
    }

    fn check(data: &DataMap) -> Result<(), StoreError> {
        data.get::<T>().map(drop)
    }
}

/// Failures that handlers reported before: 0 on the first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt(pub u32);

/// The job's headers, name to value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers(pub BTreeMap<String, String>);

macro_rules! from_job {
    ($($type:ty = $make:expr;)*) => { $(
        impl FromJob for $type {
            fn from_job(context: &Context) -> Result<Self, BoxError> {
                let make: fn(&Context) -> Self = $make;
                Ok(make(context))
            }
        }
    )* };
}

from_job! {
    Context = Context::clone;
    JobId = |context| context.id().clone();
    QueueName = |context| context.queue().clone();
    Fence = |context| context.fence();
    Attempt = |context| Attempt(context.attempt());
    Headers = |context| Headers(context.envelope().headers().clone());
    Client = |context| context.client().clone();
    Shutdown = |context| context.shutdown().clone();
    Option<TraceParent> = Context::traceparent;
}
