//! `sprag enqueue`.

use crate::{
    args::Global,
    connect,
    fail::Failure,
    from_file, out,
    payload::{self, CodecArg},
    units,
};
use clap::ValueEnum;
use serde::Serialize;
use sprag::{
    Envelope, JobId, Kind, Partition, QueueName, State, Store, StoreError, Timestamp, Unique, When,
    model::{EnvelopeBuilder, Mode, Replace},
};
use std::{collections::BTreeSet, path::PathBuf, process::ExitCode, time::Duration};

/// Admit a job; prints its id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("key").args(["unique", "unique_payload"])))]
pub(crate) struct Args {
    pub(crate) queue: QueueName,
    kind: Kind,
    /// A JSON text, @file, or - for stdin [default: null, or no bytes if raw]
    #[arg(conflicts_with = "from", allow_negative_numbers = true)]
    pub(crate) payload: Option<String>,
    /// An id of your own: the same id and content again is a success
    #[arg(long, conflicts_with = "from")]
    id: Option<JobId>,
    /// Refused as duplicate while another job holds this key
    #[arg(long, value_name = "KEY")]
    unique: Option<String>,
    /// The content is its own unique key
    #[arg(long)]
    unique_payload: bool,
    /// Hold the key for so long, whatever becomes of the job
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true, requires = "key", conflicts_with = "debounce")]
    throttle: Option<Duration>,
    /// Each duplicate puts the job off until so long after it
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true, requires = "key")]
    debounce: Option<Duration>,
    /// Debounce at most so long after the first
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true, requires = "debounce", conflicts_with = "throttle")]
    max_wait: Option<Duration>,
    /// The key belongs to all kinds of the queue
    #[arg(long, requires = "key")]
    any_kind: bool,
    /// What a duplicate writes into a holder that is not running
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', requires = "key")]
    replace: Vec<ReplaceArg>,
    /// Due so long from now
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true, conflicts_with = "at")]
    delay: Option<Duration>,
    /// Due at this time
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    at: Option<Timestamp>,
    /// 0 to 9, higher first [default: 4]
    #[arg(long, value_name = "N", value_parser = units::whole::<u8>(0..=9), allow_hyphen_values = true)]
    priority: Option<u8>,
    /// Failed attempts before it is archived, 1 to 1000 [default: 25]
    #[arg(long, value_name = "N", value_parser = units::whole::<u32>(1..=1_000), allow_hyphen_values = true)]
    max_attempts: Option<u32>,
    /// How long one attempt may take
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// When it is no longer worth running
    #[arg(long, value_name = "DUR|TIME", value_parser = units::when, allow_hyphen_values = true)]
    deadline: Option<When>,
    /// How long the completed job is kept [default: not at all]. One that is archived or quarantined
    /// is kept for 90 d, a cancelled one for 7 d, unless this is longer
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true)]
    retention: Option<Duration>,
    /// How long its id is remembered after the job is gone
    #[arg(long, value_name = "DUR", value_parser = units::duration, allow_hyphen_values = true)]
    remember: Option<Duration>,
    /// Its tenant
    #[arg(long, value_name = "P")]
    partition: Option<String>,
    /// A header; may be given again, with another name
    #[arg(long, value_name = "K=V", value_parser = header)]
    header: Vec<(String, String)>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) codec: CodecArg,
    /// A duplicate is a success: prints the winner
    #[arg(long)]
    pub(crate) join: bool,
    /// One payload a line, - for stdin. Each line is judged by itself; refused ones are told, and
    /// the first of them gives the exit code
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) from: Option<PathBuf>,
    /// All lines or none
    // What conflicts with --from would lift its being required.
    #[arg(long, requires = "from", conflicts_with_all = ["join", "payload", "id"])]
    pub(crate) atomic: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ReplaceArg {
    Payload,
    RunAt,
    Priority,
    MaxAttempts,
}

impl From<ReplaceArg> for Replace {
    fn from(field: ReplaceArg) -> Self {
        match field {
            ReplaceArg::Payload => Self::Payload,
            ReplaceArg::RunAt => Self::RunAt,
            ReplaceArg::Priority => Self::Priority,
            ReplaceArg::MaxAttempts => Self::MaxAttempts,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  sprag enqueue mail welcome '{\"user\":7}'
  sprag enqueue mail remind @user.json --delay 1h --retention 1d
  sprag enqueue mail welcome @user.json --unique user-7 --join
                                     no second one while the first is unfinished
  jq -c '.users[]' all.json | sprag enqueue mail welcome --from -
                                     one job a line
DUR is 250ms, 5s, 2m, 1h or 7d; TIME is 2026-01-31T08:00:00Z.";

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Args {
    /// The job with this payload.
    pub(crate) fn envelope(&self, payload: Vec<u8>) -> Result<Envelope, StoreError> {
        if self.codec == CodecArg::Json {
            payload::check_json("payload", &payload)?;
        }
        let mut job = Envelope::builder(self.queue.clone(), self.kind.clone())
            .payload(payload, self.codec.into())
            .run_at(self.run_at());
        job = given(job, self.id.clone(), EnvelopeBuilder::id);
        job = given(job, self.unique(), EnvelopeBuilder::unique);
        job = given(job, self.priority, EnvelopeBuilder::priority);
        job = given(job, self.max_attempts, EnvelopeBuilder::max_attempts);
        job = given(job, self.timeout, EnvelopeBuilder::timeout);
        job = given(job, self.deadline, EnvelopeBuilder::deadline);
        job = given(job, self.retention, EnvelopeBuilder::retention);
        job = given(job, self.remember, EnvelopeBuilder::remember);
        let partition = self.partition.as_ref().map(Partition::new).transpose()?;
        job = given(job, partition, EnvelopeBuilder::partition);
        let names: BTreeSet<_> = self.header.iter().map(|(name, _)| name).collect();
        if names.len() < self.header.len() {
            let text = "--header: a name is given twice; must be given once".to_owned();
            return Err(StoreError::Invalid(text));
        }
        self.header.iter().fold(job, |job, (name, value)| job.header(name, value)).build()
    }

    fn run_at(&self) -> When {
        match (self.delay, self.at) {
            (Some(delay), _) => When::In(delay),
            (None, Some(at)) => When::At(at),
            (None, None) => When::Now,
        }
    }

    fn unique(&self) -> Option<Unique> {
        let payload = self.unique_payload.then(Unique::by_payload);
        let mut unique = self.unique.as_ref().map(Unique::key).or(payload)?;
        if let Some(window) = self.throttle {
            unique = unique.mode(Mode::Throttle { window });
        }
        if let Some(window) = self.debounce {
            unique = unique.mode(Mode::Debounce { window, max_wait: self.max_wait });
        }
        if self.any_kind {
            unique = unique.any_kind();
        }
        let fields: Vec<Replace> = self.replace.iter().map(|field| (*field).into()).collect();
        Some(unique.replace(fields))
    }
}

fn given<T>(
    job: EnvelopeBuilder,
    value: Option<T>,
    set: impl FnOnce(EnvelopeBuilder, T) -> EnvelopeBuilder,
) -> EnvelopeBuilder {
    match value {
        Some(value) => set(job, value),
        None => job,
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    queue: &'a str,
    /// None, if the winner that was joined is gone by now.
    state: Option<State>,
    existing: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    joined: bool,
}

pub(crate) async fn enqueue(global: &Global, args: Box<Args>) -> Result<ExitCode, Failure> {
    if args.from.is_some() {
        return from_file::enqueue(global, &args).await;
    }
    let payload = match (&args.payload, args.codec) {
        (Some(payload), _) => payload::read("payload", payload)?,
        (None, CodecArg::Json) => b"null".to_vec(),
        (None, CodecArg::Raw) => Vec::new(),
    };
    let job = args.envelope(payload)?;
    let store = connect::store(global)?;
    let outcomes = store.enqueue(&args.queue, std::slice::from_ref(&job)).await;
    let outcome = outcomes.map_err(|error| Failure::unsure(error, &job))?.pop();
    let missing = || StoreError::Backend("no outcome".to_owned());
    let queue = args.queue.as_str();
    match outcome.ok_or_else(missing)? {
        Ok(done) => {
            let (id, state) = (done.id.as_str(), done.state);
            let answer = Answer { id, queue, state, existing: done.existing, joined: false };
            tell(global, &answer)?;
        }
        Err(StoreError::Duplicate { existing_id, .. }) if args.join => {
            let winner = store.show(&args.queue, &JobId::new(&existing_id)?).await;
            let state = match winner {
                Ok(job) => Some(job.state),
                Err(StoreError::NotFound(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let id = existing_id.as_str();
            tell(global, &Answer { id, queue, state, existing: true, joined: true })?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(global: &Global, answer: &Answer<'_>) -> Result<(), Failure> {
    // Who could not read the id is told it here.
    let there = |failure: Failure| failure.although(format!("job {} is enqueued", answer.id));
    if global.json {
        return out::object(answer).map_err(there);
    }
    let how = match (answer.joined, answer.existing) {
        (true, _) => "joined: another job holds the unique key; it is",
        (false, true) => "was there before; it is",
        (false, false) => "enqueued:",
    };
    let state = answer.state.map_or("gone", State::as_str);
    out::talk(global, &format!("{how} {state}"));
    out::line(answer.id).map_err(there)
}
