//! Keys: the last line, and all of them.

use super::{
    super::model::{Mode, Place},
    paint::{Paint, Pieces, line, row},
    text::{wide, wrapped},
};
use ratatui::{buffer::Buffer, layout::Rect};

/// A key, a word for it, and what it does.
type Key = (&'static str, &'static str, &'static str);

const QUIT: Key = ("q", "quit", "quit; also Ctrl-C");
const BACK: Key = ("q", "back", "back; also Esc. Ctrl-C quits");
const HELP: Key = ("?", "help", "this list");
const FILTER: Key = ("/", "filter", "show only what has a text in it; Esc ends that");
const MOVE: Key = ("Up/Down", "", "move; also j k, PgUp PgDn, Home End");
const PAUSE: Key = ("p", "pause", "pause the queue, or resume it");
const CANCEL: Key = ("c", "cancel", "cancel the job, also while it runs");
const RERUN: Key = ("r", "rerun", "start a finished job again");
const RUN: Key = ("n", "run", "run a scheduled or retry job now");
const ARCHIVE: Key = ("a", "archive", "give an unfinished job up");
const DELETE: Key = ("d", "delete", "delete a job that does not run");
const RELEASE: Key = ("o", "release", "open the fingerprint of a quarantined job");

const QUEUES: [Key; 8] = [
    HELP,
    QUIT,
    ("Enter", "jobs", "the queue's jobs"),
    PAUSE,
    ("s", "sort", "sort by name, pending, rate or age"),
    FILTER,
    ("Tab", "workers", "workers"),
    MOVE,
];
const WORKERS: [Key; 7] = [
    HELP,
    QUIT,
    ("u", "quiet", "ask the worker to claim nothing more"),
    ("x", "stop", "ask the worker to end"),
    FILTER,
    ("Tab", "queues", "queues"),
    MOVE,
];
const JOBS: [Key; 14] = [
    HELP,
    BACK,
    ("Left/Right", "state", "jobs of another state"),
    ("Enter", "job", "all that is known of the job"),
    CANCEL,
    RERUN,
    RUN,
    ARCHIVE,
    DELETE,
    RELEASE,
    ("[ ]", "page", "100 jobs before and after"),
    PAUSE,
    FILTER,
    MOVE,
];
const JOB: [Key; 10] = [
    HELP,
    BACK,
    ("v", "payload", "show the payload, or hide it"),
    CANCEL,
    RERUN,
    RUN,
    ARCHIVE,
    DELETE,
    RELEASE,
    ("Up/Down", "scroll", "scroll; also j k, PgUp PgDn, Home End"),
];

fn keys(place: Place) -> &'static [Key] {
    match place {
        Place::Queues => &QUEUES,
        Place::Workers => &WORKERS,
        Place::Jobs => &JOBS,
        Place::Job => &JOB,
    }
}

pub(super) fn footer(mode: &Mode, place: Place, paint: Paint) -> Pieces {
    let told: &[Key] = match mode {
        Mode::Walk => keys(place),
        Mode::Confirm(_) => &[("y", "yes", ""), ("any other key", "no", "")],
        Mode::Filter => &[("Enter", "keep", ""), ("Esc", "no filter", "")],
        Mode::Help => &[("any key", "back", ""), ("q", "quit", "")],
    };
    let mut pieces = Vec::new();
    for (key, word, _) in told.iter().filter(|(_, word, _)| !word.is_empty()) {
        pieces.push(((*key).to_owned(), paint.key()));
        pieces.push((format!(" {word}  "), paint.plain()));
    }
    pieces
}

/// One key a line; where there is no room for that, one after the other.
pub(super) fn draw(place: Place, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    let (keys, room) = (keys(place), usize::from(area.height));
    if keys.len() <= room {
        let names = keys.iter().map(|(key, ..)| wide(key)).max().unwrap_or(0);
        for (below, (key, _, what)) in keys.iter().enumerate() {
            let key = (format!("{key:<names$}  "), paint.key());
            line(buffer, row(area, below), &[key, ((*what).to_owned(), paint.plain())]);
        }
        return room;
    }
    let short = keys.iter().filter(|(_, word, _)| !word.is_empty());
    let all: Vec<_> = short.map(|(key, word, _)| format!("{key} {word}")).collect();
    for (below, text) in wrapped(&all.join(", "), area.width.into()).into_iter().enumerate() {
        line(buffer, row(area, below), &[(text, paint.plain())]);
    }
    room
}
