//! One method per verb: what it checks, what it sends, how its answer is read.

#[cfg(feature = "cluster")]
use super::waits;
use super::{
    Inner, RedisStore,
    call::Reply,
    checked,
    decode::{self, Broken},
    keys, listen,
    scripts::Verb,
    whole,
};
use crate::{
    model::{
        Envelope, Fingerprint, JobId, Kind, QueueName, State, StoreError, WorkerId,
        checked as checked_duration, checked_lease, millis, record,
    },
    store::{
        Archive, ArchiveReason, BatchError, Change, Channel, Claim, Complete, Day, Durability,
        Ended, EndingReason, Enqueued, Events, Held, JobInfo, Operation, Outcomes, Pace, Page,
        Quarantine, QueueInfo, Released, Retry, Setting, Snooze, Store, Swept, Wish, WorkerInfo,
        check_batch, check_count, check_days, check_enqueue, check_page, check_progress,
        settle::cut_error,
    },
};
use redis::Cmd;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// For so long a sweep that reclaims is repeated.
const SHARED_BUDGET: Duration = Duration::from_secs(1);

/// The end of a failure's JSON object, which the script begins.
fn said(error: &str) -> String {
    // A string always has a JSON form.
    let text = serde_json::to_string(&cut_error(error)).unwrap_or_default();
    format!(",\"error\":{text}}}")
}

/// Checks that a cursor is one that a page of this state may have given: `<lane> <entries passed>`
/// for pending jobs, `<time> <id>` for others.
fn check_cursor(state: State, cursor: &str) -> Result<(), StoreError> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let fits = cursor.split_once(' ').is_some_and(|(first, second)| match state {
        State::Pending => digits(first) && first.len() == 1 && digits(second) && second.len() < 16,
        _ => digits(first) && JobId::new(second).is_ok(),
    });
    if fits {
        return Ok(());
    }
    Err(StoreError::invalid("cursor", format!("{} bytes", cursor.len()), "one that a page gave"))
}

/// A setting's name and value in `meta`; no value takes it away.
fn in_meta(setting: Setting) -> (String, String) {
    let number = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    let (name, value) = match setting {
        Setting::Limit(limit) => ("limit", number(limit)),
        Setting::Paused(paused) => ("paused", number(paused.then_some(1))),
        Setting::MaxArchived(jobs) => ("max_archived", number(jobs)),
        Setting::CrashLimit(limit) => ("crash_limit", number(limit.map(u64::from))),
        Setting::CrashWindow(window) => ("crash_window", number(window.map(millis))),
        Setting::Retention(state, kept) => {
            return (format!("retain_{state}"), number(kept.map(millis)));
        }
    };
    (name.to_owned(), value)
}

fn same(held: &Held) -> &Held {
    held
}

fn all_in_bounds<J>(jobs: &[J]) -> Vec<Result<(), StoreError>> {
    jobs.iter().map(|_| Ok(())).collect()
}

/// Of what is there, and not as durable as was asked: the job itself, or the one that holds its unique
/// key. What was refused otherwise is refused, however durable.
fn durable(
    outcome: Result<Enqueued, StoreError>,
    shortfall: Option<&StoreError>,
) -> Result<Enqueued, StoreError> {
    let Some(shortfall) = shortfall else { return outcome };
    let there = match &outcome {
        Ok(Enqueued { id, .. }) => format!("job {id} is enqueued"),
        Err(StoreError::Duplicate { existing_id, .. }) => {
            format!("job {existing_id} holds the unique key")
        }
        Err(_) => return outcome,
    };
    Err(shortfall.clone().although(&there))
}

#[async_trait::async_trait]
impl Store for RedisStore {
    async fn enqueue(
        &self,
        queue: &QueueName,
        jobs: &[Envelope],
    ) -> Result<Outcomes<Enqueued>, StoreError> {
        checked(jobs, check_enqueue(queue, jobs)?, |jobs| async move {
            let Reply { answer, shortfall } = self.0.admit(queue, &jobs, "each", self.1).await?;
            let ids: Vec<_> = jobs.iter().map(|job| &job.id).collect();
            let decide = |line: &decode::Line<'_>, id: &JobId| {
                durable(decode::enqueued(queue, line, id), shortfall.as_ref())
            };
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
        let jobs_of = jobs.iter().collect::<Vec<_>>();
        let Reply { answer, shortfall } = self.0.admit(queue, &jobs_of, "atomic", self.1).await?;
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
        shortfall.map_or(Ok(()), |error| Err(error.although("the jobs are enqueued")))?;
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
        let answer = self.0.verb(Verb::Claim, queue, &args).await?;
        let (mut claim, broken) = decode::claim(queue, answer)?;
        if !broken.is_empty() {
            claim.more |= claim.jobs.is_empty();
            claim.ended.extend(self.archive_broken(queue, broken).await);
        }
        Ok(claim)
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
        // What reclaims is not repeated until the server is back: after an outage whoever lives
        // shall extend its leases first.
        let (pace, budget) = match pace {
            Pace::Promote => ("promote", self.0.budget),
            Pace::Shared => ("shared", self.0.budget.min(SHARED_BUDGET)),
            Pace::Now => ("now", self.0.budget),
        };
        let mut all = Swept::default();
        loop {
            let args = |cmd: &mut Cmd| {
                cmd.arg(pace).arg(fastrand::f64());
            };
            let answer = self.0.repeated_within(budget, Verb::Sweep, queue, &args).await?;
            let (slice, again) = decode::swept(answer)?;
            all.add(slice);
            if !again {
                return Ok(all);
            }
        }
    }

    async fn operate(
        &self,
        queue: &QueueName,
        operation: Operation,
        ids: &[JobId],
    ) -> Result<Outcomes<Change>, StoreError> {
        check_batch(ids.len())?;
        let mut outcomes = Vec::with_capacity(ids.len());
        while outcomes.len() < ids.len() {
            let rest: Vec<_> = ids[outcomes.len()..].iter().collect();
            let args = |cmd: &mut Cmd| {
                cmd.arg(operation.as_str());
                for id in &rest {
                    cmd.arg(id.as_str());
                }
            };
            let answer = self.0.verb(Verb::Operate, queue, &args).await?;
            let decide =
                |line: &decode::Line<'_>, id: &JobId| decode::operated(operation, line, id);
            let slice = decode::outcomes(&decode::lines(&answer)?, &rest, decide)?;
            if slice.is_empty() {
                return whole(outcomes, ids.len());
            }
            outcomes.extend(slice);
        }
        Ok(outcomes)
    }

    async fn set(&self, queue: &QueueName, settings: &[Setting]) -> Result<(), StoreError> {
        check_batch(settings.len())?;
        for setting in settings {
            setting.check()?;
        }
        if settings.is_empty() {
            return Ok(());
        }
        let args = |cmd: &mut Cmd| {
            for setting in settings {
                let (name, value) = in_meta(*setting);
                cmd.arg(name).arg(value);
            }
        };
        let answer = self.0.verb(Verb::Set, queue, &args).await?;
        self.0.register(queue, decode::made(&decode::lines(&answer)?)).await
    }

    async fn quarantine(
        &self,
        queue: &QueueName,
        fingerprint: &Fingerprint,
        reason: Option<&str>,
    ) -> Result<Change, StoreError> {
        let reason =
            reason.map(|reason| format!(" reason={}", record::encoded(&cut_error(reason))));
        let reason = reason.unwrap_or_default();
        let args = |cmd: &mut Cmd| {
            cmd.arg(fingerprint.as_str()).arg(&reason);
        };
        let answer = self.0.verb(Verb::Quarantine, queue, &args).await?;
        let lines = decode::lines(&answer)?;
        self.0.register(queue, decode::made(&lines)).await?;
        decode::quarantined(&lines)
    }

    async fn release(
        &self,
        queue: &QueueName,
        fingerprint: &Fingerprint,
    ) -> Result<Released, StoreError> {
        let (mut all, mut known, mut from) = (Released::default(), false, Some(0));
        while let Some(pass_over) = from {
            let args = |cmd: &mut Cmd| {
                cmd.arg(fingerprint.as_str()).arg(pass_over);
            };
            let answer = self.0.verb(Verb::Release, queue, &args).await?;
            let (was_closed, slice, next) = decode::released(&answer)?;
            known |= was_closed || slice != Released::default();
            all.released += slice.released;
            all.archived += slice.archived;
            from = next;
        }
        if known {
            Ok(all)
        } else {
            Err(StoreError::NotFound(format!("fingerprint {fingerprint}")))
        }
    }

    async fn quarantines(&self, queue: &QueueName) -> Result<Vec<Quarantine>, StoreError> {
        // A scan may name one twice.
        let (mut all, mut cursor) = (BTreeMap::new(), Some("0".to_owned()));
        while let Some(at) = cursor {
            let args = |cmd: &mut Cmd| {
                cmd.arg(&at);
            };
            let answer = self.0.repeated(Verb::Quarantines, queue, &args).await?;
            let (next, slice) = decode::quarantines(answer)?;
            all.extend(slice.into_iter().map(|entry| (entry.fingerprint.to_string(), entry)));
            cursor = next;
        }
        Ok(all.into_values().collect())
    }

    async fn list(
        &self,
        queue: &QueueName,
        state: State,
        kind: Option<&Kind>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        check_page(limit)?;
        cursor.map_or(Ok(()), |cursor| check_cursor(state, cursor))?;
        let args = |cmd: &mut Cmd| {
            cmd.arg(state.as_str()).arg(kind.map_or("", Kind::as_str));
            cmd.arg(cursor.unwrap_or_default()).arg(limit);
        };
        decode::page(queue, self.0.repeated(Verb::List, queue, &args).await?)
    }

    async fn days(&self, queue: &QueueName, days: u32) -> Result<Vec<Day>, StoreError> {
        check_days(days)?;
        let args = |cmd: &mut Cmd| {
            cmd.arg(days).arg(&["completed", "failed", "crashed", "expired", "quarantined"]);
        };
        decode::days(self.0.repeated(Verb::Days, queue, &args).await?)
    }

    async fn delete_queue(&self, queue: &QueueName, force: bool) -> Result<(), StoreError> {
        let info = self.queue(queue).await?;
        let leaves_the_list = force || info.unfinished == 0;
        if leaves_the_list {
            // First from the list, then the keys: who enqueues in between makes the queue anew and
            // puts it on the list again.
            self.0.unregister(queue).await?;
        }
        let args = |cmd: &mut Cmd| {
            cmd.arg(u8::from(force));
        };
        let answer = self.0.repeated(Verb::DeleteQueue, queue, &args).await;
        let deleted = answer.and_then(|answer| decode::queue_deleted(&decode::lines(&answer)?));
        let stays = matches!(&deleted, Err(error) if !matches!(error, StoreError::Unavailable(_)));
        if leaves_the_list && stays {
            self.0.register(queue, true).await?;
        }
        deleted
    }

    async fn progress(
        &self,
        queue: &QueueName,
        held: &Held,
        progress: &str,
    ) -> Result<(), StoreError> {
        check_progress(progress)?;
        let args = |cmd: &mut Cmd| {
            cmd.arg(held.id.as_str()).arg(held.fence.0).arg(progress);
        };
        let answer = self.0.repeated(Verb::Progress, queue, &args).await?;
        let outcomes = decode::outcomes(&decode::lines(&answer)?, &[&held.id], decode::fenced)?;
        whole(outcomes, 1)?.remove(0)
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

    async fn register(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.0.list_again(queues).await
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
        #[cfg(feature = "cluster")]
        if self.0.link.is_cluster() {
            return waits::wait_for_any(&self.0, queues, timeout).await;
        }
        self.0.block(queues, timeout).await
    }

    async fn wake(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.0.repeated(Verb::Wake, queue, &|_| {}).await.map(drop)
    }

    async fn listen(&self, channel: Channel) -> Result<Events, StoreError> {
        listen::listen(self.0.clone(), channel).await
    }

    async fn watch(&self, queue: &QueueName, for_: Duration) -> Result<(), StoreError> {
        let for_ = millis(checked_duration("watch", for_)?);
        let args = |cmd: &mut Cmd| {
            cmd.arg(for_);
        };
        self.0.repeated(Verb::WatchEnds, queue, &args).await.map(drop)
    }

    async fn beat(&self, worker: &WorkerInfo) -> Result<Option<Wish>, StoreError> {
        self.0.beat(worker).await
    }

    async fn ask(&self, worker: &WorkerId, wish: Wish) -> Result<(), StoreError> {
        self.0.ask(worker, wish).await
    }

    async fn retire(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.0.retire(worker).await
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        self.0.workers().await
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(RedisStore(Arc::new(self.0.apart()), self.1))
    }

    fn durable(&self, durability: Durability) -> Arc<dyn Store> {
        Arc::new(RedisStore(self.0.clone(), Some(durability)))
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.0.link.ping().await.map_err(|fault| fault.error)
    }
}

impl RedisStore {
    /// Archives what only Rust can tell to be undecodable. One that is not archived now comes back
    /// when its lease ends: the other jobs of the claim are not lost for it.
    async fn archive_broken(&self, queue: &QueueName, broken: Vec<Broken>) -> Vec<Ended> {
        let given_up: Vec<_> = broken
            .into_iter()
            .map(|job| Archive {
                held: job.held,
                reason: ArchiveReason::Undecodable,
                error: Some(job.why.to_string()),
            })
            .collect();
        let outcomes = self.archive(queue, &given_up).await.unwrap_or_else(|error| {
            tracing::warn!(%queue, %error, "undecodable jobs not archived; they come back later");
            Vec::new()
        });
        let archived = given_up.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
        archived.map(|(job, _)| Ended::of(job.held.id, EndingReason::Undecodable)).collect()
    }
}

impl Inner {
    /// Blocks until a queue has a wake token, and takes it.
    pub(super) async fn block(
        &self,
        queues: &[QueueName],
        timeout: Duration,
    ) -> Result<Option<QueueName>, StoreError> {
        let mut pop = redis::cmd("BLPOP");
        let keys: Vec<_> = queues.iter().map(|queue| self.wake_key(queue)).collect();
        // Zero would mean for ever.
        let timeout = timeout.max(Duration::from_millis(1));
        pop.arg(&keys).arg(format!("{:.3}", timeout.as_secs_f64()));
        let answer = self.link.send_blocking(&pop, timeout).await.map_err(|fault| fault.error)?;
        let woken = decode::woken(answer)?;
        let place = woken.and_then(|woken| keys.iter().position(|key| *key == woken));
        Ok(place.map(|i| queues[i].clone()))
    }

    fn wake_key(&self, queue: &QueueName) -> String {
        keys::KeyWriter::new(&self.namespace, queue).key("wake").to_owned()
    }
}
