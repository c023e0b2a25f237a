//! A call carries at most a thousand items, and at most 8 MiB.

use crate::trial::*;
use sprag::{
    Codec, Fence, JobId, StoreError,
    model::MAX_BATCH_BYTES,
    store::{Archive, ArchiveReason, Complete, Held, Operation, Retry, Setting, Snooze},
};

cases! {
    a_thousand_items_are_allowed_everywhere,
    a_thousand_and_one_items_are_refused_everywhere,
    empty_slices_are_empty_answers,
    eight_mib_of_payloads_are_allowed,
    a_byte_more_is_refused_whole,
}

const TOO_MANY: &str = "batch: 1001 items; must be at most 1000";

/// Calls every verb that takes a slice with so many items that do not exist.
async fn lengths(t: &Trial, count: usize) -> Vec<Result<usize, StoreError>> {
    let held: Vec<Held> =
        (0..count).map(|n| Held { id: id(&format!("x{n}")), fence: Fence(1) }).collect();
    let ids: Vec<JobId> = held.iter().map(|held| held.id.clone()).collect();
    let each = |held: &Held| held.clone();
    let complete = |held: &Held| Complete { held: each(held), result: None };
    let retry = |held: &Held| Retry { held: each(held), delay: HOUR, error: String::new() };
    let (reason, error) = (ArchiveReason::Discarded, None);
    let archive = |held: &Held| Archive { held: each(held), reason, error: error.clone() };
    let snooze = |held: &Held| Snooze { held: each(held), delay: HOUR };
    let (s, q) = (&t.store, &t.queue);
    let mut lengths = vec![
        s.extend(q, &held, LEASE).await.map(|all| all.len()),
        s.complete(q, &held.iter().map(complete).collect::<Vec<_>>()).await.map(|all| all.len()),
        s.retry(q, &held.iter().map(retry).collect::<Vec<_>>()).await.map(|all| all.len()),
        s.archive(q, &held.iter().map(archive).collect::<Vec<_>>()).await.map(|all| all.len()),
        s.snooze(q, &held.iter().map(snooze).collect::<Vec<_>>()).await.map(|all| all.len()),
        s.requeue(q, &held).await.map(|all| all.len()),
        s.set(q, &vec![Setting::Limit(None); count]).await.map(|()| count),
        s.enqueue(q, &t.jobs(count)).await.map(|all| all.len()),
        s.enqueue_atomic(q, &t.jobs(count)).await.map(|all| all.len()).map_err(|e| e.error),
    ];
    for operation in Operation::ALL {
        lengths.push(s.operate(q, operation, &ids).await.map(|all| all.len()));
    }
    lengths
}

async fn a_thousand_items_are_allowed_everywhere(t: Trial) {
    assert_eq!(lengths(&t, 1_000).await, vec![Ok(1_000); 14]);
    assert_eq!(t.info().await.unfinished, 2_000);
}

async fn a_thousand_and_one_items_are_refused_everywhere(t: Trial) {
    assert_eq!(lengths(&t, 1_001).await, vec![Err(invalid(TOO_MANY)); 14]);
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing is written");
}

async fn empty_slices_are_empty_answers(t: Trial) {
    assert_eq!(lengths(&t, 0).await, vec![Ok(0); 14]);
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn eight_mib_of_payloads_are_allowed(t: Trial) {
    let jobs: Vec<_> =
        (0..8).map(|_| build(t.job().payload(vec![7; 1 << 20], Codec::Raw))).collect();
    assert!(t.offer_all(&jobs).await.iter().all(Result::is_ok));
    let claimed = t.claim(8).await;
    assert_eq!(claimed.len(), 8);
    for job in &claimed {
        assert_eq!(job.envelope.payload().len(), 1 << 20);
    }
}

async fn a_byte_more_is_refused_whole(t: Trial) {
    let large = t.job().max_payload(MAX_BATCH_BYTES).payload(vec![7; MAX_BATCH_BYTES], Codec::Raw);
    let jobs = [large, t.job().payload("x", Codec::Raw)].map(build);
    let text = "batch: 8388609 bytes; must be at most 8388608 bytes of payloads";
    assert_eq!(t.store.enqueue(&t.queue, &jobs).await, Err(invalid(text)));
    let error = t.store.enqueue_atomic(&t.queue, &jobs).await.expect_err("refused");
    assert_eq!((error.index, error.error), (None, invalid(text)));
    assert!(t.store.queue(&t.queue).await.is_err(), "nothing is written");
    assert!(only(t.offer_all(&jobs[..1]).await).is_ok(), "a single job may fill it");
}
