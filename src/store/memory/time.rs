//! What time does: the sweep.

use super::{
    job::{Job, Place, Position},
    queue::Queue,
};
use crate::{
    model::{JobId, MAX_DURATION, State, Timestamp},
    store::{CRASH_BACKOFF, EndingReason, Failure, Pace, Swept},
};
use std::time::Duration;

/// How long a shared sweep leaves all but promotion to the last one.
const GATE: Duration = Duration::from_secs(1);
/// Jobs that are reclaimed together are spread by one random number and steps of the golden ratio.
const GOLDEN: f64 = 0.618_034;

impl Queue {
    pub(super) fn sweep(&mut self, pace: Pace, now: Timestamp) -> Swept {
        let gate_open = self.swept_at.is_none_or(|last| now >= last + GATE);
        let all = pace == Pace::Now || pace == Pace::Shared && gate_open;
        let mut swept = Swept::default();
        if all {
            self.swept_at = Some(now);
            self.expire(now, &mut swept);
        }
        self.promote(now, &mut swept);
        if all {
            self.reclaim(now, &mut swept);
            self.evict(now, &mut swept);
            self.forget_what_is_over(now);
        }
        swept.claimable = !self.settings.paused && !self.pending.is_empty();
        let until = |due: Timestamp| Duration::from_millis(due.as_millis() - now.as_millis());
        swept.next_due = self.next_due().map(until);
        swept
    }

    fn expire(&mut self, now: Timestamp, swept: &mut Swept) {
        while let Some((_, id)) = self.deadlines.first().filter(|(at, _)| *at <= now).cloned() {
            let Some(job) = self.take(&id) else { break };
            swept.ended.push(self.ended(job, EndingReason::Expired, None, now));
            swept.expired += 1;
        }
    }

    fn promote(&mut self, now: Timestamp, swept: &mut Swept) {
        while let Some((_, id)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            let Some(mut job) = self.take(&id) else { break };
            job.place = Place::Pending(Position::Back);
            self.put(job);
            swept.promoted += 1;
        }
    }

    fn reclaim(&mut self, now: Timestamp, swept: &mut Swept) {
        let jitter = fastrand::f64();
        while let Some((_, id)) = self.leases.first().filter(|(end, _)| *end <= now).cloned() {
            let Some(job) = self.take(&id) else { break };
            swept.reclaimed += 1;
            let spread = 0.5 + (jitter + swept.reclaimed as f64 * GOLDEN) % 1.0;
            self.crashed(job, spread, now, swept);
        }
    }

    /// The holder of a job vanished.
    fn crashed(&mut self, mut job: Job, spread: f64, now: Timestamp, swept: &mut Swept) {
        let Some(holder) = job.holder().cloned() else { return };
        self.days.today(now).crashed += 1;
        job.crash += 1;
        job.record_failure(Failure {
            at: now,
            attempt: None,
            crash: Some(job.crash),
            worker: Some(holder.worker.to_string()),
            error: None,
        });
        let fingerprint = job.envelope.fingerprint;
        let crashes = self.count_crash(fingerprint, holder.fence, now);
        if crashes >= self.settings.crash_limit() {
            self.close_crashed(&job, &holder, crashes, now);
        }
        if job.is_past(now) {
            swept.ended.push(self.ended(job, EndingReason::Expired, Some(holder.worker), now));
            swept.expired += 1;
            return;
        }
        if self.is_quarantined(fingerprint) {
            swept.ended.push(self.ended(job, EndingReason::Quarantined, Some(holder.worker), now));
            swept.quarantined += 1;
            return;
        }
        job.place = match job.crash {
            1 => Place::Pending(Position::Back),
            crash => Place::Retry { due: now + crash_backoff(crash, spread) },
        };
        self.put(job);
    }

    fn evict(&mut self, now: Timestamp, swept: &mut Swept) {
        let over = |(end, id): &(Timestamp, JobId)| (*end <= now).then(|| id.clone());
        let over: Vec<JobId> = self.evictions.iter().map_while(over).collect();
        swept.evicted += self.forget_all(&over, now);
        let beyond = self.archived_beyond_bound();
        swept.evicted += self.forget_all(&beyond, now);
    }

    fn forget_all(&mut self, ids: &[JobId], now: Timestamp) -> u64 {
        let gone: Vec<Job> = ids.iter().filter_map(|id| self.take(id)).collect();
        let count = gone.len() as u64;
        gone.into_iter().for_each(|job| self.forget(job, now));
        count
    }

    /// The oldest archived jobs, so many that the others are within the bound.
    fn archived_beyond_bound(&self) -> Vec<JobId> {
        let Some(most) = self.settings.max_archived else { return Vec::new() };
        let is_archived =
            |id: &&JobId| self.jobs.get(*id).is_some_and(|job| job.state() == State::Archived);
        let archived: Vec<&JobId> =
            self.evictions.iter().map(|(_, id)| id).filter(is_archived).collect();
        let beyond = (archived.len() as u64).saturating_sub(most);
        archived.into_iter().take(beyond as usize).cloned().collect()
    }

    fn forget_what_is_over(&mut self, now: Timestamp) {
        self.keys.retain(|_, key| !key.is_over(now));
        self.remembered.retain(|_, gone| gone.until > now);
        self.crashes.retain(|_, crashes| !crashes.is_over(now));
        self.days.forget(now);
    }
}

/// 5 s × 4^(crash − 2) ± 50 %, at most 10 years; `spread` is 0.5 to 1.5.
fn crash_backoff(crash: u32, spread: f64) -> Duration {
    let base = CRASH_BACKOFF.as_millis() as f64 * 4f64.powf(f64::from(crash) - 2.0);
    // A float that is too large becomes the largest integer.
    Duration::from_millis((base * spread) as u64).min(MAX_DURATION)
}
