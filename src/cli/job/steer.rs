//! `sprag job cancel|rerun|run|archive|delete`: one job, or all of a state.

use crate::{
    args::Global,
    confirm::confirm,
    connect,
    fail::{self, Failure},
    out, redact,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sprag::{
    Inspector, JobId, Kind, QueueName, State, StoreError,
    inspect::Slice,
    store::{Change, Operation},
};
use std::process::ExitCode;

/// Which jobs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    queue: QueueName,
    /// One job; or --state and --all
    id: Option<JobId>,
    /// All jobs in this state instead
    #[arg(long, value_name = "S")]
    state: Option<State>,
    /// Those of this kind only
    #[arg(long, value_name = "K")]
    kind: Option<Kind>,
    /// Goes with --state. Asks on a terminal, and needs --yes elsewhere. Broken off, the same command
    /// goes on with what is left
    #[arg(long)]
    all: bool,
}

pub(super) async fn steer(
    global: &Global,
    operation: Operation,
    args: Args,
) -> Result<ExitCode, Failure> {
    let inspector = connect::inspector(global)?;
    match args.which()? {
        Which::One(id) => one(global, &inspector, operation, &args.queue, id).await,
        Which::All(state) => many(global, &inspector, operation, &args, state).await,
    }
}

enum Which<'a> {
    One(&'a JobId),
    All(State),
}

impl Args {
    /// By hand, for clap's own words on flags that need each other are hard to follow.
    fn which(&self) -> Result<Which<'_>, StoreError> {
        let wrong = match (&self.id, self.state, self.all) {
            (Some(id), None, false) if self.kind.is_none() => return Ok(Which::One(id)),
            (None, Some(state), true) => return Ok(Which::All(state)),
            (Some(_), ..) => "an ID stands alone, without --state, --kind and --all".to_owned(),
            (None, Some(state), false) => {
                format!("--state {state} is about many jobs: add --all, or give an ID instead")
            }
            (None, None, _) => {
                "give an ID, or --state S and --all for all jobs in a state".to_owned()
            }
        };
        Err(StoreError::Invalid(format!("choice of jobs: {wrong}")))
    }
}

#[derive(Serialize)]
struct Done<'a> {
    id: &'a str,
    queue: &'a str,
    /// None: it is gone.
    state: Option<State>,
    changed: bool,
}

/// The state that it leads to.
fn target(operation: Operation) -> Option<State> {
    match operation {
        Operation::Cancel => Some(State::Cancelled),
        Operation::Archive => Some(State::Archived),
        Operation::Run | Operation::Rerun => Some(State::Pending),
        Operation::Delete => None,
    }
}

async fn one(
    global: &Global,
    inspector: &Inspector,
    operation: Operation,
    queue: &QueueName,
    id: &JobId,
) -> Result<ExitCode, Failure> {
    let changed = inspector.operate(queue, operation, id).await? == Change::Changed;
    let state = target(operation);
    if global.json {
        let (id, queue) = (id.as_str(), queue.as_str());
        out::object(&Done { id, queue, state, changed })?;
    } else {
        let state = state.map_or("deleted", State::as_str);
        let before = if changed { "" } else { "unchanged: it was " };
        let after = if changed { "" } else { " before" };
        out::talk(global, &format!("{id}: {before}{state}{after}"));
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Summary<'a> {
    queue: &'a str,
    operation: &'static str,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    changed: u64,
    unchanged: u64,
    /// Jobs that left the state before they could be met.
    left: u64,
    refused: u64,
}

async fn many(
    global: &Global,
    inspector: &Inspector,
    operation: Operation,
    args: &Args,
    state: State,
) -> Result<ExitCode, Failure> {
    let mut bulk = inspector.bulk(&args.queue, operation, state)?;
    if let Some(kind) = &args.kind {
        bulk = bulk.kind(kind)?;
    }
    let of_kind = args.kind.as_ref().map(|kind| format!(" of kind {kind}")).unwrap_or_default();
    let verb = operation.as_str();
    confirm(global, &format!("{verb} all {state} jobs{of_kind} of queue {}", args.queue))?;
    let bar = bar(global);
    let mut summary = Summary {
        queue: args.queue.as_str(),
        operation: verb,
        state,
        kind: args.kind.as_ref().map(Kind::as_str),
        changed: 0,
        unchanged: 0,
        left: 0,
        refused: 0,
    };
    let mut first = None;
    loop {
        match bulk.next_slice().await {
            Ok(Some(slice)) => {
                first = first.or_else(|| slice.refused.first().cloned());
                summary.add(global, &bar, &slice)?;
            }
            Ok(None) => break,
            Err(error) => {
                bar.finish_and_clear();
                summary.tell(global)?;
                return Err(error.into());
            }
        }
    }
    bar.finish_and_clear();
    summary.tell(global)?;
    match first {
        None => Ok(ExitCode::SUCCESS),
        Some((id, error)) => {
            let refused = summary.refused;
            Err(Failure::Refused { error, line: None, id: Some(id), refused })
        }
    }
}

impl Summary<'_> {
    fn add(&mut self, global: &Global, bar: &ProgressBar, slice: &Slice) -> Result<(), Failure> {
        self.changed += slice.changed;
        self.unchanged += slice.unchanged;
        self.left += slice.left;
        self.refused += slice.refused.len() as u64;
        bar.set_position(self.changed);
        for (id, error) in &slice.refused {
            if global.json {
                out::object(&fail::Object::of_job(error, id))?;
            } else {
                let text = redact::redacted(&format!("{id}: {error}"));
                bar.suspend(|| out::warn(&text));
            }
        }
        Ok(())
    }

    fn tell(&self, global: &Global) -> Result<(), Failure> {
        if global.json {
            return out::object(self);
        }
        let Self { operation, state, changed, unchanged, left, refused, .. } = self;
        out::line(&format!(
            "{operation} of {state} jobs: {changed} changed, {unchanged} unchanged, {left} left \
             meanwhile, {refused} refused"
        ))
    }
}

/// indicatif draws on stderr, and only on a terminal.
fn bar(global: &Global) -> ProgressBar {
    if global.quiet || global.json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} done, {per_sec}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
