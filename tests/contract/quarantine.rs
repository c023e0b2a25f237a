//! A fingerprint in quarantine is closed to enqueue and claim.

use crate::trial::*;
use sprag::{
    Fingerprint, State, Unique, When,
    store::{Change, Ending, EndingReason, Quarantine},
};

cases! {
    an_operator_closes_a_fingerprint,
    a_reason_is_kept_and_cut_at_4_kib,
    a_closed_fingerprint_is_unchanged_by_a_second_call,
    a_quarantine_makes_the_queue,
    quarantines_are_sorted,
    an_absent_queue_has_no_quarantines,
    a_closed_fingerprint_is_refused,
    a_refused_job_leaves_nothing,
    a_closed_fingerprint_is_an_offence_in_an_atomic_batch,
    an_existing_job_of_a_closed_fingerprint_is_existing,
    a_past_deadline_is_judged_before_the_quarantine,
    the_quarantine_is_judged_before_the_unique_key,
    the_quarantine_is_judged_before_backpressure,
    closing_moves_no_job,
    a_claim_moves_the_jobs_that_it_meets,
    a_claim_fills_up_past_quarantined_jobs,
    an_expired_job_of_a_closed_fingerprint_is_expired,
    a_waiting_job_of_a_closed_fingerprint_falls_due,
    a_running_job_of_a_closed_fingerprint_may_settle,
    a_completion_opens_no_fingerprint,
    a_crashed_job_of_a_closed_fingerprint_joins_it,
    a_quarantined_job_is_kept_for_ninety_days,
    a_quarantine_outlives_its_jobs,
    the_quarantine_of_one_queue_is_not_anothers,
}

/// Closes the content of [`Trial::job`].
async fn close(t: &Trial) -> Fingerprint {
    let fingerprint = build(t.job()).fingerprint();
    t.quarantine(&fingerprint).await;
    fingerprint
}

async fn quarantines(t: &Trial) -> Vec<Quarantine> {
    t.store.quarantines(&t.queue).await.expect("quarantines")
}

async fn an_operator_closes_a_fingerprint(t: Trial) {
    let fingerprint = build(t.job()).fingerprint();
    let answer = t.store.quarantine(&t.queue, &fingerprint, Some("it kills")).await;
    assert_eq!(answer, Ok(Change::Changed));
    let expected = Quarantine {
        fingerprint,
        since: t.now().await,
        crashes: 0,
        sample_id: None,
        worker: None,
        reason: Some("it kills".to_owned()),
    };
    t.advance(secs(1)).await;
    assert_eq!(quarantines(&t).await, [expected]);
}

async fn a_reason_is_kept_and_cut_at_4_kib(t: Trial) {
    let any: String = (0..=0x17f_u32).filter_map(char::from_u32).collect();
    let long = "x".repeat(4_097);
    for reason in [Some(any.as_str()), Some(&long[1..]), Some(""), None] {
        let fingerprint = Fingerprint::of("k", reason.unwrap_or("none").as_bytes());
        t.store.quarantine(&t.queue, &fingerprint, reason).await.expect("closed");
        let all = quarantines(&t).await;
        let found = all.iter().find(|one| one.fingerprint == fingerprint).expect("listed");
        assert_eq!(found.reason.as_deref(), reason);
    }
    let t = t.other_queue().await;
    t.store.quarantine(&t.queue, &Fingerprint::of("k", b""), Some(&long)).await.expect("closed");
    let reason = quarantines(&t).await.remove(0).reason.expect("kept");
    assert!(reason.len() == 4_096 && reason.ends_with("x… (cut)"));
}

async fn a_closed_fingerprint_is_unchanged_by_a_second_call(t: Trial) {
    let fingerprint = close(&t).await;
    let before = quarantines(&t).await;
    t.advance(secs(1)).await;
    let again = t.store.quarantine(&t.queue, &fingerprint, Some("again")).await;
    assert_eq!((again, quarantines(&t).await), (Ok(Change::Unchanged), before));
}

async fn a_quarantine_makes_the_queue(t: Trial) {
    close(&t).await;
    assert_eq!(t.info().await.unfinished, 0);
    assert!(t.store.queues().await.expect("queues").contains(&t.queue));
}

async fn quarantines_are_sorted(t: Trial) {
    for n in 0..20_u8 {
        t.quarantine(&Fingerprint::of("k", &[n])).await;
    }
    let all: Vec<String> =
        quarantines(&t).await.iter().map(|one| one.fingerprint.to_string()).collect();
    assert!(all.len() == 20 && all.is_sorted(), "{all:?}");
}

async fn an_absent_queue_has_no_quarantines(t: Trial) {
    assert_eq!(quarantines(&t).await, []);
    assert!(t.store.queue(&t.queue).await.is_err(), "it makes no queue");
}

async fn a_closed_fingerprint_is_refused(t: Trial) {
    let fingerprint = close(&t).await;
    assert_eq!(t.offer(t.job()).await, Err(quarantined(fingerprint)));
    assert_eq!(t.offer(t.job().run_at(When::In(HOUR))).await, Err(quarantined(fingerprint)));
    t.enqueue(t.saying("other")).await;
}

async fn a_refused_job_leaves_nothing(t: Trial) {
    close(&t).await;
    t.token().await;
    t.offer(t.named("a").unique(Unique::key("k"))).await.expect_err("closed");
    assert_eq!(t.find(&id("a")).await, Err(no_job(&id("a"))));
    assert!(!t.token().await);
    t.enqueue(t.saying("other").unique(Unique::key("k"))).await;
}

async fn a_closed_fingerprint_is_an_offence_in_an_atomic_batch(t: Trial) {
    let fingerprint = close(&t).await;
    let jobs = [t.saying("other"), t.job(), t.job()].map(build);
    let error = t.store.enqueue_atomic(&t.queue, &jobs).await.expect_err("refused");
    assert_eq!((error.index, error.error), (Some(1), quarantined(fingerprint)));
    assert_eq!(t.info().await.unfinished, 0);
}

async fn an_existing_job_of_a_closed_fingerprint_is_existing(t: Trial) {
    t.enqueue(t.named("a")).await;
    close(&t).await;
    assert_eq!(t.offer(t.named("a")).await, existing(&id("a"), Some(State::Pending)));
    t.claim(1).await;
    assert_eq!(t.offer(t.named("a")).await, existing(&id("a"), Some(State::Quarantined)));
}

async fn a_past_deadline_is_judged_before_the_quarantine(t: Trial) {
    close(&t).await;
    let text = "deadline: is past by the store's clock";
    assert_eq!(t.offer(t.job().deadline(When::Now)).await, Err(invalid(text)));
}

async fn the_quarantine_is_judged_before_the_unique_key(t: Trial) {
    t.enqueue(t.saying("other").unique(Unique::key("k"))).await;
    let fingerprint = close(&t).await;
    let job = t.job().unique(Unique::key("k"));
    assert_eq!(t.offer(job).await, Err(quarantined(fingerprint)));
}

async fn the_quarantine_is_judged_before_backpressure(t: Trial) {
    let fingerprint = close(&t).await;
    t.limit(0).await;
    assert_eq!(t.offer(t.job()).await, Err(quarantined(fingerprint)));
}

async fn closing_moves_no_job(t: Trial) {
    for state in UNFINISHED {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        close(&t).await;
        assert_eq!(t.state(&job).await, state);
        t.sweep().await;
        assert_eq!((t.state(&job).await, t.info().await.unfinished), (state, 1));
    }
}

async fn a_claim_moves_the_jobs_that_it_meets(t: Trial) {
    let job = t.enqueue(t.job()).await;
    close(&t).await;
    assert_eq!(t.claim(10).await, []);
    let (info, at) = (t.show(&job).await, t.now().await);
    let ending = Some(Ending { reason: EndingReason::Quarantined, at, worker: None });
    assert_eq!((info.state, info.ending), (State::Quarantined, ending));
    assert_eq!((info.crash, info.errors.len()), (0, 0));
    let info = t.info().await;
    assert_eq!((info.pending, info.quarantined, info.unfinished), (0, 1, 0));
}

async fn a_claim_fills_up_past_quarantined_jobs(t: Trial) {
    for n in 0..5 {
        t.enqueue(t.job()).await;
        t.enqueue(t.saying(&n.to_string())).await;
    }
    close(&t).await;
    assert_eq!(t.claim(3).await.len(), 3);
    assert_eq!(t.claim(3).await.len(), 2);
    assert_eq!(t.info().await.quarantined, 5);
}

async fn an_expired_job_of_a_closed_fingerprint_is_expired(t: Trial) {
    let job = t.enqueue(t.job().deadline(When::In(secs(1)))).await;
    close(&t).await;
    t.advance(secs(1)).await;
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.ending(&job).await, EndingReason::Expired);
}

async fn a_waiting_job_of_a_closed_fingerprint_falls_due(t: Trial) {
    let job = t.job_in(State::Scheduled, t.job()).await;
    close(&t).await;
    assert_eq!(t.sweep_after(HOUR).await.promoted, 1);
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.state(&job).await, State::Quarantined);
}

async fn a_running_job_of_a_closed_fingerprint_may_settle(t: Trial) {
    for verb in Fenced::all() {
        let t = t.other_queue().await;
        t.enqueue(t.job()).await;
        let held = t.claim_one().await;
        close(&t).await;
        assert_eq!(verb.apply(&t, &held).await, Ok(()), "{verb:?}");
    }
}

async fn a_completion_opens_no_fingerprint(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    let fingerprint = close(&t).await;
    t.complete(&held).await.expect("completed");
    assert_eq!(t.offer(t.job()).await, Err(quarantined(fingerprint)));
}

async fn a_crashed_job_of_a_closed_fingerprint_joins_it(t: Trial) {
    let job = t.enqueue(t.job()).await;
    t.claim_one().await;
    close(&t).await;
    let before = quarantines(&t).await;
    let swept = t.vanish().await;
    assert_eq!((swept.reclaimed, swept.quarantined, swept.claimable), (1, 1, false));
    let (info, at, worker) = (t.show(&job).await, t.now().await, Some(t.worker.clone()));
    let ending = Some(Ending { reason: EndingReason::Quarantined, at, worker });
    assert_eq!((info.state, info.ending, info.crash), (State::Quarantined, ending, 1));
    assert_eq!(quarantines(&t).await, before, "it is closed since then and by whom");
}

async fn a_quarantined_job_is_kept_for_ninety_days(t: Trial) {
    for (own, kept) in [(HOUR, 90 * DAY), (91 * DAY, 91 * DAY)] {
        let t = t.other_queue().await;
        let job = t.job_in(State::Quarantined, t.job().retention(own)).await;
        assert_eq!(t.sweep_after(kept - ms(1)).await.evicted, 0);
        assert_eq!(t.sweep_after(ms(1)).await.evicted, 1);
        assert_eq!(t.find(&job).await, Err(no_job(&job)));
    }
}

async fn a_quarantine_outlives_its_jobs(t: Trial) {
    t.job_in(State::Quarantined, t.job()).await;
    assert_eq!(t.sweep_after(1_000 * DAY).await.evicted, 1);
    assert_eq!(quarantines(&t).await.len(), 1);
    t.offer(t.job()).await.expect_err("closed until an operator opens it");
}

async fn the_quarantine_of_one_queue_is_not_anothers(t: Trial) {
    close(&t).await;
    let other = t.other_queue().await;
    other.enqueue(other.job()).await;
    assert_eq!(quarantines(&other).await, []);
}
