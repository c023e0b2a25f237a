//! Which functions are handlers, and how one is called.

use super::{DataMap, FromJob, Verdict};
use crate::{Job, job::Payload, model::StoreError, worker::Context};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::{error::Error, future::Future};

/// Any error of a handler.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a job leaves when it is done: nothing, or a result, which is kept for as long as the job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer(pub(in crate::worker) Option<Bytes>);

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
/// are whatever implements [`FromJob`]: [`Context`], [`Data<T>`](crate::worker::Data), [`JobId`](crate::JobId),
/// [`Attempt`](crate::worker::Attempt), [`Fence`](crate::Fence), [`Headers`](crate::worker::Headers) … It returns `Result<R, E>`: any `R` that can be
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
    label = "not an `async fn(job, …) -> Result<_, _>`",
    note = "its first argument is the job, a type that implements `sprag::Job`; up to eight further ones implement `sprag::worker::FromJob`: `Context`, `Data<T>`, `JobId`, `Attempt`, …",
    note = "a closure names the types of its arguments: `|job: SendWelcome, context: Context| async move {{ … }}`; it is `Clone + Send + Sync + 'static`"
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

/// One implementation for all, with a trait for each thing that may be wrong: so the compiler names
/// the argument, the result or the future that does not fit.
impl<F, Args> Handler<Args> for F
where
    F: Function<Args> + Clone + Send + Sync + 'static,
    Args: Arguments,
    F::Returned: Future<Output: Outcome> + Send + 'static,
{
    type Job = Args::Job;

    fn check(data: &DataMap) -> Result<(), StoreError> {
        Args::check(data)
    }

    fn call(self, context: Context) -> BoxFuture<'static, Result<Answer, BoxError>> {
        Box::pin(async move {
            let arguments = Args::make(&context)?;
            drop(context);
            self.run(arguments).await.answer()
        })
    }
}

/// A function of some arguments, whatever they and its result are.
#[doc(hidden)]
pub trait Function<Args> {
    /// What it returns: a future, if it is a handler.
    type Returned;

    /// Calls it.
    fn run(self, arguments: Args) -> Self::Returned;
}

/// The arguments of a handler: the job, then what is made of it.
#[doc(hidden)]
pub trait Arguments: Sized {
    /// The first.
    type Job: Job;

    /// Whether the others can be made of this worker's data.
    fn check(data: &DataMap) -> Result<(), StoreError>;

    /// Makes them all.
    fn make(context: &Context) -> Result<Self, BoxError>;
}

/// What a handler comes to.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handler returns a `Result`",
    label = "this handler returns `{Self}`",
    note = "`Ok` with anything that implements `serde::Serialize`, `()` if there is nothing to say; `Err` with anything that becomes a `Box<dyn Error + Send + Sync>`"
)]
pub trait Outcome {
    /// The answer in it.
    fn answer(self) -> Result<Answer, BoxError>;
}

impl<R: serde::Serialize, E: Into<BoxError>> Outcome for Result<R, E> {
    fn answer(self) -> Result<Answer, BoxError> {
        let result = self.map_err(Into::into)?;
        // A result that cannot be encoded is the handler's error.
        Answer::json(&result)
            .map_err(|error| format!("its result cannot be encoded: {error}").into())
    }
}

macro_rules! arguments {
    ($(($($arg:ident),*))*) => { $(
        impl<F: Fn(J, $($arg),*) -> Returned, Returned, J, $($arg,)*> Function<(J, $($arg,)*)> for F {
            type Returned = Returned;

            #[allow(non_snake_case, reason = "types and arguments share their names")]
            fn run(self, (J, $($arg,)*): (J, $($arg,)*)) -> Returned {
                self(J, $($arg),*)
            }
        }

        impl<J: Job, $($arg: FromJob,)*> Arguments for (J, $($arg,)*) {
            type Job = J;

            #[allow(unused_variables, reason = "a handler of the job alone needs no data")]
            fn check(data: &DataMap) -> Result<(), StoreError> {
                $(<$arg as FromJob>::check(data)?;)*
                Ok(())
            }

            fn make(context: &Context) -> Result<Self, BoxError> {
                Ok((job_of::<J>(context)?, $(<$arg as FromJob>::from_job(context)?,)*))
            }
        }
    )* };
}

arguments! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, G)
(A, B, C, D, E, G, H) (A, B, C, D, E, G, H, I) }

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
