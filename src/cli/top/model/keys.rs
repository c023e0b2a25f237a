//! What keys do.

use super::{super::data::Action, Effect, Job, Jobs, Mode, Model, Place};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sprag::{
    Fingerprint, JobId, QueueName, State,
    store::{Operation, Wish},
};

/// Characters of a filter.
const LONGEST_FILTER: usize = 64;

impl Model {
    pub(crate) fn key(&mut self, key: KeyEvent) -> Effect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Effect::Quit;
        }
        match (&self.mode, key.code) {
            (Mode::Filter, code) => self.filter_key(code),
            // Any key but the one that says yes says no.
            (Mode::Confirm(_), code) => self.confirm_key(code),
            (Mode::Help, KeyCode::Char('q')) => Effect::Quit,
            (Mode::Help, _) => self.walk(),
            (Mode::Walk, code) if !control => self.walk_key(code),
            (Mode::Walk, _) => Effect::None,
        }
    }

    fn walk(&mut self) -> Effect {
        self.mode = Mode::Walk;
        Effect::None
    }

    fn confirm_key(&mut self, code: KeyCode) -> Effect {
        match (std::mem::replace(&mut self.mode, Mode::Walk), code) {
            (Mode::Confirm(action), KeyCode::Char('y' | 'Y')) => {
                self.tell(format!("{} …", action.text()), false);
                Effect::Do(action)
            }
            (Mode::Confirm(action), _) => {
                self.tell(format!("{}: not done", action.text()), false);
                Effect::None
            }
            _ => Effect::None,
        }
    }

    fn filter_key(&mut self, code: KeyCode) -> Effect {
        let mut text = self.filter().unwrap_or_default().to_owned();
        match code {
            KeyCode::Enter => return self.walk(),
            KeyCode::Esc => {
                text.clear();
                self.mode = Mode::Walk;
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) if text.chars().count() < LONGEST_FILTER => text.push(c),
            _ => {}
        }
        self.set_filter(text);
        Effect::None
    }

    fn set_filter(&mut self, text: String) {
        match (self.place(), &mut self.jobs) {
            (Place::Queues, _) => {
                self.queues.filter = text;
                self.queues.arrange();
            }
            (Place::Workers, _) => {
                self.workers.filter = text;
                self.workers.arrange();
            }
            (Place::Jobs, Some(jobs)) => {
                jobs.filter = text;
                jobs.arrange();
            }
            _ => {}
        }
    }

    fn walk_key(&mut self, code: KeyCode) -> Effect {
        let page = isize::try_from(self.rows.saturating_sub(1).max(1)).unwrap_or(1);
        match code {
            KeyCode::Char('q') if self.is_bottom() => Effect::Quit,
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Backspace => self.back(),
            KeyCode::Char('?') => self.enter(Mode::Help),
            KeyCode::Char('/') if self.filter().is_some() => self.enter(Mode::Filter),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-page),
            KeyCode::PageDown => self.step(page),
            // Halves, for a step is added to where the choice is.
            KeyCode::Home => self.step(isize::MIN / 2),
            KeyCode::End => self.step(isize::MAX / 2),
            code => match self.place() {
                Place::Queues => self.queues_key(code),
                Place::Workers => self.workers_key(code),
                Place::Jobs => self.jobs_key(code),
                Place::Job => self.job_key(code),
            },
        }
    }

    fn enter(&mut self, mode: Mode) -> Effect {
        self.mode = mode;
        Effect::None
    }

    fn is_bottom(&self) -> bool {
        matches!(self.place(), Place::Queues | Place::Workers)
    }

    /// To the screen below; at the bottom a filter is ended first.
    fn back(&mut self) -> Effect {
        let place = self.place();
        if place != Place::Job && self.filter().is_some_and(|filter| !filter.is_empty()) {
            self.set_filter(String::new());
            return Effect::None;
        }
        match place {
            Place::Job => self.job = None,
            Place::Jobs => self.jobs = None,
            Place::Queues | Place::Workers => return Effect::None,
        }
        self.moved()
    }

    fn step(&mut self, by: isize) -> Effect {
        match (self.place(), &mut self.jobs, &mut self.job) {
            (Place::Queues, ..) => self.queues.step(by),
            (Place::Workers, ..) => self.workers.step(by),
            (Place::Jobs, Some(jobs), _) => jobs.step(by),
            // Drawing knows where the text ends.
            (Place::Job, _, Some(job)) => job.scroll = job.scroll.saturating_add_signed(by),
            _ => {}
        }
        Effect::None
    }

    fn queues_key(&mut self, code: KeyCode) -> Effect {
        match code {
            KeyCode::Tab | KeyCode::BackTab => self.turn_tab(),
            KeyCode::Char('s') => {
                self.queues.sort_by(self.queues.sort.next());
                Effect::None
            }
            KeyCode::Char('p') => {
                let Some(row) = self.queues.chosen() else { return Effect::None };
                let paused = row.info.as_ref().is_ok_and(|info| info.paused);
                let queue = row.queue.clone();
                self.confirm(if paused { Action::Resume(queue) } else { Action::Pause(queue) })
            }
            KeyCode::Enter | KeyCode::Right => self.open_queue(),
            _ => Effect::None,
        }
    }

    fn turn_tab(&mut self) -> Effect {
        self.workers_shown = !self.workers_shown;
        self.moved()
    }

    fn open_queue(&mut self) -> Effect {
        let Some(row) = self.queues.chosen() else { return Effect::None };
        self.jobs = Some(Jobs::of(row.queue.clone(), row.info.as_ref().ok().cloned()));
        self.moved()
    }

    fn workers_key(&mut self, code: KeyCode) -> Effect {
        let wish = match code {
            KeyCode::Tab | KeyCode::BackTab => return self.turn_tab(),
            KeyCode::Char('u') => Wish::Quiet,
            KeyCode::Char('x') => Wish::Stop,
            _ => return Effect::None,
        };
        let worker = self.workers.chosen().map(|worker| worker.id.clone());
        worker.map_or(Effect::None, |worker| self.confirm(Action::Ask(wish, worker)))
    }

    fn jobs_key(&mut self, code: KeyCode) -> Effect {
        let Some(jobs) = &mut self.jobs else { return Effect::None };
        match code {
            KeyCode::Left => jobs.turn(-1),
            KeyCode::Right => jobs.turn(1),
            KeyCode::Char(']') if jobs.next_page() => {}
            KeyCode::Char('[') if jobs.page_before() => {}
            KeyCode::Enter => {
                let Some(job) = jobs.chosen() else { return Effect::None };
                self.job = Some(Job::of(jobs.queue.clone(), job.id.clone()));
            }
            KeyCode::Char('p') => {
                let paused = jobs.counts.as_ref().is_some_and(|counts| counts.paused);
                let queue = jobs.queue.clone();
                return self.confirm(if paused {
                    Action::Resume(queue)
                } else {
                    Action::Pause(queue)
                });
            }
            code => return self.steer_key(code),
        }
        self.moved()
    }

    fn job_key(&mut self, code: KeyCode) -> Effect {
        match (code, &mut self.job) {
            (KeyCode::Char('v'), Some(job)) => {
                job.payload = !job.payload;
                Effect::None
            }
            (KeyCode::Left, _) => self.back(),
            (code, _) => self.steer_key(code),
        }
    }

    /// What is done to a job, chosen or shown.
    fn steer_key(&mut self, code: KeyCode) -> Effect {
        let Some((queue, id, state, fingerprint)) = self.target() else { return Effect::None };
        let operation = match code {
            KeyCode::Char('c') => Operation::Cancel,
            KeyCode::Char('r') => Operation::Rerun,
            KeyCode::Char('n') => Operation::Run,
            KeyCode::Char('a') => Operation::Archive,
            KeyCode::Char('d') => Operation::Delete,
            KeyCode::Char('o') => return self.release(queue, state, fingerprint),
            _ => return Effect::None,
        };
        self.confirm(Action::Operate(operation, queue, id))
    }

    fn release(
        &mut self,
        queue: QueueName,
        state: State,
        fingerprint: Option<Fingerprint>,
    ) -> Effect {
        match fingerprint.filter(|_| state == State::Quarantined) {
            Some(fingerprint) => self.confirm(Action::Release(queue, fingerprint)),
            None => {
                self.tell("release: the job is not quarantined, or not legible".to_owned(), true);
                Effect::None
            }
        }
    }

    fn target(&self) -> Option<(QueueName, JobId, State, Option<Fingerprint>)> {
        if let Some(job) = &self.job {
            let state = job.info.as_ref()?.state;
            return Some((job.queue.clone(), job.id.clone(), state, job.fingerprint()));
        }
        let jobs = self.jobs.as_ref()?;
        let job = jobs.chosen()?;
        let fingerprint = job.envelope.as_ref().ok().map(|(envelope, _)| envelope.fingerprint());
        Some((jobs.queue.clone(), job.id.clone(), jobs.state, fingerprint))
    }

    fn confirm(&mut self, action: Action) -> Effect {
        self.mode = Mode::Confirm(action);
        Effect::None
    }
}
