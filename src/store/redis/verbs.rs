//! One method per verb: what it checks, what it sends, how its answer is read.

use super::{Inner, RedisStore, checked, decode, keys, scripts::Verb, whole};
use crate::{
    model::{Envelope, JobId, QueueName, State, StoreError, WorkerId, checked_lease, millis},
    store::{
        Archive, ArchiveReason, BatchError, Change, Claim, Claimed, Complete, EndingReason,
        Enqueued, Held, JobInfo, Outcomes, Pace, QueueInfo, Retry, Snooze, Store, Swept,
        check_batch, check_count, check_enqueue, check_limit, settle::cut_error,
    },
};
use redis::Cmd;
use std::time::Duration;

/// The end of a failure's JSON object, which the script begins.
fn said(error: &str) -> String {
    // A string always has a JSON form.
    let text = serde_json::to_string(&cut_error(error)).unwrap_or_default();
    format!(",\"error\":{text}}}")
}

fn same(held: &Held) -> &Held {
    held
}

fn all_in_bounds<J>(jobs: &[J]) -> Vec<Result<(), StoreError>> {
    jobs.iter().map(|_| Ok(())).collect()
}

#[async_trait::async_trait]
impl Store for RedisStore {
    async fn enqueue(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Outcomes<Enqueued>, StoreError> {
        checked(jobs, check_enqueue(queue, jobs)?, |jobs| async move {
            let answer = self.0.admit(queue, &jobs, "each").await?;
            let ids: Vec<_> = jobs.iter().map(|job| &job.id).collect();
            let decide = |line: &decode::Line<'_>, id: &JobId| decode::enqueued(queue, line, id);
            whole(decode::outcomes(&decode::lines(&answer)?, &ids, decide)?, ids.len())
        })
        .await
    }

    async fn enqueue_atomic(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Vec<Enqueued>, BatchError> {
        for (index, check) in check_enqueue(queue, jobs)?.into_iter().enumerate() {
            check.map_err(|error| BatchError { index: Some(index), error })?;
        }
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.0.admit(queue, &jobs.iter().collect::<Vec<_>>(), "atomic").await?;
        let lines = decode::lines(&answer)?;
        if let Some((index, offender)) = decode::refusal(&lines) {
            let job = index.and_then(|i| jobs.get(i)).unwrap_or(&jobs[0]);
            return match decode::enqueued(queue, offender, &job.id) {
                Err(error) => Err(BatchError { index, error }),
                Ok(_) => Err(StoreError::Backend("refused for no reason".into()).into()),
            };
        }
        let ids: Vec<_> = jobs.iter().map(|job| &job.id).collect();
        let decide = |line: &decode::Line<'_>, id: &JobId| decode::enqueued(queue, line, id);
        let outcomes = whole(decode::outcomes(&lines, &ids, decide)?, ids.len())?;
        Ok(outcomes.into_iter().collect::<Result<_, _>>()?)
    }

    async fn claim(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        count: usize,
        lease: Duration,
    ) -> Result<Claim, StoreError> {
        check_count(count)?;
        let lease = millis(checked_lease(lease)?);
        let args = |cmd: &mut Cmd| {
            cmd.arg(worker.as_str()).arg(count).arg(lease);
        };
        let claim = decode::claim(queue, self.0.verb(Verb::Claim, queue, &args).await?)?;
        self.without_undecodable(queue, claim).await
    }

    async fn extend(
        &self,
        queue: &QueueName,
        held: &[Held],
        lease: Duration,
    ) -> Result<Outcomes<()>, StoreError> {
        check_batch(held.len())?;
        let lease = millis(checked_lease(lease)?);
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let args = |cmd: &mut Cmd| {
            cmd.arg(lease);
            for held in held {
                cmd.arg(held.id.as_str()).arg(held.fence.0);
            }
        };
        let answer = self.0.repeated(Verb::Extend, queue, &args).await?;
        let ids: Vec<_> = held.iter().map(|held| &held.id).collect();
        whole(decode::outcomes(&decode::lines(&answer)?, &ids, decode::fenced)?, ids.len())
    }

    async fn complete(
        &self,
        queue: &QueueName,
        jobs: &[Complete],
    ) -> Result<Outcomes<()>, StoreError> {
        check_batch(jobs.len())?;
        let result = |cmd: &mut Cmd, job: &Complete| {
            match job.kept_result() {
                (Some(result), _) => cmd.arg([b"=", &result[..]].concat()),
                (None, true) => cmd.arg("!"),
                (None, false) => cmd.arg(""),
            };
        };
        checked(jobs, all_in_bounds(jobs), |jobs| {
            self.0.settle(Verb::Complete, queue, jobs, |job| &job.held, result, decode::fenced)
        })
        .await
    }

    async fn retry(
        &self,
        queue: &QueueName,
        jobs: &[Retry],
    ) -> Result<Outcomes<State>, StoreError> {
        check_batch(jobs.len())?;
        let rest = |cmd: &mut Cmd, job: &Retry| {
            cmd.arg(millis(job.delay)).arg(said(&job.error));
        };
        checked(jobs, jobs.iter().map(Retry::check).collect(), |jobs| {
            self.0.settle(Verb::Retry, queue, jobs, |job| &job.held, rest, decode::retried)
        })
        .await
    }

    async fn archive(
        &self,
        queue: &QueueName,
        jobs: &[Archive],
    ) -> Result<Outcomes<()>, StoreError> {
        check_batch(jobs.len())?;
        let rest = |cmd: &mut Cmd, job: &Archive| {
            cmd.arg(EndingReason::from(job.reason).as_str());
            cmd.arg(job.error.as_deref().map(said).unwrap_or_default());
        };
        checked(jobs, all_in_bounds(jobs), |jobs| {
            self.0.settle(Verb::Archive, queue, jobs, |job| &job.held, rest, decode::fenced)
        })
        .await
    }

    async fn snooze(&self, queue: &QueueName, jobs: &[Snooze]) -> Result<Outcomes<()>, StoreError> {
        check_batch(jobs.len())?;
        let rest = |cmd: &mut Cmd, job: &Snooze| {
            cmd.arg(millis(job.delay));
        };
        checked(jobs, jobs.iter().map(Snooze::check).collect(), |jobs| {
            self.0.settle(Verb::Snooze, queue, jobs, |job| &job.held, rest, decode::fenced)
        })
        .await
    }

    async fn requeue(&self, queue: &QueueName, held: &[Held]) -> Result<Outcomes<()>, StoreError> {
        check_batch(held.len())?;
        checked(held, all_in_bounds(held), |held| {
            self.0.settle(Verb::Requeue, queue, held, same, |_, _| {}, decode::fenced)
        })
        .await
    }

    async fn sweep(&self, queue: &QueueName, pace: Pace) -> Result<Swept, StoreError> {
        let pace = match pace {
            Pace::Shared => "shared",
            Pace::Now => "now",
        };
        let mut all = Swept::default();
        loop {
            let args = |cmd: &mut Cmd| {
                cmd.arg(pace).arg(fastrand::f64());
            };
            let (slice, again) = decode::swept(self.0.repeated(Verb::Sweep, queue, &args).await?)?;
            all.add(slice);
            if !again {
                return Ok(all);
            }
        }
    }

    async fn cancel(
        &self,
        queue: &QueueName,
        ids: &[JobId],
    ) -> Result<Outcomes<Change>, StoreError> {
        check_batch(ids.len())?;
        let mut outcomes = Vec::with_capacity(ids.len());
        while outcomes.len() < ids.len() {
            let rest: Vec<_> = ids[outcomes.len()..].iter().collect();
            let args = |cmd: &mut Cmd| {
                for id in &rest {
                    cmd.arg(id.as_str());
                }
            };
            let answer = self.0.verb(Verb::Cancel, queue, &args).await?;
            let decide = |line: &decode::Line<'_>, id: &JobId| {
                decode::changed("cancel", "an unfinished job", line, id)
            };
            let slice = decode::outcomes(&decode::lines(&answer)?, &rest, decide)?;
            if slice.is_empty() {
                return whole(outcomes, ids.len());
            }
            outcomes.extend(slice);
        }
        Ok(outcomes)
    }

    async fn limit(&self, queue: &QueueName, limit: Option<u64>) -> Result<(), StoreError> {
        check_limit(limit)?;
        let limit = limit.map(|limit| limit.to_string()).unwrap_or_default();
        let args = |cmd: &mut Cmd| {
            cmd.arg(&limit);
        };
        let answer = self.0.verb(Verb::Limit, queue, &args).await?;
        self.0.register(queue, decode::made(&decode::lines(&answer)?)).await
    }

    async fn show(&self, queue: &QueueName, id: &JobId) -> Result<JobInfo, StoreError> {
        let args = |cmd: &mut Cmd| {
            cmd.arg(id.as_str());
        };
        decode::job(queue, id, self.0.repeated(Verb::Show, queue, &args).await?)
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueInfo, StoreError> {
        decode::queue(queue, self.0.repeated(Verb::Queue, queue, &|_| {}).await?)
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StoreError> {
        let mut members = redis::cmd("SMEMBERS");
        members.arg(keys::queues(&self.0.namespace));
        decode::queues(self.0.plain(&members).await?)
    }

    async fn wait(
        &self,
        queues: &[QueueName],
        timeout: Duration,
    ) -> Result<Option<QueueName>, StoreError> {
        if queues.is_empty() {
            tokio::time::sleep(timeout).await;
            return Ok(None);
        }
        let mut pop = redis::cmd("BLPOP");
        let keys: Vec<_> = queues.iter().map(|queue| self.0.wake_key(queue)).collect();
        // Zero would mean for ever.
        let timeout = timeout.max(Duration::from_millis(1));
        pop.arg(&keys).arg(format!("{:.3}", timeout.as_secs_f64()));
        let answer = self.0.link.send_blocking(&pop, timeout).await.map_err(|fault| fault.error)?;
        let woken = decode::woken(answer)?;
        let place = woken.and_then(|woken| keys.iter().position(|key| *key == woken));
        Ok(place.map(|i| queues[i].clone()))
    }

    async fn wake(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.0.repeated(Verb::Wake, queue, &|_| {}).await.map(drop)
    }
}

impl RedisStore {
    /// Archives what only Rust can tell to be undecodable: the script looks at a part of the header.
    async fn without_undecodable(
        &self,
        queue: &QueueName,
        claim: Claim,
    ) -> Result<Claim, StoreError> {
        let is_whole = |job: &Claimed| job.envelope.is_ok();
        let (jobs, broken): (Vec<_>, Vec<_>) = claim.jobs.into_iter().partition(is_whole);
        if broken.is_empty() {
            return Ok(Claim { jobs, more: claim.more });
        }
        let given_up: Vec<_> = broken
            .into_iter()
            .map(|job| Archive {
                held: Held { id: job.id, fence: job.fence },
                reason: ArchiveReason::Undecodable,
                error: job.envelope.err().map(|why| why.to_string()),
            })
            .collect();
        // One that is not archived now comes back when its lease ends: the others are not lost for it.
        if let Err(error) = self.archive(queue, &given_up).await {
            tracing::warn!(%queue, %error, "undecodable jobs not archived; they come back later");
        }
        Ok(Claim { more: claim.more || jobs.is_empty(), jobs })
    }
}

impl Inner {
    fn wake_key(&self, queue: &QueueName) -> String {
        keys::KeyWriter::new(&self.namespace, queue).key("wake").to_owned()
    }
}
