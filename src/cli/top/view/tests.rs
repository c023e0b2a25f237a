//! Screens as text, from fixed data: `src/cli/top/view/screens`. `UPDATE_SCREENS=1` writes them anew.

use super::{super::data::*, super::model::*, *};
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent},
};
use sprag::{
    Codec, Envelope, Fence, JobId, Kind, QueueName, State, Timestamp, When, WorkerId,
    store::{
        Ending, EndingReason, Failure, Holder, JobInfo, Listed, QueueInfo, WorkerInfo, WorkerState,
    },
};
use std::{fs, path::Path, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

fn at(before: Duration) -> Timestamp {
    let now = crate::units::time("2026-11-30T03:12:07Z").expect("a time");
    Timestamp::from_millis(now.as_millis() - crate::units::millis(before))
}

fn now() -> Timestamp {
    at(Duration::ZERO)
}

fn later(by: u64) -> Timestamp {
    now() + Duration::from_secs(by)
}

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue")
}

fn id(n: u32) -> JobId {
    JobId::new(format!("0199f0a2-7c1b-7d3e-9f10-{n:012}")).expect("an id")
}

fn info(queue: &str, counts: [u64; 8], done: [u64; 2]) -> QueueInfo {
    let [pending, scheduled, active, retry, completed, archived, cancelled, quarantined] = counts;
    QueueInfo {
        queue: queue.to_owned(),
        pending,
        scheduled,
        active,
        retry,
        completed,
        archived,
        cancelled,
        quarantined,
        unfinished: pending + scheduled + active + retry,
        limit: (queue == "email").then_some(10_000),
        paused: queue == "reports",
        oldest_pending_ms: match queue {
            "reports" => Some(11_520_000),
            _ => (pending > 0).then_some(pending * 137),
        },
        completed_today: done[0],
        failed_today: done[1],
    }
}

fn found(step: u64) -> Vec<Found> {
    let wave =
        |at: u64| [1, 3, 9, 20, 34, 41, 40, 31, 18, 9, 5, 12, 25, 38, 44, 46][at as usize % 16];
    let wave = |times: u64| (0..step).map(|at| wave(at * times)).sum::<u64>();
    vec![
        (name("email"), Ok(info("email", [1_204, 0, 16, 3, 0, 12, 0, 0], [9_000 + wave(1), step]))),
        (name("invoices"), Err("backend: wrong type".to_owned())),
        (name("reports"), Ok(info("reports", [88, 4, 0, 0, 0, 0, 0, 2], [700, 9]))),
        (
            name("webhooks"),
            Ok(info(
                "webhooks",
                [3, 120, 40, 2_911, 0, 160_221, 0, 0],
                [5_000_000 + 300 * step + 9 * wave(3), 4],
            )),
        ),
    ]
}

fn model() -> Model {
    Model::new(now(), SECOND, true)
}

fn answer(model: &mut Model, at: Timestamp, data: Result<Data, Trouble>) {
    model.answered(Answer { want: model.want(), at, data });
}

fn with_queues() -> Model {
    let mut model = model();
    for step in 0..=24 {
        let at = at(SECOND * (24 - u32::try_from(step).expect("small")));
        answer(&mut model, at, Ok(Data::Queues(found(step))));
    }
    model
}

fn worker(n: u32, state: WorkerState, silent: u64) -> WorkerInfo {
    WorkerInfo {
        id: format!("app-{n}:{}:7f3a", 4_000 + n),
        queues: vec!["email".to_owned(), "webhooks".to_owned()],
        host: format!("app-{n}"),
        pid: 4_000 + n,
        version: "0.1.0".to_owned(),
        concurrency: 16,
        busy: 5 * n as usize,
        state,
        jobs: Vec::new(),
        started_at: at(Duration::from_secs(7_500)),
        seen_at: at(Duration::from_secs(silent)),
        gone: silent >= 60,
    }
}

fn with_workers() -> Model {
    let mut model = with_queues();
    press(&mut model, KeyCode::Tab);
    let workers = vec![
        worker(1, WorkerState::Running, 2),
        worker(2, WorkerState::Quiet, 4),
        worker(3, WorkerState::Running, 312),
    ];
    answer(&mut model, now(), Ok(Data::Workers(workers)));
    model
}

fn envelope(n: u32, payload: &str) -> Envelope {
    let kind = Kind::new("email:welcome").expect("a kind");
    let job = Envelope::builder(name("email"), kind).id(id(n));
    let job = job.payload(payload.as_bytes().to_vec(), Codec::Json).run_at(When::At(later(0)));
    job.timeout(SECOND * 90).header("tenant", "acme").build().expect("valid")
}

fn with_jobs() -> Model {
    let mut model = with_queues();
    press(&mut model, KeyCode::Enter);
    let jobs = (1..=4).map(|n| Listed {
        id: id(n),
        envelope: Ok((envelope(n, "{}"), at(SECOND * (600 - n)))),
        at: None,
    });
    let counts = info("email", [1_204, 0, 16, 3, 0, 12, 0, 0], [0, 0]);
    let data = Data::Jobs { counts, jobs: jobs.collect(), next: Some("4 1".to_owned()) };
    answer(&mut model, now(), Ok(data));
    model
}

fn failure(attempt: Option<u32>, crash: Option<u32>, ago: u32, error: Option<&str>) -> Failure {
    let worker = Some("app-1:4001:7f3a".to_owned());
    Failure { at: at(SECOND * ago), attempt, crash, worker, error: error.map(str::to_owned) }
}

fn job() -> JobInfo {
    JobInfo {
        id: id(1),
        state: State::Archived,
        envelope: Ok((envelope(1, r#"{"user":7,"text":"a\u001bb"}"#), at(SECOND * 3_700))),
        attempt: 2,
        crash: 1,
        due_at: None,
        holder: None,
        progress: None,
        errors: vec![
            failure(Some(1), None, 3_600, Some("mail.example.com:25: connection refused")),
            failure(None, Some(1), 1_800, None),
            failure(Some(2), None, 12, Some("550 \u{1b}[2J\u{7} no\nsuch \u{202e}user")),
        ],
        result: None,
        ending: Some(Ending {
            reason: EndingReason::Exhausted,
            at: at(SECOND * 12),
            worker: Some(WorkerId::new("app-1:4001:7f3a").expect("an id")),
        }),
        evicted_at: Some(later(90 * 86_400)),
    }
}

fn with_job() -> Model {
    let mut model = with_jobs();
    press(&mut model, KeyCode::Enter);
    answer(&mut model, now(), Ok(Data::Job(job().into())));
    model
}

fn press(model: &mut Model, code: KeyCode) {
    model.key(KeyEvent::from(code));
}

fn terminal(model: &mut Model, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(model, frame.area(), frame.buffer_mut()));
    drawn.expect("drawn");
    terminal
}

fn screen(model: &mut Model, width: u16, height: u16) -> String {
    let terminal = terminal(model, width, height);
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

#[track_caller]
fn is(name: &str, shown: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/top/view/screens");
    let file = folder.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        fs::write(&file, shown).expect("written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(expected == shown, "{name}: shown is\n{shown}\nand not\n{expected}");
}

#[test]
fn queues_as_they_stand_in_the_readme() {
    let shown = screen(&mut with_queues(), 104, 9);
    is("queues", &shown);
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&format!("```text\n{shown}```\n")), "README.md shows another screen");
}

#[test]
fn each_place_on_a_usual_terminal_and_on_the_smallest() {
    for (name, make) in [
        ("queues", with_queues as fn() -> Model),
        ("workers", with_workers),
        ("jobs", with_jobs),
        ("job", with_job),
    ] {
        is(&format!("{name}-80x24"), &screen(&mut make(), 80, 24));
        is(&format!("{name}-40x10"), &screen(&mut make(), 40, 10));
    }
}

#[test]
fn there_is_nothing_yet() {
    let mut model = model();
    assert!(screen(&mut model, 80, 24).contains("asking …"));
    answer(&mut model, now(), Ok(Data::Queues(Vec::new())));
    is("empty", &screen(&mut model, 60, 10));
    press(&mut model, KeyCode::Tab);
    answer(&mut model, now(), Ok(Data::Workers(Vec::new())));
    assert!(screen(&mut model, 80, 24).contains("there is no worker"));
}

#[test]
fn trouble_is_told_and_what_is_old_is_grey_until_there_is_an_answer() {
    let mut model = with_queues();
    let text = "store unavailable: connection refused".to_owned();
    answer(&mut model, now(), Err(Trouble { text, gone: false }));
    model.now = later(20);
    is("trouble", &screen(&mut model, 80, 12));
    let dim = |model: &mut Model| {
        let terminal = terminal(model, 80, 12);
        let cell = &terminal.backend().buffer()[(0, 4)];
        cell.modifier.contains(ratatui::style::Modifier::DIM)
    };
    assert!(dim(&mut model));
    answer(&mut model, later(20), Ok(Data::Queues(found(25))));
    assert!(!dim(&mut model) && !screen(&mut model, 80, 12).contains("trying again"));
    model.now = later(30);
    let silent = screen(&mut model, 80, 12);
    assert!(dim(&mut model) && silent.contains("no answer for 10s; trying again"), "{silent}");
}

#[test]
fn a_question_an_outcome_a_filter_and_help() {
    let mut model = with_jobs();
    press(&mut model, KeyCode::Char('c'));
    is("confirm", &screen(&mut model, 80, 10));
    let narrow = screen(&mut model, 40, 10);
    assert!(narrow.contains("…? (y/n)\n"), "{narrow}");
    press(&mut model, KeyCode::Char('y'));
    let outcome = Err(Trouble { text: "state: job is \u{1b}[31m".to_owned(), gone: false });
    model.done(Done { action: Action::Pause(name("email")), outcome });
    let told = screen(&mut model, 80, 10);
    assert!(told.contains("pause queue email: state: job is \\u{1b}[31m\n"), "{told}");
    model.now = later(20);
    for key in ['/', '0', '3'] {
        press(&mut model, KeyCode::Char(key));
    }
    let filtered = screen(&mut model, 80, 10);
    assert!(filtered.contains("/03_") && filtered.contains("filter"), "{filtered}");
    assert_eq!(filtered.matches("email:welcome").count(), 1, "{filtered}");
    press(&mut model, KeyCode::Enter);
    press(&mut model, KeyCode::Char('?'));
    is("help", &screen(&mut model, 80, 24));
    is("help-40x10", &screen(&mut model, 40, 10));
}

#[test]
fn a_job_that_runs_and_one_that_cannot_be_read() {
    let mut model = with_job();
    press(&mut model, KeyCode::Char('v'));
    let mut running = job();
    (running.state, running.ending, running.evicted_at) = (State::Active, None, None);
    running.holder = Some(Holder {
        worker: WorkerId::new("w:1").expect("an id"),
        fence: Fence(9),
        lease_expires_at: later(25),
    });
    running.progress = Some("{\"done\":3}".to_owned());
    answer(&mut model, now(), Ok(Data::Job(running.into())));
    let shown = screen(&mut model, 100, 30);
    assert!(shown.contains("by w:1 with fence 9; lease ends in 25s"), "{shown}");
    assert!(shown.contains(r#"{"user":7,"text":"a\u001bb"}"#), "{shown}");
    assert!(shown.contains(r#"{"done":3}"#), "{shown}");
}

#[test]
fn no_control_character_is_drawn_and_no_size_is_too_small() {
    for make in [with_queues as fn() -> Model, with_workers, with_jobs, with_job] {
        for (width, height) in
            [(0, 0), (1, 1), (3, 2), (7, 3), (20, 4), (39, 5), (40, 9), (200, 3), (300, 90)]
        {
            let mut model = make();
            press(&mut model, KeyCode::Char('v'));
            press(&mut model, KeyCode::End);
            let shown = screen(&mut model, width, height);
            let harmless = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
            assert!(shown.chars().all(harmless), "{shown:?}");
            press(&mut model, KeyCode::Char('?'));
            screen(&mut model, width, height);
        }
    }
}

#[test]
fn without_colours_there_are_none() {
    for mut model in [with_queues(), with_workers(), with_jobs(), with_job()] {
        model.colour = false;
        let text = "gone".to_owned();
        answer(&mut model, now(), Err(Trouble { text, gone: true }));
        let terminal = terminal(&mut model, 120, 30);
        let reset = ratatui::style::Color::Reset;
        let cells = &terminal.backend().buffer().content;
        assert!(cells.iter().all(|cell| cell.fg == reset && cell.bg == reset));
    }
}

#[test]
fn numbers_are_short() {
    use super::text::{count, rate, spark, wrapped};
    for (n, text) in [
        (99_999, "99999"),
        (160_221, "160k"),
        (1_950_000, "1.9M"),
        (999_999_999, "999M"),
        (12_345_678_901, "12.3G"),
    ] {
        assert_eq!(count(n), text);
    }
    for (n, text) in [(0.0, "0"), (0.04, "0.0"), (9.96, "10.0"), (10.4, "10"), (123_456.0, "123k")]
    {
        assert_eq!(rate(n), text);
    }
    for (ms, text) in [
        (420, "420ms"),
        (59_999, "59s"),
        (61_000, "1m01s"),
        (7_500_000, "2h05m"),
        (90_000_000, "1d01h"),
    ] {
        assert_eq!(span(Duration::from_millis(ms)), text);
    }
    assert_eq!(spark([5.0, 0.0, 1.0, 8.0].into_iter(), 3), "▁▂█");
    assert_eq!(spark([0.0, 0.0].into_iter(), 9), "▁▁");
    assert_eq!(wrapped("äöüß", 3), ["äöü", "ß"]);
    assert_eq!(cut_to("abcdef", 4), "abc…");
    assert_eq!(cut_to("日本語", 4), "日…");
}
