//! Follows the run: shows how far it is, and kills a worker half-way.

use super::{
    deliveries::{self, QUEUES},
    journal::{Answer, RAN, Ran, Reader, Step, TOLD, Told},
    place::Place,
    processes::{self, PRODUCERS, Parts, WORKERS},
};
use crate::{args::Global, fail::Failure, out};
use anyhow::{anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use sprag::{QueueName, RedisStore, Store};
use std::{
    collections::{HashMap, HashSet},
    io::IsTerminal,
    path::Path,
    time::{Duration, Instant},
};

/// A run that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(180);
const TICK: Duration = Duration::from_millis(100);
/// The worker that is killed runs at least so many jobs then.
const VICTIM_RUNS: usize = 3;

/// A run of a handler.
pub(super) type Run = (String, u64);

pub(super) struct Watch<'a> {
    global: &'a Global,
    place: &'a Place,
    dir: &'a Path,
    store: RedisStore,
    queues: Vec<QueueName>,
    parts: &'a mut Parts,
    told: Reader<Told>,
    ran: Reader<Ran>,
    seen: Seen,
    started: Instant,
    bar: ProgressBar,
    last_line: u64,
    killed: Killed,
}

/// What the journals told so far.
#[derive(Debug, Default)]
struct Seen {
    answered: usize,
    refused: usize,
    joined: usize,
    /// Jobs, not runs: one whose lease ran out while it was done runs again.
    done: HashSet<String>,
    failed: usize,
    /// (id, fence) → pid: started and not ended.
    running: HashMap<Run, u32>,
    lines: usize,
}

/// The worker that was killed, and what it was running.
#[derive(Debug, Default)]
pub(super) struct Killed {
    pub(super) pid: u32,
    pub(super) runs: Vec<Run>,
}

impl<'a> Watch<'a> {
    pub(super) fn start(
        global: &'a Global,
        place: &'a Place,
        dir: &'a Path,
        parts: &'a mut Parts,
        lines: usize,
    ) -> Result<Self, Failure> {
        for _ in 0..WORKERS {
            parts.workers.push(processes::start(place, dir, &["worker"])?);
        }
        for share in 0..PRODUCERS {
            let args = ["producer", "--share", &share.to_string()];
            parts.producers.push(processes::start(place, dir, &args)?);
        }
        Ok(Self {
            global,
            place,
            dir,
            store: place.store()?,
            queues: QUEUES
                .iter()
                .map(|(name, _)| deliveries::queue(name))
                .collect::<Result<_, _>>()?,
            parts,
            told: Reader::new(dir, TOLD),
            ran: Reader::new(dir, RAN),
            seen: Seen { lines, ..Seen::default() },
            started: Instant::now(),
            bar: bar(global, lines),
            last_line: 0,
            killed: Killed::default(),
        })
    }

    /// Until half of the deliveries are done and some worker is in the midst of several.
    pub(super) async fn until_half_way(&mut self) -> anyhow::Result<()> {
        while self.seen.done() < self.seen.lines * 9 / 20 || self.victim().is_none() {
            self.tick().await?;
        }
        Ok(())
    }

    /// Place and pid of the worker that runs most.
    fn victim(&self) -> Option<(usize, u32)> {
        let runs = |pid| self.seen.running.values().filter(|of| **of == pid).count();
        let pids = self.parts.workers.iter().enumerate().filter_map(|(i, w)| Some((i, w.id()?)));
        pids.filter(|(_, pid)| runs(*pid) >= VICTIM_RUNS).max_by_key(|(_, pid)| runs(*pid))
    }

    /// SIGKILL: the worker has no time to put anything back.
    pub(super) async fn kill_a_worker(&mut self) -> anyhow::Result<()> {
        let (place, pid) = self.victim().ok_or_else(|| anyhow!("no worker runs anything"))?;
        self.parts.workers[place].kill().await?;
        self.parts.workers.swap_remove(place);
        self.read()?;
        let its = self.seen.running.iter().filter(|(_, of)| **of == pid);
        self.killed = Killed { pid, runs: its.map(|(run, _)| run.clone()).collect() };
        self.seen.running.retain(|_, of| *of != pid);
        self.parts.workers.push(processes::start(self.place, self.dir, &["worker"])?);
        let count = self.killed.runs.len();
        self.say(&format!(
            "Killed worker {pid} (kill -9) in the midst of {count} jobs, and started another.\n\
             The jobs come back when their leases end, after a second."
        ));
        Ok(())
    }

    /// Until the producers have ended and nothing is unfinished.
    pub(super) async fn until_drained(&mut self) -> anyhow::Result<()> {
        loop {
            self.tick().await?;
            let mut producing = false;
            for producer in &mut self.parts.producers {
                match producer.try_wait()? {
                    Some(status) if !status.success() => bail!("a producer failed: {status}"),
                    Some(_) => {}
                    None => producing = true,
                }
            }
            if !producing && self.unfinished().await? == 0 {
                return Ok(());
            }
        }
    }

    async fn unfinished(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for queue in &self.queues {
            sum += self.store.queue(queue).await?.unfinished;
        }
        Ok(sum)
    }

    /// Lets the workers end.
    pub(super) async fn end(self) -> anyhow::Result<Killed> {
        self.bar.finish_and_clear();
        let drained = self.parts.workers.iter_mut().map(processes::drain);
        for ended in futures_util::future::join_all(drained).await {
            ended?;
        }
        Ok(self.killed)
    }

    async fn tick(&mut self) -> anyhow::Result<()> {
        tokio::time::sleep(TICK).await;
        self.read()?;
        for worker in &mut self.parts.workers {
            if let Some(status) = worker.try_wait()? {
                bail!("a worker ended by itself: {status}");
            }
        }
        if self.started.elapsed() > PATIENCE {
            bail!("not done after {} s: {:?}", PATIENCE.as_secs(), self.seen);
        }
        self.show();
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<()> {
        self.told.next()?.into_iter().for_each(|told| self.seen.told(told));
        self.ran.next()?.into_iter().for_each(|ran| self.seen.ran(ran));
        Ok(())
    }

    fn show(&mut self) {
        let Seen { answered, refused, failed, running, lines, .. } = &self.seen;
        let done = self.seen.done();
        let text = format!(
            "{done}/{lines} done, {answered} accepted, {} running, {failed} failed, {refused} refused",
            running.len()
        );
        self.bar.set_position(done as u64);
        self.bar.set_message(text.clone());
        let second = self.started.elapsed().as_secs();
        if !std::io::stderr().is_terminal() && second > self.last_line {
            self.last_line = second;
            out::talk(self.global, &format!("{second:>4} s  {text}"));
        }
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| out::talk(self.global, text));
    }
}

impl Seen {
    fn told(&mut self, told: Told) {
        match told.answer {
            Answer::Refused => self.refused += 1,
            Answer::Enqueued(_) => self.answered += 1,
            Answer::Joined(_) => {
                self.answered += 1;
                self.joined += 1;
            }
        }
    }

    fn ran(&mut self, ran: Ran) {
        let run = (ran.id, ran.fence);
        match ran.step {
            Step::Start => drop(self.running.insert(run, ran.pid)),
            step => {
                self.running.remove(&run);
                self.failed += usize::from(step == Step::Failed);
                if matches!(step, Step::Done | Step::GivenUp) {
                    self.done.insert(run.0);
                }
            }
        }
    }

    /// Lines of which nothing is left to do.
    fn done(&self) -> usize {
        self.joined + self.done.len()
    }
}

/// indicatif draws on stderr, and only on a terminal.
fn bar(global: &Global, lines: usize) -> ProgressBar {
    if global.quiet || global.json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{elapsed:>4} {bar:12} {msg}");
    ProgressBar::new(lines as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_done_once_however_often_its_job_runs() {
        let mut seen = Seen::default();
        for answer in [
            Answer::Refused,
            Answer::Enqueued("a".to_owned()),
            Answer::Enqueued("b".to_owned()),
            Answer::Joined("a".to_owned()),
        ] {
            seen.told(Told { line: 1, queue: "q".to_owned(), answer, at: 0 });
        }
        for (id, fence, step) in [
            ("a", 1, Step::Start),
            ("a", 2, Step::Start),
            ("a", 2, Step::Done),
            ("a", 1, Step::Done),
            ("b", 3, Step::Start),
            ("b", 3, Step::Failed),
            ("b", 4, Step::GivenUp),
        ] {
            let (queue, id) = ("q".to_owned(), id.to_owned());
            seen.ran(Ran { queue, id, step, attempt: 0, crash: 0, fence, pid: 1, at: 0 });
        }
        assert_eq!((seen.done(), seen.answered, seen.refused, seen.failed), (3, 3, 1, 1));
        assert!(seen.running.is_empty(), "{seen:?}");
    }
}
