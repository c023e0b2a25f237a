//! `sprag job list`.

use crate::{args::Global, connect, envelope::EnvelopeFields, fail::Failure, out, units};
use serde::Serialize;
use sprag::{Kind, QueueName, State, StoreError, store::Listed};

/// Jobs of a page, at most.
const PAGE: usize = 1_000;

/// The jobs of a queue, of one state or all
///
/// Pending jobs stand in the order of their claim, others by when they are due, lose their lease or
/// are evicted. While jobs move, one may be seen twice or not at all: a page of pending jobs begins so
/// many places behind the front, and whoever claims meanwhile takes the front away, so that as many
/// are skipped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    queue: QueueName,
    /// Those in this state only
    #[arg(long, value_name = "S")]
    state: Option<State>,
    /// Those of this kind only
    #[arg(long, value_name = "K")]
    kind: Option<Kind>,
    /// At most so many. If there are more, a cursor to go on with is told: on stderr, or with --json as
    /// the last object
    #[arg(long, value_name = "N", value_parser = units::whole::<usize>(1..=1_000_000), default_value = "100", allow_hyphen_values = true)]
    limit: usize,
    /// Go on where the list before ended: the same command with the cursor that it told
    #[arg(long, value_name = "C")]
    cursor: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    queue: &'a str,
    state: State,
    #[serde(flatten)]
    envelope: Option<EnvelopeFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undecodable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted_at: Option<u64>,
}

#[derive(Serialize)]
struct More<'a> {
    cursor: &'a str,
}

/// Where a list goes on: `<state>:<the store's cursor>`, its space written as `+` for the shell.
struct Spot {
    state: State,
    cursor: Option<String>,
}

impl Spot {
    fn read(text: &str) -> Result<Self, StoreError> {
        let bad = || StoreError::Invalid("--cursor: must be one that a list gave".to_owned());
        let (state, rest) = text.split_once(':').ok_or_else(bad)?;
        let state = state.parse().map_err(|_| bad())?;
        let cursor = Some(rest.replacen('+', " ", 1)).filter(|rest| !rest.is_empty());
        Ok(Self { state, cursor })
    }

    fn text(&self) -> String {
        let rest = self.cursor.as_deref().unwrap_or_default().replacen(' ', "+", 1);
        format!("{}:{rest}", self.state)
    }
}

pub(super) async fn list(global: &Global, args: Args) -> Result<(), Failure> {
    let inspector = connect::inspector(global)?;
    let mut at = args.cursor.as_deref().map(Spot::read).transpose()?;
    if let (Some(spot), Some(state)) = (&at, args.state)
        && spot.state != state
    {
        let text = format!("--cursor: is one of {} jobs; must be of {state} ones", spot.state);
        return Err(StoreError::Invalid(text).into());
    }
    let states = State::ALL.into_iter().filter(|state| args.state.is_none_or(|one| one == *state));
    let (mut rows, mut left, mut more) = (Vec::new(), args.limit, None);
    for state in states {
        if at.as_ref().is_some_and(|spot| spot.state != state) {
            continue;
        }
        if left == 0 {
            more = Some(Spot { state, cursor: None });
            break;
        }
        let mut jobs = inspector.jobs(&args.queue, state)?;
        if let Some(kind) = &args.kind {
            jobs = jobs.kind(kind)?;
        }
        if let Some(cursor) = at.take().and_then(|spot| spot.cursor) {
            jobs = jobs.from_cursor(cursor);
        }
        while left > 0 {
            jobs = jobs.page_size(left.min(PAGE));
            let page = match jobs.next_page().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(error) => {
                    // What was found before is not lost for it.
                    if !rows.is_empty() {
                        tell_end(global, rows, None)?;
                    }
                    return Err(error.into());
                }
            };
            left -= page.len();
            for job in &page {
                let row = Row::of(&args.queue, state, job);
                if global.json {
                    out::object(&row)?;
                } else {
                    rows.push(row.cells());
                }
            }
        }
        if let Some(cursor) = jobs.cursor() {
            more = Some(Spot { state, cursor: Some(cursor.to_owned()) });
            break;
        }
    }
    tell_end(global, rows, more.as_ref())
}

fn tell_end(global: &Global, rows: Vec<[String; 5]>, more: Option<&Spot>) -> Result<(), Failure> {
    let cursor = more.map(Spot::text);
    if global.json {
        return cursor.map_or(Ok(()), |cursor| out::object(&More { cursor: &cursor }));
    }
    if rows.is_empty() {
        out::talk(global, "no such jobs");
    } else {
        out::table(["id", "kind", "state", "enqueued", "next"], rows)?;
    }
    if let Some(cursor) = cursor {
        out::talk(
            global,
            &format!("there may be more: the same command with --cursor '{cursor}' goes on"),
        );
    }
    Ok(())
}

impl<'a> Row<'a> {
    fn of(queue: &'a QueueName, state: State, job: &'a Listed) -> Self {
        let decoded = job.envelope.as_ref().ok();
        let at = job.at.map(|at| at.as_millis());
        let is_due = matches!(state, State::Scheduled | State::Retry);
        Self {
            id: job.id.as_str(),
            queue: queue.as_str(),
            state,
            envelope: decoded.map(|(envelope, at)| EnvelopeFields::of(envelope, *at)),
            undecodable: job.envelope.as_ref().err().map(ToString::to_string),
            due_at: at.filter(|_| is_due),
            lease_expires_at: at.filter(|_| state == State::Active),
            evicted_at: at.filter(|_| !state.is_unfinished()),
        }
    }

    fn cells(&self) -> [String; 5] {
        let shown = |ms: u64| units::shown(sprag::Timestamp::from_millis(ms));
        let next = match (self.due_at, self.lease_expires_at, self.evicted_at) {
            (Some(at), ..) => format!("due {}", shown(at)),
            (_, Some(at), _) => format!("held until {}", shown(at)),
            (.., Some(at)) => format!("kept until {}", shown(at)),
            _ => "-".to_owned(),
        };
        let (kind, enqueued) = match &self.envelope {
            Some(envelope) => (envelope.kind().to_owned(), shown(envelope.enqueued_at())),
            None => ("undecodable".to_owned(), "-".to_owned()),
        };
        [self.id.to_owned(), kind, self.state.to_string(), enqueued, next]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_one_word_and_read_again() {
        for (text, state, cursor) in [
            ("pending:9+100", State::Pending, Some("9 100")),
            ("retry:1700+a+b:c", State::Retry, Some("1700 a+b:c")),
            ("active:", State::Active, None),
        ] {
            let spot = Spot::read(text).expect("a cursor");
            assert_eq!((spot.state, spot.cursor.as_deref()), (state, cursor));
            assert_eq!(spot.text(), text);
        }
        assert!(Spot::read("9 100").is_err() && Spot::read("lost:9").is_err());
    }
}
