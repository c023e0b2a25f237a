//! The verbs: DESIGN's table of states. The functions stand by who calls them: `enqueue` for
//! producers, `workers`, `time` for the sweep, `operators`; `unique` and `quarantine` for what
//! they share. Here is how a job ends.
//!
//! | from | event | to | unfinished | unique key |
//! |---|---|---|---|---|
//! | – | `enqueue`, due now / later | pending / scheduled | +1 | taken |
//! | scheduled, retry | due (`promote`) | pending, back | | |
//! | scheduled, retry | `run` | pending, front | | |
//! | scheduled, pending, retry | `replace`: run_at | scheduled (retry stays retry) or pending | | kept |
//! | pending | `replace`: priority | pending, back of its new lane | | kept |
//! | pending | `claim` | active | | debounce: freed |
//! | pending | `claim` sees a quarantined fingerprint | quarantined | −1 | freed |
//! | pending, scheduled, retry | deadline passed (`claim`, `expire`) | archived `expired` | −1 | freed |
//! | active | `complete` | completed, or gone without retention | −1 | freed |
//! | active | `retry`, attempts left, due before the deadline | retry | | kept |
//! | active | `retry` otherwise | archived `exhausted`, `expired` | −1 | freed |
//! | active | `archive` | archived `discarded`, `undecodable` | −1 | freed |
//! | active | `snooze` | scheduled | | kept |
//! | active | `requeue` | pending, front | | kept |
//! | active | lease ran out (`reclaim`), its first crash | pending, back | | kept |
//! | active | … a later crash | retry | | kept |
//! | active | … its fingerprint at the crash limit, or quarantined | quarantined | −1 | freed |
//! | active | … past its deadline | archived `expired` | −1 | freed |
//! | unfinished | `cancel` / `archive` by an operator | cancelled / archived `operator` | −1 | freed |
//! | archived, cancelled, completed | `rerun` | pending, back | +1 | taken again, or refused |
//! | quarantined | `release` | pending, back | +1 | taken again |
//! | quarantined | … its key is held by another | archived `unique_key_taken` | | |
//! | any but active | `delete` | – | −1 if unfinished | freed |
//! | finished | retention over (`evict`) | – | | |
//!
//! A throttle key is not freed and not taken again: it ends by time alone.

use super::{
    job::{Finished, Job, Place},
    queue::{Queue, Remembered},
};
use crate::{
    model::{State, Timestamp, WorkerId},
    store::{Ended, Ending, EndingReason},
};
use bytes::Bytes;

pub(super) fn ending(reason: EndingReason, worker: Option<WorkerId>, at: Timestamp) -> Ending {
    Ending { reason, at, worker }
}

impl Queue {
    /// Ends a job that was taken: keeps it for as long as its state and its retention say.
    pub(super) fn finish(
        &mut self,
        mut job: Job,
        state: State,
        ending: Ending,
        result: Option<Bytes>,
    ) {
        let today = self.days.today(ending.at);
        match ending.reason {
            EndingReason::Expired => today.expired += 1,
            EndingReason::Quarantined => today.quarantined += 1,
            _ => {}
        }
        self.tell_end(&job, Some(state), ending.at);
        let kept = self.settings.kept(state, job.envelope.retention);
        if kept.is_zero() {
            return self.forget(job, ending.at);
        }
        self.free_key(&job);
        let evicted_at = ending.at + kept;
        job.place = Place::Finished(Finished { state, ending, result, evicted_at });
        self.put(job);
    }

    /// A job that was taken is gone, but for its identity if that is to be remembered.
    pub(super) fn forget(&mut self, job: Job, now: Timestamp) {
        self.free_key(&job);
        if let Some(remember) = job.envelope.remember {
            let remembered = Remembered { content: job.content, until: now + remember };
            self.remembered.insert(job.envelope.id, remembered);
        }
    }

    /// A job that was taken ends in nobody's hands: it missed its deadline, or its fingerprint is
    /// quarantined.
    pub(super) fn ended(
        &mut self,
        job: Job,
        reason: EndingReason,
        worker: Option<WorkerId>,
        now: Timestamp,
    ) -> Ended {
        let ended = Ended::of(job.id().clone(), reason);
        self.finish(job, ended.state, ending(reason, worker, now), None);
        ended
    }
}
