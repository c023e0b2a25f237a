//! Claims and sweeps tell which jobs they ended, and why.

use crate::trial::*;
use sprag::{
    JobId, State, When,
    store::{Claim, Ended, EndingReason, Setting},
};

cases! {
    a_claim_tells_the_jobs_that_it_met_and_ended,
    a_claim_tells_an_end_once,
    a_claim_that_ends_nothing_tells_none,
    a_sweep_tells_the_jobs_that_expired,
    a_sweep_tells_the_jobs_of_dead_workers_that_ended,
    a_sweep_tells_all_of_many_slices,
    a_job_that_is_not_kept_is_told_all_the_same,
    what_others_end_is_not_told,
}

fn expired(id: &JobId) -> Ended {
    Ended { id: id.clone(), state: State::Archived, reason: EndingReason::Expired }
}

fn quarantined(id: &JobId) -> Ended {
    Ended { id: id.clone(), state: State::Quarantined, reason: EndingReason::Quarantined }
}

async fn claim(t: &Trial, count: usize) -> Claim {
    t.store.claim(&t.queue, &t.worker, count, LEASE).await.expect("claim")
}

fn in_an_hour(t: &Trial, name: &str) -> sprag::model::EnvelopeBuilder {
    t.named(name).deadline(When::In(HOUR))
}

async fn a_claim_tells_the_jobs_that_it_met_and_ended(t: Trial) {
    t.enqueue(in_an_hour(&t, "late")).await;
    t.enqueue(t.saying("poison").id(id("closed"))).await;
    let good = t.saying("good");
    let good = t.enqueue(good).await;
    t.quarantine(&t.fingerprint(&id("closed")).await).await;
    t.advance(HOUR).await;
    let claim = claim(&t, 9).await;
    assert_eq!(claim.jobs.iter().map(|job| &job.id).collect::<Vec<_>>(), [&good]);
    assert_eq!(claim.ended, [expired(&id("late")), quarantined(&id("closed"))]);
    for told in claim.ended {
        let job = t.show(&told.id).await;
        assert_eq!((job.state, job.ending.expect("ended").reason), (told.state, told.reason));
    }
}

async fn a_claim_tells_an_end_once(t: Trial) {
    t.enqueue(in_an_hour(&t, "a")).await;
    t.advance(HOUR).await;
    assert_eq!(claim(&t, 1).await.ended, [expired(&id("a"))]);
    assert_eq!(claim(&t, 1).await, Claim::default());
    assert_eq!(t.sweep().await.ended, []);
}

async fn a_claim_that_ends_nothing_tells_none(t: Trial) {
    assert_eq!(claim(&t, 1).await.ended, []);
    t.enqueue(in_an_hour(&t, "a")).await;
    let claim = claim(&t, 1).await;
    assert_eq!((claim.jobs.len(), claim.ended), (1, vec![]));
}

async fn a_sweep_tells_the_jobs_that_expired(t: Trial) {
    t.enqueue(in_an_hour(&t, "pending")).await;
    t.advance(ms(1)).await;
    t.enqueue(in_an_hour(&t, "scheduled").run_at(When::In(DAY))).await;
    t.advance(HOUR).await;
    let told = [expired(&id("pending")), expired(&id("scheduled"))];
    assert_eq!(t.sweep().await.ended, told);
    assert_eq!(t.sweep().await.ended, []);
}

async fn a_sweep_tells_the_jobs_of_dead_workers_that_ended(t: Trial) {
    t.set(Setting::CrashLimit(Some(1))).await;
    t.enqueue(t.named("late").deadline(When::In(LEASE))).await;
    t.claim_one().await;
    t.advance(ms(1)).await;
    t.enqueue(t.saying("poison").id(id("poison"))).await;
    t.claim_one().await;
    let swept = t.vanish().await;
    assert_eq!((swept.expired, swept.quarantined), (1, 1));
    assert_eq!(swept.ended, [expired(&id("late")), quarantined(&id("poison"))]);
}

async fn a_sweep_tells_all_of_many_slices(t: Trial) {
    let late: Vec<_> = (0..250).map(|_| build(t.job().deadline(When::In(HOUR)))).collect();
    t.offer_all(&late).await;
    let swept = t.sweep_after(HOUR).await;
    let mut told: Vec<_> = swept.ended.iter().map(|job| job.id.to_string()).collect();
    let mut ids: Vec<_> = late.iter().map(|job| job.id().to_string()).collect();
    told.sort();
    ids.sort();
    assert_eq!((swept.expired, told), (250, ids));
}

async fn a_job_that_is_not_kept_is_told_all_the_same(t: Trial) {
    t.set(Setting::Retention(State::Archived, Some(ms(1)))).await;
    t.enqueue(in_an_hour(&t, "a")).await;
    assert_eq!(t.sweep_after(HOUR).await.ended, [expired(&id("a"))]);
    t.sweep_after(ms(1)).await;
    assert_eq!(t.find(&id("a")).await, Err(no_job(&id("a"))));
}

async fn what_others_end_is_not_told(t: Trial) {
    t.enqueue_named(&["archived", "cancelled"]).await;
    t.archive(&t.claim_one().await).await.expect("held");
    t.cancel(&id("cancelled")).await.expect("cancelled");
    assert_eq!(t.sweep().await.ended, []);
    assert_eq!(claim(&t, 9).await.ended, []);
}
