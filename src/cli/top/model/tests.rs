use super::{super::data::Found, *};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sprag::{
    JobId, QueueName, State,
    store::{Listed, Operation, QueueInfo, Wish},
};

const SECOND: Duration = Duration::from_secs(1);

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a queue")
}

fn info(queue: &str, pending: u64, completed: u64) -> QueueInfo {
    QueueInfo {
        queue: queue.to_owned(),
        pending,
        scheduled: 0,
        active: 0,
        retry: 0,
        completed: 0,
        archived: 0,
        cancelled: 0,
        quarantined: 0,
        unfinished: pending,
        limit: None,
        paused: false,
        oldest_pending_ms: Some(1_000 - pending),
        completed_today: completed,
        failed_today: 0,
    }
}

fn found(queues: &[(&str, u64, u64)]) -> Vec<Found> {
    let found = |(queue, pending, completed): &(&str, u64, u64)| {
        (name(queue), Ok(info(queue, *pending, *completed)))
    };
    queues.iter().map(found).collect()
}

struct Trial(Model);

impl Trial {
    fn start() -> Self {
        Self(Model::new(Timestamp::from_millis(1_000_000), SECOND, true))
    }

    fn with(queues: &[(&str, u64, u64)]) -> Self {
        let mut trial = Self::start();
        trial.hear(0, Data::Queues(found(queues)));
        trial
    }

    fn hear(&mut self, after_ms: u64, data: Data) {
        let at = Timestamp::from_millis(1_000_000 + after_ms);
        self.0.answered(Answer { want: self.0.want(), at, data: Ok(data) });
    }

    fn press(&mut self, code: KeyCode) -> Effect {
        self.0.key(KeyEvent::from(code))
    }

    fn keys(&mut self, keys: &str) -> Effect {
        keys.chars().map(|key| self.press(KeyCode::Char(key))).last().unwrap_or(Effect::None)
    }

    fn shown(&self) -> Vec<&str> {
        self.0.queues.shown().map(|row| row.queue.as_str()).collect()
    }

    fn chosen(&self) -> &str {
        self.0.queues.chosen().map_or("none", |row| row.queue.as_str())
    }

    /// Opens the jobs of the chosen queue, two of them.
    fn open_jobs(&mut self) {
        assert_eq!(self.press(KeyCode::Enter), Effect::Look);
        let listed = |id: &str| Listed {
            id: JobId::new(id).expect("an id"),
            envelope: Ok((envelope(id), self.0.now)),
            at: None,
        };
        let jobs = vec![listed("x"), listed("y")];
        let next = Some("9 100".to_owned());
        self.hear(0, Data::Jobs { counts: info("a", 2, 0), jobs, next });
    }
}

fn envelope(id: &str) -> sprag::Envelope {
    let kind = sprag::Kind::new("k").expect("a kind");
    let job = sprag::Envelope::builder(name("a"), kind).id(JobId::new(id).expect("an id"));
    job.build().expect("valid")
}

#[test]
fn rows_are_sorted_and_the_choice_stays_with_its_queue() {
    let mut t = Trial::with(&[("a", 5, 0), ("b", 9, 0), ("c", 1, 0)]);
    assert_eq!((t.shown(), t.chosen()), (vec!["a", "b", "c"], "a"));
    t.hear(1_000, Data::Queues(found(&[("a", 5, 10), ("b", 9, 0), ("c", 1, 99)])));
    for (key, order) in [("s", ["b", "a", "c"]), ("s", ["c", "a", "b"]), ("s", ["c", "a", "b"])] {
        t.keys(key);
        assert_eq!((t.shown(), t.chosen()), (order.to_vec(), "a"), "{:?}", t.0.queues.sort);
    }
    t.press(KeyCode::Down);
    assert_eq!(t.chosen(), "b");
    t.hear(2_000, Data::Queues(found(&[("a", 5, 10), ("c", 1, 99)])));
    assert_eq!(t.chosen(), "a", "what stands in its place");
    for (key, chosen) in [(KeyCode::Home, "c"), (KeyCode::End, "a"), (KeyCode::PageUp, "c")] {
        t.press(key);
        assert_eq!(t.chosen(), chosen);
    }
}

#[test]
fn a_rate_is_the_difference_of_two_looks() {
    let mut t = Trial::with(&[("a", 0, 100)]);
    let rate = |t: &Trial| t.0.queues.chosen().and_then(|row| row.rate).map(|rate| rate.completed);
    assert_eq!(rate(&t), None);
    t.hear(2_000, Data::Queues(found(&[("a", 0, 150)])));
    assert_eq!(rate(&t), Some(25.0));
    t.hear(2_100, Data::Queues(found(&[("a", 0, 151)])));
    assert_eq!(rate(&t), Some(25.0), "too soon to tell");
    t.hear(3_000, Data::Queues(found(&[("a", 0, 7)])));
    assert_eq!(rate(&t), Some(7.0), "a new day");
    t.hear(1_000, Data::Queues(found(&[("a", 0, 8)])));
    assert_eq!(rate(&t), None, "the clock was set back");
    assert_eq!(t.0.queues.past(&name("a")).collect::<Vec<_>>(), [25.0, 7.0]);
}

#[test]
fn an_action_is_done_if_y_says_so() {
    let mut t = Trial::with(&[("a", 5, 0), ("b", 9, 0)]);
    for no in [KeyCode::Char('n'), KeyCode::Esc, KeyCode::Enter, KeyCode::Char('q')] {
        t.keys("p");
        assert_eq!(t.0.mode, Mode::Confirm(Action::Pause(name("a"))));
        assert_eq!((t.press(no), &t.0.mode), (Effect::None, &Mode::Walk));
        assert_eq!(t.0.told().map(|told| &*told.text), Some("pause queue a: not done"));
    }
    t.keys("p");
    // What moves meanwhile does not change what was asked.
    t.hear(1_000, Data::Queues(found(&[("b", 9, 0)])));
    assert_eq!(t.keys("y"), Effect::Do(Action::Pause(name("a"))));
    let mut paused = info("b", 9, 0);
    paused.paused = true;
    t.hear(2_000, Data::Queues(vec![(name("b"), Ok(paused))]));
    assert_eq!(t.keys("py"), Effect::Do(Action::Resume(name("b"))));
}

#[test]
fn jobs_are_walked_through_and_steered() {
    let mut t = Trial::with(&[("a", 2, 0)]);
    t.open_jobs();
    assert_eq!(t.0.place(), Place::Jobs);
    for (key, operation) in [
        ("c", Operation::Cancel),
        ("r", Operation::Rerun),
        ("n", Operation::Run),
        ("a", Operation::Archive),
        ("d", Operation::Delete),
    ] {
        let id = JobId::new("x").expect("an id");
        t.keys(key);
        assert_eq!(t.keys("y"), Effect::Do(Action::Operate(operation, name("a"), id)));
    }
    assert_eq!((t.keys("o"), &t.0.mode), (Effect::None, &Mode::Walk));
    assert!(t.0.told().is_some_and(|told| told.failed));
    let want = |state, cursor: Option<&str>| {
        let (queue, cursor) = (name("a"), cursor.map(str::to_owned));
        Want::Jobs { queue, state, cursor }
    };
    assert_eq!((t.keys("]"), t.0.want()), (Effect::Look, want(State::Pending, Some("9 100"))));
    assert_eq!((t.keys("["), t.0.want()), (Effect::Look, want(State::Pending, None)));
    assert_eq!(t.keys("["), Effect::None);
    t.press(KeyCode::Left);
    assert_eq!(t.0.want(), want(State::Scheduled, None));
    t.press(KeyCode::Left);
    assert_eq!(t.0.want(), want(State::Quarantined, None));
    let listed = Listed {
        id: JobId::new("z").expect("an id"),
        envelope: Ok((envelope("z"), t.0.now)),
        at: None,
    };
    let fingerprint = envelope("z").fingerprint();
    t.hear(0, Data::Jobs { counts: info("a", 2, 0), jobs: vec![listed], next: None });
    assert_eq!(t.keys("oy"), Effect::Do(Action::Release(name("a"), fingerprint)));
    t.press(KeyCode::Enter);
    assert_eq!(t.0.want(), Want::Job { queue: name("a"), id: JobId::new("z").expect("an id") });
    assert_eq!(t.keys("c"), Effect::None, "nothing is known of it yet");
    for (key, place) in [("q", Place::Jobs), ("q", Place::Queues)] {
        assert_eq!((t.keys(key), t.0.place()), (Effect::Look, place));
    }
    assert_eq!(t.keys("q"), Effect::Quit);
}

#[test]
fn workers_are_asked() {
    let mut t = Trial::start();
    assert_eq!((t.press(KeyCode::Tab), t.0.want()), (Effect::Look, Want::Workers));
    assert_eq!((t.keys("u"), &t.0.mode), (Effect::None, &Mode::Walk));
    let worker = |id: &str| sprag::store::WorkerInfo {
        id: id.to_owned(),
        queues: vec![format!("q-{id}")],
        host: "h".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        concurrency: 2,
        busy: 1,
        state: sprag::store::WorkerState::Running,
        jobs: Vec::new(),
        started_at: Timestamp::from_millis(0),
        seen_at: Timestamp::from_millis(0),
        gone: false,
    };
    t.hear(0, Data::Workers(vec![worker("w"), worker("v")]));
    assert_eq!(t.keys("uy"), Effect::Do(Action::Ask(Wish::Quiet, "w".to_owned())));
    t.keys("/Q-v");
    t.press(KeyCode::Enter);
    assert_eq!(t.keys("xy"), Effect::Do(Action::Ask(Wish::Stop, "v".to_owned())));
}

#[test]
fn a_filter_is_typed_kept_and_ended() {
    let mut t = Trial::with(&[("mail-a", 5, 0), ("mail-q", 9, 0), ("c", 1, 0)]);
    t.keys("/MAILx");
    assert_eq!((t.shown(), t.chosen()), (vec![], "none"));
    t.press(KeyCode::Backspace);
    t.keys("-q");
    assert_eq!((t.shown(), t.chosen()), (vec!["mail-q"], "mail-q"), "letters are no commands");
    t.press(KeyCode::Enter);
    assert_eq!(t.0.mode, Mode::Walk);
    assert_eq!((t.press(KeyCode::Esc), t.shown().len()), (Effect::None, 3));
    t.keys("/c");
    t.press(KeyCode::Esc);
    assert_eq!((t.shown().len(), &t.0.mode), (3, &Mode::Walk));
    assert_eq!(t.press(KeyCode::Esc), Effect::None);
    assert_eq!(t.press(KeyCode::Backspace), Effect::None);
}

#[test]
fn control_c_quits_everywhere() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["", "/a", "p", "?"] {
        let mut t = Trial::with(&[("a", 5, 0)]);
        t.keys(keys);
        assert_eq!(t.0.key(control_c), Effect::Quit, "{keys}");
    }
    let mut t = Trial::with(&[("a", 5, 0)]);
    t.open_jobs();
    assert_eq!(t.0.key(control_c), Effect::Quit);
}

#[test]
fn an_answer_for_another_screen_changes_nothing() {
    let mut t = Trial::with(&[("a", 5, 0)]);
    let trouble = || Trouble { text: "no".to_owned(), gone: false };
    let late = Answer { want: Want::Workers, at: t.0.now, data: Err(trouble()) };
    t.0.answered(late);
    assert!(!t.0.is_old());
    t.0.answered(Answer { want: Want::Queues, at: t.0.now, data: Err(trouble()) });
    assert!(t.0.is_old());
    t.press(KeyCode::Tab);
    assert!(!t.0.is_old(), "of this screen nothing is known");
}
