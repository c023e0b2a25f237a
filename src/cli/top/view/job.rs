//! Everything known of one job.

use super::{
    super::model::{Job, Model},
    paint::{Paint, line, row},
    text::{from, safe, span, wide, wrapped},
};
use crate::{envelope::EnvelopeFields, out::cut, payload::Shown, units};
use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use serde_json::Value;
use sprag::{
    Timestamp,
    store::{Failure, JobInfo},
};
use std::time::Duration;

/// Of a text so much is shown; `sprag job show` tells all of it.
const LONGEST: usize = 16_384;

/// A name, and what is to be told of it.
struct Entry {
    name: String,
    text: String,
    style: Style,
}

pub(super) fn job(model: &mut Model, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    let now = model.now;
    let room = usize::from(area.height);
    let Some(job) = &mut model.job else { return room };
    let Some(info) = &job.info else {
        line(buffer, row(area, 0), &[("asking …".to_owned(), paint.faint())]);
        return room;
    };
    let lines = laid_out(&entries(job, info, now, paint), area.width.into());
    job.scroll = job.scroll.min(lines.len().saturating_sub(room));
    for (below, (name, text, style)) in lines.iter().skip(job.scroll).take(room).enumerate() {
        line(buffer, row(area, below), &[(name.clone(), paint.strong()), (text.clone(), *style)]);
    }
    room
}

/// Texts in a column of their own, as many lines as they need.
fn laid_out(entries: &[Entry], width: usize) -> Vec<(String, String, Style)> {
    let names = entries.iter().map(|entry| wide(&entry.name)).max().unwrap_or(0).min(width / 3);
    let mut lines = Vec::new();
    for entry in entries {
        let name = super::text::cut_to(&entry.name, names);
        let mut name = format!("{name}{}  ", " ".repeat(names - wide(&name)));
        for text in wrapped(&entry.text, width.saturating_sub(names + 2)) {
            lines.push((name.clone(), text, entry.style));
            name = " ".repeat(names + 2);
        }
    }
    lines
}

fn entries(job: &Job, info: &JobInfo, now: Timestamp, paint: Paint) -> Vec<Entry> {
    let entry =
        |name: &str, text: String, style| Entry { name: safe(name), text: text_of(&text), style };
    let plain = paint.plain();
    let mut all = vec![entry("state", state(info), paint.strong())];
    match &info.envelope {
        Ok((envelope, _)) => all.push(entry("kind", envelope.kind().to_string(), plain)),
        Err(why) => all.push(entry("undecodable", why.to_string(), paint.bad())),
    }
    all.push(entry("attempts", attempts(info), plain));
    all.extend(
        timeline(info, now, paint).into_iter().map(|(name, text, style)| entry(name, text, style)),
    );
    all.extend(info.progress.iter().map(|told| entry("progress", told.clone(), plain)));
    let result = info.result.as_deref().map(String::from_utf8_lossy);
    all.extend(result.map(|result| entry("result", result.into_owned(), plain)));
    all.push(payload(job, info, paint));
    all.extend(options(info).into_iter().map(|(name, text)| entry(&name, text, plain)));
    all
}

fn text_of(text: &str) -> String {
    safe(&cut(text, LONGEST))
}

fn state(info: &JobInfo) -> String {
    match &info.ending {
        Some(ending) => format!("{} ({})", info.state, ending.reason.as_str().replace('_', " ")),
        None => info.state.to_string(),
    }
}

fn attempts(info: &JobInfo) -> String {
    let most =
        info.envelope.as_ref().map(|(envelope, _)| format!(" of {}", envelope.max_attempts()));
    format!("{} failed{}, {} crashed", info.attempt, most.unwrap_or_default(), info.crash)
}

/// What happened and will, in order.
fn timeline(info: &JobInfo, now: Timestamp, paint: Paint) -> Vec<(&'static str, String, Style)> {
    let at = |at: Timestamp| format!("{} ({})", units::shown(at), from(now, at));
    let plain = paint.plain();
    let mut all = Vec::new();
    if let Ok((envelope, enqueued)) = &info.envelope {
        all.push(("enqueued", at(*enqueued), plain));
        if let sprag::When::At(run_at) = envelope.run_at() {
            all.push(("run at", at(run_at), plain));
        }
    }
    let failed = |failure| ("failed", failed(failure, &at), paint.bad());
    all.extend(info.errors.iter().map(failed));
    all.extend(info.due_at.map(|due| ("due", at(due), paint.warning())));
    if let Some(holder) = &info.holder {
        let lease = from(now, holder.lease_expires_at);
        let text =
            format!("by {} with fence {}; lease ends {lease}", holder.worker, holder.fence.0);
        all.push(("held", text, paint.good()));
    }
    if let Some(ending) = &info.ending {
        let by = ending.worker.as_ref().map(|worker| format!(", held by {worker}"));
        all.push(("ended", at(ending.at) + &by.unwrap_or_default(), plain));
    }
    all.extend(info.evicted_at.map(|until| ("kept until", at(until), plain)));
    all
}

fn failed(failure: &Failure, at: &impl Fn(Timestamp) -> String) -> String {
    let what = match (failure.attempt, failure.crash) {
        (Some(attempt), _) => format!("attempt {attempt}"),
        (None, Some(crash)) => format!("crash {crash}"),
        (None, None) => "failure".to_owned(),
    };
    let worker = failure.worker.as_ref().map(|worker| format!(" by {worker}")).unwrap_or_default();
    let error = failure.error.as_deref().unwrap_or("its worker vanished");
    format!("{what}, {}{worker}: {error}", at(failure.at))
}

fn payload(job: &Job, info: &JobInfo, paint: Paint) -> Entry {
    let Ok((envelope, _)) = &info.envelope else {
        let text = "not legible".to_owned();
        return Entry { name: "payload".to_owned(), text, style: paint.faint() };
    };
    if !job.payload {
        let text = format!("{} bytes; v shows it", envelope.payload().len());
        return Entry { name: "payload".to_owned(), text, style: paint.faint() };
    }
    let shown = Shown::of(envelope);
    let name = shown.name().replace('_', " ");
    Entry { name, text: text_of(shown.text()), style: paint.plain() }
}

/// The other fields of the record, under the names that `job show` gives them.
fn options(info: &JobInfo) -> Vec<(String, String)> {
    let Ok((envelope, at)) = &info.envelope else { return Vec::new() };
    let fields = serde_json::to_value(EnvelopeFields::of(envelope, *at)).unwrap_or_default();
    let told_already = ["kind", "enqueued_at", "run_at"];
    let fields = fields.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !told_already.contains(&name.as_str()));
    fields.map(|(name, value)| option(name, value)).collect()
}

fn option(name: &str, value: &Value) -> (String, String) {
    let shown = |name: &str| name.replace('_', " ");
    match (name.strip_suffix("_at"), name.strip_suffix("_ms"), value) {
        (Some(name), _, Value::Number(ms)) => {
            let at = Timestamp::from_millis(ms.as_u64().unwrap_or_default());
            (shown(name), units::shown(at))
        }
        (_, Some(name), Value::Number(ms)) => {
            let ms = Duration::from_millis(ms.as_u64().unwrap_or_default());
            (shown(name), span(ms))
        }
        (.., Value::String(text)) => (shown(name), text.clone()),
        (.., value) => (shown(name), value.to_string()),
    }
}
