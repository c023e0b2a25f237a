//! `maxmemory` is reached, with `noeviction` (CASES 37).

use crate::{
    case::Case,
    rig::{HOUR, LEASE, Rig, assert_same, queue},
    world::{build, claim, held, job},
};
use redis::cmd;
use sprag::{
    Codec, Store, StoreError,
    store::{Complete, Pace},
};

/// Less than an empty server uses: every command that may need memory is refused.
async fn fill_memory(rig: &Rig) {
    rig.run::<()>(cmd("CONFIG").arg("SET").arg("maxmemory").arg("1mb")).await;
}

async fn free_memory(rig: &Rig) {
    rig.run::<()>(cmd("CONFIG").arg("SET").arg("maxmemory").arg("0")).await;
}

/// Calls that bring data: they are refused as a whole.
fn begins_with_more(case: Case) -> bool {
    case.script() == "enqueue" || case == Case::Progress
}

#[tokio::test]
async fn when_memory_is_full_what_brings_data_is_unavailable_and_writes_nothing() {
    let rig = Rig::new().await;
    for case in Case::ALL.iter().filter(|case| begins_with_more(**case)) {
        let world = case.prepare(&rig, &rig.direct()).await;
        let before = rig.dump().await;
        fill_memory(&rig).await;
        let answer = case.call(&rig.hasty_store(), &world).await;
        free_memory(&rig).await;
        assert!(answer.contains("Unavailable(") && answer.contains("OOM"), "{case:?}: {answer}");
        assert_same(&before, &rig.dump().await, &format!("{case:?} without memory"));
    }
}

#[tokio::test]
async fn when_memory_is_full_every_other_call_does_what_it_always_does() {
    let rig = Rig::new().await;
    let makes_a_queue = |case: Case| matches!(case, Case::LimitNewQueue | Case::QuarantineNewQueue);
    for case in Case::ALL.iter().filter(|case| !begins_with_more(**case) && !makes_a_queue(**case))
    {
        let world = case.prepare(&rig, &rig.direct()).await;
        let answer = case.call(&rig.direct(), &world).await;
        let calm = rig.dump().await.of_jobs();

        let world = case.prepare(&rig, &rig.direct()).await;
        fill_memory(&rig).await;
        let without_memory = case.call(&rig.hasty_store(), &world).await;
        free_memory(&rig).await;
        assert_eq!(without_memory, answer, "{case:?}");
        assert_same(&calm, &rig.dump().await.of_jobs(), &format!("{case:?} without memory"));
    }
}

#[tokio::test]
async fn a_full_queue_is_worked_off_and_then_takes_jobs_again() {
    let rig = Rig::new().await;
    let store = rig.hasty_store();
    rig.run::<()>(cmd("CONFIG").arg("SET").arg("maxmemory").arg("8mb")).await;
    let big = |i: usize| job(&format!("j-{i}")).payload(vec![b'x'; 100_000], Codec::Raw);
    let mut admitted = 0;
    let refusal = loop {
        match store.enqueue(&queue(), &build([big(admitted)])).await {
            Ok(_) => admitted += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&refusal, StoreError::Unavailable(why) if why.contains("OOM")), "{refusal:?}");
    assert!(admitted > 10, "{admitted}");

    let mut done = 0;
    loop {
        let claimed = claim(&store, 5).await;
        if claimed.is_empty() {
            break;
        }
        let holds: Vec<_> = claimed.iter().map(held).collect();
        let extended = store.extend(&queue(), &holds, LEASE).await.expect("extend");
        assert!(extended.iter().all(Result::is_ok), "{extended:?}");
        let jobs: Vec<_> = holds.into_iter().map(|held| Complete { held, result: None }).collect();
        let outcomes = store.complete(&queue(), &jobs).await.expect("complete");
        done += outcomes.into_iter().filter(Result::is_ok).count();
        store.sweep(&queue(), Pace::Now).await.expect("sweep");
    }
    assert_eq!(done, admitted);
    rig.advance(HOUR).await;
    let outcomes = store.enqueue(&queue(), &build([big(admitted)])).await.expect("room again");
    outcomes[0].as_ref().expect("admitted");
}
