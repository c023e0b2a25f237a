//! Draws what the model knows. Pure: the same model is the same picture.
//!
//! From the top: where one is; what is wrong, if something is; the list or the job; what came of the
//! last action, or a question; the keys.

mod help;
mod job;
mod lists;
mod paint;
mod table;
#[cfg(test)]
mod tests;
mod text;

use super::model::{Mode, Model, Place};
use paint::{Paint, Pieces, line, row, without};
use ratatui::{buffer::Buffer, layout::Rect};
use text::{clock, cut_to, safe, span, wide};

pub(super) fn draw(model: &mut Model, area: Rect, buffer: &mut Buffer) {
    let paint = Paint { colour: model.colour };
    title(model, paint, buffer, row(area, 0));
    let banner = banner(model);
    let body = without(area, 1 + u16::from(banner.is_some()), 2);
    if let Some(text) = banner {
        let style = paint.bad().patch(paint.chosen());
        line(buffer, row(area, 1), &[(text, style)]);
    }
    model.rows = match (&model.mode, model.place()) {
        (Mode::Help, place) => help::draw(place, paint, buffer, body),
        (_, Place::Queues) => lists::queues(model, paint, buffer, body),
        (_, Place::Workers) => lists::workers(model, paint, buffer, body),
        (_, Place::Jobs) => lists::jobs(model, paint, buffer, body),
        (_, Place::Job) => job::job(model, paint, buffer, body),
    };
    if model.is_old() && model.mode != Mode::Help {
        buffer.set_style(body, paint.faint());
    }
    let last = usize::from(area.height);
    line(buffer, row(area, last.saturating_sub(2)), &status(model, paint, area.width.into()));
    let keys = help::footer(&model.mode, model.place(), paint);
    line(buffer, row(area, last.saturating_sub(1)), &keys);
}

fn title(model: &Model, paint: Paint, buffer: &mut Buffer, place: Rect) {
    let mut pieces: Pieces = vec![("sprag top  ".to_owned(), paint.strong())];
    let tab = |name: &str, here| match here {
        true => (format!("[{name}]"), paint.chosen()),
        false => (format!(" {name} "), paint.plain()),
    };
    match (model.place(), &model.jobs, &model.job) {
        (Place::Job, _, Some(job)) => {
            let text = format!("{} > {}", safe(job.queue.as_str()), safe(job.id.as_str()));
            pieces.push((text, paint.plain()));
        }
        (Place::Jobs, Some(jobs), _) => {
            pieces.push((
                format!("{} > {} jobs", safe(jobs.queue.as_str()), jobs.state),
                paint.plain(),
            ));
            if jobs.counts.as_ref().is_some_and(|counts| counts.paused) {
                pieces.push((" PAUSED".to_owned(), paint.warning()));
            }
        }
        (here, ..) => {
            pieces.push(tab("Queues", here == Place::Queues));
            pieces.push(tab("Workers", here == Place::Workers));
            if here == Place::Queues {
                pieces.push((format!("  by {}", model.queues.sort.as_str()), paint.faint()));
            }
        }
    }
    line(buffer, place, &pieces);
    let time = clock(model.now);
    let taken: usize = pieces.iter().map(|(text, _)| wide(text)).sum();
    let width = usize::from(place.width);
    // Where there is no room, there is no time.
    if let Ok(x) = u16::try_from(width.saturating_sub(time.len()))
        && taken < usize::from(x)
    {
        buffer.set_stringn(place.x + x, place.y, &time, time.len(), paint.faint());
    }
}

/// What is wrong with what is shown.
fn banner(model: &Model) -> Option<String> {
    let silent = model.silent_for().map(|silent| format!("no answer for {}", span(silent)));
    match (&model.trouble, silent) {
        (Some(trouble), _) if trouble.gone => Some(safe(&trouble.text)),
        (Some(trouble), silent) => {
            let silent = silent.map(|silent| format!(", {silent}")).unwrap_or_default();
            Some(format!("trying again{silent}: {}", safe(&trouble.text)))
        }
        (None, Some(silent)) => Some(format!("{silent}; trying again")),
        (None, None) => None,
    }
}

fn status(model: &Model, paint: Paint, width: usize) -> Pieces {
    if let Mode::Confirm(action) = &model.mode {
        let ask = "? (y/n)";
        let text = cut_to(&safe(&action.text()), width.saturating_sub(ask.len()));
        return vec![(text + ask, paint.warning())];
    }
    if model.mode == Mode::Filter {
        return vec![(format!("/{}_", safe(model.filter().unwrap_or_default())), paint.strong())];
    }
    if let Some(told) = model.told() {
        let style = if told.failed { paint.bad() } else { paint.good() };
        return vec![(safe(&told.text), style)];
    }
    let chosen = model.queues.chosen().filter(|_| model.place() == Place::Queues);
    if let Some(Err(why)) = chosen.map(|row| &row.info) {
        return vec![(safe(why), paint.bad())];
    }
    match model.filter() {
        Some(filter) if !filter.is_empty() => {
            vec![(format!("filter: {}", safe(filter)), paint.warning())]
        }
        _ => Vec::new(),
    }
}
