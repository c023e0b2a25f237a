//! Calls to the store, each for one queue, of which none waits for another's.
//!
//! A part of the worker goes in rounds: what is to be done for its queues leaves together, and so shares
//! round trips. A round is over when all its calls are answered, but it does not wait for long: a queue may
//! be at a node of a cluster that is away, and its call be repeated for a minute. Such a call goes on by
//! itself, no other is made for its queue meanwhile, and no round waits for that queue until a call for it
//! has succeeded again.

use crate::model::QueueName;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout_at};

/// A round waits so long for an answer. A store that lives takes a hundredth of it.
const PATIENCE: Duration = Duration::from_millis(500);
/// After a failed call its queue rests so long: the store has repeated the call by itself before, or
/// refuses it, which no repeat will mend.
const REST: Duration = Duration::from_secs(1);

/// A queue's calls that fail are told of at most so often.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// What came of a call, or of the rest after one that failed.
pub(super) enum Heard<T, E> {
    Answer(QueueName, Result<T, E>),
    /// A queue's rest is over.
    Rested(QueueName),
}

enum Ended<T, E> {
    Call(Result<T, E>),
    Rest,
}

/// The calls of one part of the worker, at most one for each queue at a time.
pub(super) struct Calls<T, E> {
    out: FuturesUnordered<BoxFuture<'static, (QueueName, Ended<T, E>)>>,
    /// Queues with a call out, or at rest.
    busy: HashMap<QueueName, Busy>,
    /// Those of `busy` for whom the round waits.
    round: HashSet<QueueName>,
    /// Queues whose last call failed, or that a round gave up waiting for.
    failing: HashSet<QueueName>,
}

/// When it was last told that something fails, for each queue: what goes on failing is told of now and then.
#[derive(Default)]
pub(super) struct Told(HashMap<QueueName, Instant>);

impl Told {
    /// Whether it is time to tell.
    pub(super) fn is_due(&mut self, queue: &QueueName) -> bool {
        let is_due = self.0.get(queue).is_none_or(|at| at.elapsed() >= LOG_PAUSE);
        if is_due {
            self.0.insert(queue.clone(), Instant::now());
        }
        is_due
    }

    /// It succeeds again.
    pub(super) fn forget(&mut self, queue: &QueueName) {
        self.0.remove(queue);
    }
}

#[derive(PartialEq, Eq)]
enum Busy {
    Called,
    Rests,
}

impl<T: Send + 'static, E: Send + 'static> Calls<T, E> {
    pub(super) fn new() -> Self {
        Self {
            out: FuturesUnordered::new(),
            busy: HashMap::new(),
            round: HashSet::new(),
            failing: HashSet::new(),
        }
    }

    /// Whether a call may be made for this queue.
    pub(super) fn is_free(&self, queue: &QueueName) -> bool {
        !self.busy.contains_key(queue)
    }

    /// Whether a call for this queue is out.
    pub(super) fn is_out(&self, queue: &QueueName) -> bool {
        self.busy.get(queue) == Some(&Busy::Called)
    }

    /// Whether the last call for this queue failed, or is not answered for long.
    pub(super) fn is_failing(&self, queue: &QueueName) -> bool {
        self.failing.contains(queue)
    }

    /// Whether no call is out.
    pub(super) fn are_over(&self) -> bool {
        self.busy.values().all(|busy| *busy == Busy::Rests)
    }

    /// Makes a call, for a queue that is free. It goes on while this is asked what is heard.
    pub(super) fn make(
        &mut self,
        queue: &QueueName,
        call: impl Future<Output = Result<T, E>> + Send + 'static,
    ) {
        self.busy.insert(queue.clone(), Busy::Called);
        if !self.is_failing(queue) {
            self.round.insert(queue.clone());
        }
        let queue = queue.clone();
        self.out.push(call.map(|answer| (queue, Ended::Call(answer))).boxed());
    }

    /// What is heard next of any call; never, if there is none. Safe to drop.
    pub(super) async fn heard(&mut self) -> Heard<T, E> {
        let Some((queue, ended)) = self.out.next().await else {
            return std::future::pending().await;
        };
        self.busy.remove(&queue);
        self.round.remove(&queue);
        let Ended::Call(answer) = ended else { return Heard::Rested(queue) };
        if answer.is_ok() {
            self.failing.remove(&queue);
        } else {
            self.failing.insert(queue.clone());
            self.busy.insert(queue.clone(), Busy::Rests);
            let rests = queue.clone();
            self.out.push(sleep(REST).map(|()| (rests, Ended::Rest)).boxed());
        }
        Heard::Answer(queue, answer)
    }

    /// What is heard while the round lasts that began at `begun`; None when it is over.
    pub(super) async fn heard_in_round(&mut self, begun: Instant) -> Option<Heard<T, E>> {
        if self.round.is_empty() {
            return None;
        }
        let heard = timeout_at(begun + PATIENCE, self.heard()).await;
        if heard.is_err() {
            self.failing.extend(self.round.drain());
        }
        heard.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answers = Vec<(String, bool)>;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("name")
    }

    /// Whom each queue's call takes how long, and whether it succeeds.
    fn make(calls: &mut Calls<(), ()>, name: &str, takes: u64, answer: Result<(), ()>) {
        calls.make(&queue(name), async move {
            sleep(Duration::from_millis(takes)).await;
            answer
        });
    }

    /// A round's answers, and how long it took.
    async fn round(calls: &mut Calls<(), ()>) -> (Answers, u128) {
        let (begun, mut answers) = (Instant::now(), Vec::new());
        while let Some(heard) = calls.heard_in_round(begun).await {
            if let Heard::Answer(queue, answer) = heard {
                answers.push((queue.as_str().to_owned(), answer.is_ok()));
            }
        }
        (answers, begun.elapsed().as_millis())
    }

    fn told(answers: &[(&str, bool)]) -> Answers {
        answers.iter().map(|(name, ok)| ((*name).to_owned(), *ok)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_waits_for_a_slow_call_once_and_then_no_more_until_it_succeeds() {
        let mut calls = Calls::new();
        make(&mut calls, "slow", 60_000, Ok(()));
        make(&mut calls, "quick", 10, Ok(()));
        let patience = PATIENCE.as_millis();
        assert_eq!(round(&mut calls).await, (told(&[("quick", true)]), patience));
        assert!(!calls.is_free(&queue("slow")) && calls.is_out(&queue("slow")));
        for _ in 0..3 {
            make(&mut calls, "quick", 10, Ok(()));
            assert_eq!(round(&mut calls).await, (told(&[("quick", true)]), 10));
        }
        let Heard::Answer(late, Ok(())) = calls.heard().await else { panic!("it goes on") };
        assert!(late.as_str() == "slow" && calls.are_over() && !calls.is_failing(&late));
        make(&mut calls, "slow", 100, Ok(()));
        assert_eq!(round(&mut calls).await, (told(&[("slow", true)]), 100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_whose_call_fails_rests_and_no_round_waits_for_it_until_it_succeeds() {
        let mut calls = Calls::new();
        make(&mut calls, "bad", 10, Err(()));
        assert_eq!(round(&mut calls).await, (told(&[("bad", false)]), 10));
        assert!(!calls.is_free(&queue("bad")) && !calls.is_out(&queue("bad")) && calls.are_over());
        let rests = Instant::now();
        assert!(matches!(calls.heard().await, Heard::Rested(_)));
        assert!(rests.elapsed() >= REST && calls.is_free(&queue("bad")));
        make(&mut calls, "bad", 10, Ok(()));
        assert_eq!(round(&mut calls).await, (Vec::new(), 0));
        assert!(matches!(calls.heard().await, Heard::Answer(_, Ok(()))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_of_many_calls_lasts_no_longer_than_one() {
        let mut calls = Calls::new();
        for i in 0..100 {
            make(&mut calls, &format!("q{i}"), 60_000 - i, Ok(()));
        }
        assert_eq!(round(&mut calls).await, (Vec::new(), PATIENCE.as_millis()));
        assert_eq!(round(&mut calls).await, (Vec::new(), 0));
    }
}
