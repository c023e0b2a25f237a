//! Queues, workers, and the jobs of a state.

use super::{
    super::model::{Jobs, Model, QueueRow, Queues, Rate, Workers, count as jobs_in},
    paint::{Paint, Pieces, line, row, without},
    table::{Cell, Column, Table},
    text::{count, from, rate, safe, span, spark},
};
use ratatui::{buffer::Buffer, layout::Rect};
use sprag::{
    State, Timestamp,
    store::{Listed, QueueInfo, WorkerInfo},
};
use std::time::Duration;

/// A sparkline is so wide, at most and at least.
const SPARK: (usize, usize) = (30, 5);

const QUEUES: [Column; 13] = [
    Column::text("queue", 0, 12, 40),
    Column::text("", 1, 6, 6),
    Column::number("pending", 2),
    Column::number("sched", 11),
    Column::number("active", 6),
    Column::number("retry", 7),
    Column::number("arch", 12),
    Column::number("quar", 9),
    Column::number("unfin/limit", 8),
    Column::number("oldest", 3),
    Column::number("done/s", 4),
    Column::number("fail/s", 5),
    Column::text("rate", 10, SPARK.1, SPARK.0).showing_the_end(),
];

pub(super) fn queues(model: &mut Model, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    let queues = &mut model.queues;
    let rows: Vec<_> = queues.shown().map(|row| queue_cells(queues, row, paint)).collect();
    let table = Table { columns: QUEUES, rows };
    let list = without(area, 0, 1);
    let room = table.draw(buffer, list, paint, &mut queues.choice);
    if table.rows.is_empty() {
        let text = match (model.queues_heard, queues.filter.is_empty()) {
            (false, _) => "asking …",
            (true, true) => "there is no queue",
            (true, false) => "no queue has that in its name",
        };
        line(buffer, row(list, 1), &[(text.to_owned(), paint.faint())]);
    }
    let last = usize::from(area.height.saturating_sub(1));
    line(buffer, row(area, last), &totals(queues, paint));
    room
}

fn queue_cells(queues: &Queues, row: &QueueRow, paint: Paint) -> [Cell; 13] {
    let mut cells: [Cell; 13] = std::array::from_fn(|_| (String::new(), paint.plain()));
    cells[0].0 = row.queue.to_string();
    let info = match &row.info {
        Ok(info) => info,
        Err(_) => {
            cells[1] = ("BROKEN".to_owned(), paint.bad());
            return cells;
        }
    };
    if info.paused {
        cells[1] = ("PAUSED".to_owned(), paint.warning());
    }
    let counts = [info.pending, info.scheduled, info.active, info.retry, info.archived];
    for (cell, n) in cells.iter_mut().skip(2).zip(counts) {
        cell.0 = count(n);
    }
    cells[7] = (count(info.quarantined), some(info.quarantined, paint));
    cells[8] = limited(info, paint);
    cells[9].0 =
        info.oldest_pending_ms.map_or("-".to_owned(), |ms| span(Duration::from_millis(ms)));
    cells[10].0 = row.rate.map_or("-".to_owned(), |of| rate(of.completed));
    let failing = row.rate.is_some_and(|of| of.failed > 0.0);
    let style = if failing { paint.bad() } else { paint.plain() };
    cells[11] = (row.rate.map_or("-".to_owned(), |of| rate(of.failed)), style);
    cells[12] = (spark(queues.past(&row.queue), SPARK.0), paint.good());
    cells
}

fn some(n: u64, paint: Paint) -> ratatui::style::Style {
    if n > 0 { paint.bad() } else { paint.plain() }
}

fn limited(info: &QueueInfo, paint: Paint) -> Cell {
    let unfinished = count(info.unfinished);
    match info.limit {
        None => (format!("{unfinished}/-"), paint.plain()),
        Some(limit) => {
            let full = info.unfinished >= limit;
            let style = if full { paint.bad() } else { paint.plain() };
            (format!("{unfinished}/{}", count(limit)), style)
        }
    }
}

fn totals(queues: &Queues, paint: Paint) -> Pieces {
    let sum = queues.totals();
    let Rate { completed, failed } = sum.rate.unwrap_or_default();
    let name = if sum.queues == 1 { "queue" } else { "queues" };
    let text = format!(
        "{} {name}: {} pending, {} active, {} retry, {} done/s, {} failed/s, {} quar, {} sched, {} \
         arch",
        sum.queues,
        count(sum.pending),
        count(sum.active),
        count(sum.retry),
        rate(completed),
        rate(failed),
        count(sum.quarantined),
        count(sum.scheduled),
        count(sum.archived),
    );
    vec![(text, paint.strong())]
}

const WORKERS: [Column; 9] = [
    Column::text("worker", 0, 14, 60),
    Column::text("state", 1, 8, 8),
    Column::number("busy", 2),
    Column::number("seen", 3),
    Column::text("queues", 4, 6, 40),
    Column::text("host", 6, 6, 30),
    Column::number("pid", 5),
    Column::number("up", 7),
    Column::text("version", 8, 7, 12),
];

pub(super) fn workers(model: &mut Model, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    let now = model.now;
    let workers: &mut Workers = &mut model.workers;
    let rows: Vec<_> = workers.shown().map(|worker| worker_cells(worker, now, paint)).collect();
    let table = Table { columns: WORKERS, rows };
    let list = without(area, 0, 1);
    let room = table.draw(buffer, list, paint, &mut workers.choice);
    if table.rows.is_empty() {
        let text = match (&workers.all, workers.filter.is_empty()) {
            (None, _) => "asking …",
            (Some(_), true) => "there is no worker",
            (Some(_), false) => "no worker has that in its id, host or queues",
        };
        line(buffer, row(list, 1), &[(text.to_owned(), paint.faint())]);
    }
    let all = workers.all.iter().flatten();
    let (gone, live): (Vec<_>, Vec<_>) = all.partition(|worker| worker.gone);
    let busy: usize = live.iter().map(|worker| worker.busy).sum();
    let room_for: usize = live.iter().map(|worker| worker.concurrency).sum();
    let text = format!("{} workers, {busy}/{room_for} busy, {} gone", live.len(), gone.len());
    let last = usize::from(area.height.saturating_sub(1));
    line(buffer, row(area, last), &[(text, paint.strong())]);
    room
}

fn worker_cells(worker: &WorkerInfo, now: Timestamp, paint: Paint) -> [Cell; 9] {
    let (state, style) = match worker.gone {
        true => ("GONE", paint.bad()),
        false if worker.state == sprag::store::WorkerState::Running => {
            (worker.state.as_str(), paint.good())
        }
        false => (worker.state.as_str(), paint.warning()),
    };
    let plain = |text: String| (text, paint.plain());
    [
        plain(safe(&worker.id)),
        (state.to_owned(), style),
        plain(format!("{}/{}", worker.busy, worker.concurrency)),
        plain(format!("{} ago", span(now.since(worker.seen_at)))),
        plain(safe(&worker.queues.join(" "))),
        plain(safe(&worker.host)),
        plain(worker.pid.to_string()),
        plain(span(now.since(worker.started_at))),
        plain(safe(&worker.version)),
    ]
}

const JOBS: [Column; 5] = [
    Column::text("id", 0, 20, 128),
    Column::text("kind", 2, 8, 40),
    Column::number("enqueued", 3),
    Column::text("next", 1, 10, 22),
    Column::number("prio", 4),
];

pub(super) fn jobs(model: &mut Model, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    let now = model.now;
    let Some(jobs) = &mut model.jobs else { return 1 };
    line(buffer, row(area, 0), &states(jobs, paint, area.width.into()));
    let state = jobs.state;
    let rows: Vec<_> = jobs.shown().map(|job| job_cells(job, state, now, paint)).collect();
    let table = Table { columns: JOBS, rows };
    let list = without(area, 1, 1);
    let room = table.draw(buffer, list, paint, &mut jobs.choice);
    if table.rows.is_empty() {
        let text = match (&jobs.jobs, jobs.filter.is_empty()) {
            (None, _) => "asking …".to_owned(),
            (Some(_), true) => format!("no {state} job here"),
            (Some(_), false) => "no job of this page has that in its id or kind".to_owned(),
        };
        line(buffer, row(list, 1), &[(text, paint.faint())]);
    }
    let (page, more) = jobs.page();
    let shown = jobs.jobs.iter().flatten().count();
    let more = if more { "; ] shows more" } else { "" };
    let text = format!("page {page}: {shown} jobs{more}");
    let last = usize::from(area.height.saturating_sub(1));
    line(buffer, row(area, last), &[(text, paint.strong())]);
    room
}

fn short(state: State) -> &'static str {
    match state {
        State::Scheduled => "sched",
        State::Pending => "pend",
        State::Active => "active",
        State::Retry => "retry",
        State::Completed => "done",
        State::Archived => "arch",
        State::Cancelled => "canc",
        State::Quarantined => "quar",
    }
}

/// All states with their counts, this one marked; where that is too wide, this one alone.
fn states(jobs: &Jobs, paint: Paint, width: usize) -> Pieces {
    let label = |state: State, name: &str| match &jobs.counts {
        Some(counts) => format!("{name} {}", count(jobs_in(counts, state))),
        None => name.to_owned(),
    };
    let whole = |state: State| label(state, state.as_str());
    let brief = |state: State| label(state, short(state));
    let width_of = |text: &dyn Fn(State) -> String| -> usize {
        State::ALL.into_iter().map(|state| text(state).len() + 2).sum()
    };
    let label: &dyn Fn(State) -> String = match () {
        () if width_of(&whole) <= width => &whole,
        () if width_of(&brief) <= width => &brief,
        () => return vec![(format!("< {} >", whole(jobs.state)), paint.strong())],
    };
    let mut pieces = Vec::new();
    for state in State::ALL {
        let chosen = state == jobs.state;
        let style = if chosen { paint.chosen() } else { paint.plain() };
        let text =
            if chosen { format!("[{}]", label(state)) } else { format!(" {} ", label(state)) };
        pieces.push((text, style));
    }
    pieces
}

fn job_cells(job: &Listed, state: State, now: Timestamp, paint: Paint) -> [Cell; 5] {
    let plain = |text: String| (text, paint.plain());
    let (kind, enqueued, priority) = match &job.envelope {
        Ok((envelope, at)) => {
            (plain(safe(envelope.kind().as_str())), from(now, *at), envelope.priority().to_string())
        }
        Err(_) => (("undecodable".to_owned(), paint.bad()), "-".to_owned(), "-".to_owned()),
    };
    [
        plain(safe(job.id.as_str())),
        kind,
        plain(enqueued),
        plain(next(job, state, now)),
        plain(priority),
    ]
}

fn next(job: &Listed, state: State, now: Timestamp) -> String {
    let Some(at) = job.at else { return "-".to_owned() };
    match state {
        State::Scheduled | State::Retry => format!("due {}", from(now, at)),
        State::Active => format!("lease ends {}", from(now, at)),
        _ => format!("kept {}", span(at.since(now))),
    }
}
