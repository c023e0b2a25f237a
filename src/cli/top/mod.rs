//! `sprag top`: queues, workers and jobs, live.
//!
//! `model` is what is known and what keys do, `view` draws it, `data` asks the store, `screen` takes
//! the terminal and gives it back. Here they are tied together.

mod data;
mod model;
mod screen;
mod view;

use crate::{args::Global, connect, fail::Failure, units};
use data::{Action, Answer, Done, Want};
use model::{Effect, Model};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use screen::Screen;
use sprag::{Inspector, StoreError, Timestamp};
use std::{io::IsTerminal, time::Duration};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinError, JoinSet},
    time::{Interval, MissedTickBehavior, interval},
};

/// Watch queues, workers and jobs live, and steer them
///
/// Queues with their depth, the age of the oldest job and rates; Enter leads to a queue's jobs and on
/// to all that is known of one. The last line names the keys, ? all of them. What changes something
/// asks before. Rates are the difference of a queue's counters between two looks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often it looks, 100ms to 1h
    #[arg(long, default_value = "1s", value_name = "DUR", value_parser = pace)]
    interval: Duration,
}

fn pace(text: &str) -> Result<Duration, String> {
    let read = units::duration(text)?;
    let bounds = Duration::from_millis(100)..=Duration::from_secs(3_600);
    bounds.contains(&read).then_some(read).ok_or_else(|| "must be 100ms to 1h".to_owned())
}

pub(crate) async fn top(global: &Global, args: Args) -> Result<(), Failure> {
    let inspector = connect::live_inspector(global)?;
    for (name, is) in
        [("stdin", std::io::stdin().is_terminal()), ("stdout", std::io::stdout().is_terminal())]
    {
        if !is {
            let hint = "must be one: in a script take `sprag queue list --json`";
            return Err(StoreError::Invalid(format!("{name}: is no terminal; {hint}")).into());
        }
    }
    let named = std::env::var("TERM").unwrap_or_default();
    if cfg!(unix) && (named.is_empty() || named == "dumb") {
        let hint = "must name a terminal that can be drawn on, such as xterm-256color";
        return Err(StoreError::Invalid(format!("TERM: {named:?}; {hint}")).into());
    }
    let mut ending = Ending::listen()?;
    let screen = Screen::take()?;
    let mut top = Top::new(screen, Jobs::listen()?, inspector, args.interval);
    tokio::select! {
        ended = top.run() => ended,
        () = ending.comes() => Ok(()),
    }
}

/// Signals that end a program.
struct Ending {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 4],
}

impl Ending {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let (hangup, quit) = (signal(SignalKind::hangup())?, signal(SignalKind::quit())?);
        Ok(Self { signals: [terminate, interrupt, hangup, quit] })
    }

    #[cfg(unix)]
    async fn comes(&mut self) {
        let [terminate, interrupt, hangup, quit] = &mut self.signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
            _ = quit.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn comes(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// What a shell does with its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Stops,
    GoesOn,
}

/// Tells of [`Job`].
struct Jobs {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Jobs {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use rustix::process::Signal;
        use tokio::signal::unix::{SignalKind, signal};
        let [stop, go_on] =
            [Signal::TSTP, Signal::CONT].map(|kind| signal(SignalKind::from_raw(kind.as_raw())));
        Ok(Self { signals: [stop?, go_on?] })
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Job {
        let [stop, go_on] = &mut self.signals;
        tokio::select! {
            _ = stop.recv() => Job::Stops,
            _ = go_on.recv() => Job::GoesOn,
        }
    }

    /// Stops this program, as SIGTSTP does where nobody listens to it.
    #[cfg(unix)]
    fn stop() -> std::io::Result<()> {
        use rustix::process::{Signal, getpid, kill_process};
        Ok(kill_process(getpid(), Signal::STOP)?)
    }

    #[cfg(not(unix))]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Job {
        std::future::pending().await
    }

    #[cfg(not(unix))]
    fn stop() -> std::io::Result<()> {
        Ok(())
    }
}

/// What a task comes back with.
enum Back {
    Answer(Answer),
    Done(Done),
}

struct Top {
    screen: Screen,
    jobs: Jobs,
    inspector: Inspector,
    model: Model,
    input: mpsc::Receiver<std::io::Result<Event>>,
    clock: Interval,
    tasks: JoinSet<Back>,
    /// The question that has no answer yet.
    asked: Option<(Want, AbortHandle)>,
}

impl Top {
    fn new(screen: Screen, jobs: Jobs, inspector: Inspector, every: Duration) -> Self {
        let mut clock = interval(every);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let colour = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        let model = Model::new(Timestamp::now(), every, colour);
        let (tasks, asked) = (JoinSet::new(), None);
        Self { screen, jobs, inspector, model, input: listen(), clock, tasks, asked }
    }

    async fn run(&mut self) -> Result<(), Failure> {
        loop {
            self.screen
                .draw(|frame| view::draw(&mut self.model, frame.area(), frame.buffer_mut()))?;
            let effect = tokio::select! {
                event = self.input.recv() => match event {
                    Some(event) => self.event(&event?),
                    // The terminal is gone.
                    None => Effect::Quit,
                },
                Some(back) = self.tasks.join_next(), if !self.tasks.is_empty() => self.back(back),
                _ = self.clock.tick() => Effect::Look,
                job = self.jobs.next() => self.job(job)?,
            };
            self.model.now = Timestamp::now();
            match effect {
                Effect::None => {}
                Effect::Quit => return Ok(()),
                Effect::Look => self.look(),
                Effect::Do(action) => self.perform(action),
            }
        }
    }

    fn event(&mut self, event: &Event) -> Effect {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.model.key(*key),
            // A resize is drawn, and that is all.
            _ => Effect::None,
        }
    }

    /// The shell has its terminal while this is stopped.
    fn job(&mut self, job: Job) -> Result<Effect, Failure> {
        match job {
            Job::Stops => {
                self.screen.give_back();
                Jobs::stop()?;
            }
            Job::GoesOn => self.screen.take_again()?,
        }
        Ok(Effect::None)
    }

    fn back(&mut self, back: Result<Back, JoinError>) -> Effect {
        match back {
            Ok(Back::Answer(answer)) => {
                if self.asked.as_ref().is_some_and(|(want, _)| *want == answer.want) {
                    self.asked = None;
                }
                self.model.answered(answer);
                Effect::None
            }
            Ok(Back::Done(done)) => {
                self.model.done(done);
                self.forget();
                Effect::Look
            }
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Effect::None,
            },
        }
    }

    /// Asks what the screen shows, unless that is asked already. What another screen asked is not
    /// waited for.
    fn look(&mut self) {
        let want = self.model.want();
        if self.asked.as_ref().is_some_and(|(asked, _)| *asked == want) {
            return;
        }
        self.forget();
        let (inspector, asked) = (self.inspector.clone(), want.clone());
        let task = self.tasks.spawn(async { Back::Answer(data::ask(inspector, asked).await) });
        self.asked = Some((want, task));
    }

    fn forget(&mut self) {
        if let Some((_, task)) = self.asked.take() {
            task.abort();
        }
    }

    fn perform(&mut self, action: Action) {
        let inspector = self.inspector.clone();
        self.tasks.spawn(async { Back::Done(data::perform(inspector, action).await) });
    }
}

/// Keys and resizes, read by a thread of its own, which ends with the program.
fn listen() -> mpsc::Receiver<std::io::Result<Event>> {
    let (heard, input) = mpsc::channel(64);
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            let failed = event.is_err();
            if heard.blocking_send(event).is_err() || failed {
                return;
            }
        }
    });
    input
}
