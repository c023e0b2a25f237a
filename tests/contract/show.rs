//! Everything known of a job.

use crate::trial::*;
use sprag::{
    State,
    store::{Ending, EndingReason, JobInfo},
};

cases! {
    an_absent_job_is_not_found,
    a_pending_job_is_shown_whole,
    a_completed_job_is_shown_whole,
    looking_changes_nothing,
}

async fn an_absent_job_is_not_found(t: Trial) {
    t.enqueue(t.job()).await;
    assert_eq!(t.find(&id("nobody")).await, Err(no_job(&id("nobody"))));
}

fn shown(job: &sprag::Envelope, state: State, at: sprag::Timestamp) -> JobInfo {
    JobInfo {
        id: job.id().clone(),
        state,
        envelope: Ok((job.clone(), at)),
        attempt: 0,
        crash: 0,
        due_at: None,
        holder: None,
        progress: None,
        errors: vec![],
        result: None,
        ending: None,
        evicted_at: None,
    }
}

async fn a_pending_job_is_shown_whole(t: Trial) {
    let job = build(t.job().priority(1).retention(HOUR).version(3));
    t.offer_all(std::slice::from_ref(&job)).await;
    assert_eq!(t.show(job.id()).await, shown(&job, State::Pending, t.now().await));
}

async fn a_completed_job_is_shown_whole(t: Trial) {
    let (job, at) = (build(t.job().retention(HOUR)), t.now().await);
    t.offer_all(std::slice::from_ref(&job)).await;
    t.advance(secs(1)).await;
    t.complete_with(&t.claim_one().await, Some(b"7".to_vec())).await.expect("completed");
    let (reason, now) = (EndingReason::Completed, t.now().await);
    let expected = JobInfo {
        result: Some("7".into()),
        ending: Some(Ending { reason, at: now, worker: Some(t.worker.clone()) }),
        evicted_at: Some(now + HOUR),
        ..shown(&job, State::Completed, at)
    };
    assert_eq!(t.show(job.id()).await, expected);
}

async fn looking_changes_nothing(t: Trial) {
    let job = t.job_in(State::Active, t.job()).await;
    t.token().await;
    t.advance(HOUR).await;
    let first = (t.show(&job).await, t.info().await);
    assert_eq!((t.show(&job).await, t.info().await), first);
    assert!(!t.token().await);
    assert_eq!(first.0.state, State::Active, "only a sweep reclaims");
}
