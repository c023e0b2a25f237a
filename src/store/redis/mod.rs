//! The store on Redis: every change of a job's state is one Lua script.
//!
//! `scripts` puts them together, `call` makes a call with its repeats, `decode` reads the answers,
//! `fault` reads the errors, `connection` holds the connections, `access` asks what the user may do,
//! `schema` how keys are laid out, `durable` what is kept elsewhere, `listen` hears what is published,
//! `doctor` looks for what is wrong.

mod access;
mod call;
mod connection;
mod decode;
mod doctor;
mod durable;
mod fault;
mod keys;
mod listen;
mod listing;
mod registry;
mod schema;
mod scripts;
mod verbs;
#[cfg(feature = "cluster")]
mod waits;

pub use access::Role;
pub use doctor::{Doctor, Examined, Finding, Severity};

use super::{Durability, Held, Outcomes};
use crate::model::{
    Envelope, JobId, Namespace, QueueName, StoreError, When, checked as checked_duration, millis,
    record,
};
use access::Admitted;
use call::{Call, CallerPool, Pauses, RareCalls, Reply};
use connection::{Connections, Target};
use redis::{Cmd, Value};
use scripts::{Clock, Scripts, Verb};
use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How calls that change something name themselves, so that a repeat is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Callers {
    /// A random name per call in flight.
    #[default]
    Random,
    /// A settlement of one job is named after (verb, fence, id) and a digest of its arguments: the
    /// same one, made again by a person or a script, succeeds again for as long as its answer is
    /// kept. With other arguments it is another one, and judged anew.
    PerSettlement,
    /// The same with a digest of the caller's own making, of what was asked for: for an argument
    /// that is drawn anew each time, such as a delay with jitter.
    PerRequest(u64),
}

/// The store on Redis 7.0 or later. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RedisStore(Arc<Inner>, Option<Durability>);

#[derive(Debug)]
struct Inner {
    link: Connections,
    namespace: Namespace,
    budget: Duration,
    callers: Callers,
    scripts: &'static Scripts,
    pool: CallerPool,
    rare: RareCalls,
    registered: Mutex<HashSet<QueueName>>,
    /// Who the server is told that it is.
    user: String,
    admitted: Admitted,
    /// The generation of connections on which the server could tell what is on its disk.
    synced: AtomicU64,
    #[cfg(feature = "cluster")]
    waits: waits::Waits,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripts")
    }
}

/// Makes a [`RedisStore`].
#[derive(Clone)]
#[must_use = "a store is made by build()"]
pub struct RedisStoreBuilder {
    url: String,
    allow_eviction: bool,
    pool: Option<(usize, Duration)>,
    namespace: Namespace,
    budget: Duration,
    callers: Callers,
    clock: Clock,
}

impl RedisStore {
    /// Starts with a URL:
    ///
    /// * `redis://[user:password@]host[:port][/db]`, `redis+unix:///path[?db=…&user=…&pass=…]`;
    /// * `redis+sentinel://[user:password@]host[:port],…/master[/db][?sentinel_user=…&sentinel_pass=…]`,
    ///   with the feature `sentinel`: user and password are the server's;
    /// * `redis+cluster://[user:password@]host[:port],…`, with the feature `cluster`: some of its nodes;
    /// * each with `rediss` in place of `redis` is TLS, with the feature `tls`: `?ca=…`, a file of PEM, in
    ///   place of the system's certificates, `cert=…&key=…` for a client that has one.
    ///
    /// Besides `protocol=resp3`, `pool=8` and `allow_eviction=yes`, see
    /// [`pool`](RedisStoreBuilder::pool) and [`allow_eviction`](RedisStoreBuilder::allow_eviction).
    /// Reserved characters of each part are percent-encoded.
    pub fn builder(url: impl Into<String>) -> RedisStoreBuilder {
        RedisStoreBuilder {
            url: url.into(),
            allow_eviction: false,
            pool: None,
            namespace: Namespace::default(),
            budget: Duration::from_secs(60),
            callers: Callers::Random,
            clock: Clock::Redis,
        }
    }
}

impl RedisStoreBuilder {
    /// The prefix of every key, `sprag` by default.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// For how long a call that finds the store unavailable is repeated: 60 s by default, at most
    /// 10 min. Zero: once. A repeat never does anything twice.
    pub fn repeat_budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Works also on a server that deletes keys when its memory is full (`maxmemory-policy allkeys-…`),
    /// and with them whole queues, without a word. Refused by default.
    pub fn allow_eviction(mut self) -> Self {
        self.allow_eviction = true;
        self
    }

    /// How many connections there are at most, to each server, for what would hold up others on the one
    /// for short calls: lists, bulk work, enqueues that wait for replicas or a disk. 1 to 1,000, 8 by
    /// default. Who finds all in use waits so long for one, 5 s by default; then the call is
    /// `Unavailable`.
    pub fn pool(mut self, size: usize, wait: Duration) -> Self {
        self.pool = Some((size, wait));
        self
    }

    /// How calls name themselves.
    pub fn callers(mut self, callers: Callers) -> Self {
        self.callers = callers;
        self
    }

    /// Takes the time from the key `clock` of each queue, in ms, instead of Redis' clock: tests
    /// that would have to wait set it.
    #[doc(hidden)]
    pub fn virtual_clock(mut self) -> Self {
        self.clock = Clock::Virtual;
        self
    }

    /// Makes the store. It connects at its first call.
    ///
    /// # Errors
    /// `Invalid` if the URL or the budget is out of bounds. No text repeats the URL.
    pub fn build(self) -> Result<RedisStore, StoreError> {
        if self.budget > Duration::from_secs(600) {
            let budget = format!("{:?}", self.budget);
            return Err(StoreError::invalid("repeat_budget", budget, "at most 10 minutes"));
        }
        let mut target = Target::read(&self.url)?;
        target.allow_eviction |= self.allow_eviction;
        if let Some((size, wait)) = self.pool {
            if !(1..=1_000).contains(&size) {
                return Err(StoreError::invalid("pool size", size, "1 to 1000"));
            }
            target.pool_size = size;
            target.pool_wait = checked_duration("pool wait", wait)?;
        }
        let inner = Inner {
            link: Connections::open(&target, self.budget)?,
            namespace: self.namespace,
            budget: self.budget,
            callers: self.callers,
            scripts: Scripts::with(self.clock),
            pool: CallerPool::default(),
            rare: RareCalls::default(),
            registered: Mutex::default(),
            user: target.user().to_owned(),
            admitted: Admitted::default(),
            synced: AtomicU64::new(0),
            #[cfg(feature = "cluster")]
            waits: waits::Waits::default(),
        };
        Ok(RedisStore(Arc::new(inner), None))
    }
}

impl Inner {
    /// A call with nothing special, by a caller of its own.
    async fn verb(
        &self,
        verb: Verb,
        queue: &QueueName,
        args: &(dyn Fn(&mut Cmd) + Sync),
    ) -> Result<Value, StoreError> {
        self.call(Call { verb, queue, args, settles: None }).await
    }

    /// A verb by which holders settle; `item` writes what stands behind id and fence.
    async fn settle<J: Sync, T>(
        &self,
        verb: Verb,
        queue: &QueueName,
        jobs: Vec<&J>,
        held: fn(&J) -> &Held,
        item: impl Fn(&mut Cmd, &J) + Sync,
        decide: fn(&decode::Line<'_>, &JobId) -> Result<T, StoreError>,
    ) -> Result<Outcomes<T>, StoreError> {
        let args = |cmd: &mut Cmd| {
            for job in &jobs {
                cmd.arg(held(job).id.as_str()).arg(held(job).fence.0);
                item(cmd, job);
            }
        };
        let settles = match &*jobs {
            [job] => self.settlement(verb, held(job), |cmd| item(cmd, job)),
            _ => None,
        };
        let answer = self.call(Call { verb, queue, args: &args, settles }).await?;
        let ids: Vec<_> = jobs.iter().map(|job| &held(job).id).collect();
        whole(decode::outcomes(&decode::lines(&answer)?, &ids, decide)?, ids.len())
    }

    /// The caller's name for a settlement that a person may repeat by hand.
    fn settlement(&self, verb: Verb, held: &Held, rest: impl Fn(&mut Cmd)) -> Option<String> {
        let digest = match self.callers {
            Callers::Random => return None,
            Callers::PerRequest(digest) => digest,
            Callers::PerSettlement => {
                let mut arguments = Cmd::new();
                rest(&mut arguments);
                first_u64(&Sha256::digest(arguments.get_packed_command()))
            }
        };
        Some(format!("{}:{}:{}:{digest:016x}", verb.name(), held.fence, held.id))
    }

    /// Admits jobs that are all in bounds; `mode` is `each` or `atomic`.
    async fn admit(
        &self,
        queue: &QueueName,
        jobs: &[&Envelope],
        mode: &str,
        durability: Option<Durability>,
    ) -> Result<Reply, StoreError> {
        if let Some(durability) = durability {
            durability.check()?;
            self.can_sync(durability).await?;
        }
        let mode = format!("{mode}{}", if durability.is_some() { " durable" } else { "" });
        let records: Vec<_> = jobs.iter().map(|job| record::encode(job)).collect();
        let args = |cmd: &mut Cmd| {
            cmd.arg(&mode);
            for (job, record) in jobs.iter().zip(&records) {
                cmd.arg(job.id.as_str()).arg(options(job));
                cmd.arg(&record[..]);
            }
        };
        let call = Call { verb: Verb::Enqueue, queue, args: &args, settles: None };
        let reply = self.call_durably(call, durability).await?;
        let lines = decode::lines(&reply.answer)?;
        if decode::is_there(&lines) {
            self.register(queue, decode::made(&lines)).await?;
        }
        Ok(reply)
    }

    /// Whether the server can say what is on its disk: asked once per connection.
    async fn can_sync(&self, durability: Durability) -> Result<(), StoreError> {
        if !durability.fsync || self.synced.load(Ordering::Relaxed) == self.link.generation() + 1 {
            return Ok(());
        }
        let mut pauses = Pauses::within(self.budget);
        while let Err(fault) = durable::check(&self.link, durability).await {
            let given_up = pauses.before_repeat(fault).await;
            given_up.map_err(|fault| fault.error.nothing_written())?;
        }
        // One more than the generation: zero is never asked.
        self.synced.store(self.link.generation() + 1, Ordering::Relaxed);
        Ok(())
    }

    /// The same with connections and callers of its own.
    fn apart(&self) -> Self {
        self.over(self.link.apart())
    }

    /// The same over these connections.
    fn over(&self, link: Connections) -> Self {
        Self {
            link,
            namespace: self.namespace.clone(),
            budget: self.budget,
            callers: self.callers,
            scripts: self.scripts,
            pool: CallerPool::default(),
            rare: RareCalls::default(),
            registered: Mutex::default(),
            user: self.user.clone(),
            admitted: Admitted::default(),
            synced: AtomicU64::new(0),
            #[cfg(feature = "cluster")]
            waits: waits::Waits::default(),
        }
    }
}

fn first_u64(digest: &[u8]) -> u64 {
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What the enqueue script is told besides the record.
fn options(job: &Envelope) -> String {
    let mut options = match job.run_at {
        When::Now => String::new(),
        When::In(delay) => format!(" due=+{}", millis(delay)),
        When::At(at) => format!(" due={}", at.as_millis()),
    };
    let replaces = job.unique.as_ref().map(|unique| unique.replaces()).unwrap_or_default();
    if !replaces.is_empty() {
        let names: Vec<_> = replaces.iter().map(|field| field.as_str()).collect();
        options.push_str(&format!(" replace={}", names.join(",")));
    }
    options
}

/// Every item has its outcome.
fn whole<T>(outcomes: Outcomes<T>, items: usize) -> Result<Outcomes<T>, StoreError> {
    if outcomes.len() == items {
        return Ok(outcomes);
    }
    Err(StoreError::Backend("a script answered for fewer jobs than it was given".into()))
}

/// Lets the items that passed their check through `call`, and puts the refusals of the others
/// between its answers.
async fn checked<'a, J, T, F>(
    jobs: &'a [J],
    checks: Vec<Result<(), StoreError>>,
    call: impl FnOnce(Vec<&'a J>) -> F,
) -> Result<Outcomes<T>, StoreError>
where
    F: Future<Output = Result<Outcomes<T>, StoreError>>,
{
    let good: Vec<_> =
        jobs.iter().zip(&checks).filter_map(|(job, c)| c.is_ok().then_some(job)).collect();
    let answers = if good.is_empty() { Vec::new() } else { call(good).await? };
    let mut answers = answers.into_iter();
    let missing = || Err(StoreError::Backend("an outcome is missing".into()));
    let merge = |check: Result<(), _>| check.and_then(|()| answers.next().unwrap_or_else(missing));
    Ok(checks.into_iter().map(merge).collect())
}
