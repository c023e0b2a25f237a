//! Somebody's hand was at work, or a worker vanished: CASES at the level of the store.

use crate::{
    rig::{HOUR, LEASE, Rig, queue},
    world::{World, build, claim, enqueue, held, id, job, names, worker},
};
use sprag::{
    RedisStore, State, Store, StoreError,
    store::{
        Archive, ArchiveReason, Complete, EndingReason, Held, Operation, Pace, Retry, Snooze, Swept,
    },
};
use std::time::Duration;

async fn sweep(store: &RedisStore) -> Swept {
    store.sweep(&queue(), Pace::Now).await.expect("sweep")
}

async fn complete(store: &RedisStore, held: Held) -> Result<(), StoreError> {
    let done = [Complete { held, result: None }];
    store.complete(&queue(), &done).await.expect("complete").remove(0)
}

async fn holding(jobs: &[&str]) -> (Rig, RedisStore, Vec<sprag::store::Claimed>) {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, jobs.iter().map(|name| job(name))).await;
    let claimed = claim(&store, jobs.len()).await;
    (rig, store, claimed)
}

/// CASES 1.
#[tokio::test]
async fn a_job_whose_lease_entry_is_gone_is_claimable_again_after_a_sweep() {
    let (rig, store, claimed) = holding(&["a"]).await;
    rig.on::<()>("ZREM", "active", &["a"]).await;
    assert_eq!(sweep(&store).await.reclaimed, 1);
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 1);
    let again = claim(&store, 9).await;
    assert_eq!((names(&again), again[0].crash), (vec!["a"], 1));
    assert!(claim(&store, 9).await.is_empty());
    assert!(complete(&store, held(&claimed[0])).await.is_err(), "the old holder");
    complete(&store, held(&again[0])).await.expect("the new one");
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 0);
}

/// CASES 3.
#[tokio::test]
async fn a_lease_without_record_is_purged_in_the_sweep_that_reclaims_its_neighbour() {
    let (rig, store, _) = holding(&["real", "phantom"]).await;
    rig.on::<()>("HDEL", "jobs", &["phantom"]).await;
    rig.advance(LEASE).await;
    assert_eq!(sweep(&store).await.reclaimed, 1);
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.active, info.pending, info.unfinished), (0, 1, 1));
    assert_eq!(names(&claim(&store, 9).await), ["real"]);
}

/// CASES 3, a lease that nobody ever made.
#[tokio::test]
async fn a_lease_by_hand_for_an_unknown_id_does_not_stop_the_sweep() {
    let (rig, store, _) = holding(&["real"]).await;
    rig.on::<()>("ZADD", "active", &["1", "phantom"]).await;
    rig.advance(LEASE).await;
    assert_eq!(sweep(&store).await.reclaimed, 1);
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.active, info.pending), (0, 1));
    assert!(store.show(&queue(), &id("phantom")).await.is_err());
}

/// CASES 11.
#[tokio::test]
async fn a_complete_whose_reply_is_lost_succeeds_and_counts_once() {
    let (rig, _, claimed) = holding(&["a"]).await;
    let store = rig.store();
    // The first complete teaches the proxy the script's name.
    complete(&store, Held { id: id("nobody"), ..held(&claimed[0]) }).await.expect_err("not held");
    rig.proxy.on("complete").drop_reply();
    complete(&store, held(&claimed[0])).await.expect("success");
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.completed_today, info.unfinished), (1, 0));
    assert!(claim(&store, 9).await.is_empty());
}

/// CASES 14.
#[tokio::test]
async fn a_waiting_job_whose_record_is_gone_is_skipped_and_the_next_claimed_in_the_same_call() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, ["a", "b"].map(job)).await;
    rig.on::<()>("HDEL", "jobs", &["a"]).await;
    let claimed = claim(&store, 1).await;
    assert_eq!(names(&claimed), ["b"]);
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 1);
    complete(&store, held(&claimed[0])).await.expect("complete");
    sweep(&store).await;
    let dump = rig.dump().await;
    for key in ["jobs", "active", "holder", "pending:4", "tries", "endings"] {
        assert!(dump.get(key).is_empty(), "{key}: {:?}", dump.get(key));
    }
}

/// CASES 14, while it runs: settling and reclaiming make no record again.
#[tokio::test]
async fn a_running_job_whose_record_is_gone_leaves_nothing_behind() {
    let (rig, store, claimed) = holding(&["a", "b"]).await;
    rig.on::<()>("DEL", "jobs", &[]).await;
    complete(&store, held(&claimed[0])).await.expect("its holder is right");
    rig.advance(LEASE).await;
    assert_eq!(sweep(&store).await.reclaimed, 0);
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.active, info.pending, info.unfinished), (0, 0, 0));
    assert!(rig.dump().await.get("jobs").is_empty());
}

/// What settling a job leaves in a queue that had no other.
const OF_JOBS: [&str; 11] = [
    "jobs",
    "active",
    "holder",
    "pending:4",
    "scheduled",
    "retry",
    "completed",
    "archived",
    "tries",
    "errors",
    "endings",
];

/// CASES 14, whatever the handler says.
#[tokio::test]
async fn nothing_is_made_of_a_running_job_whose_record_is_gone() {
    let rejected = || StoreError::LeaseRejected { job_id: "a".to_owned() };
    for verb in ["retry", "snooze", "requeue", "archive"] {
        let (rig, store, claimed) = holding(&["a"]).await;
        rig.on::<()>("HDEL", "jobs", &["a"]).await;
        let (queue, held, delay) = (queue(), held(&claimed[0]), LEASE);
        let answer = match verb {
            "retry" => {
                let failed = Retry { held, delay, error: "boom".to_owned() };
                store.retry(&queue, &[failed]).await.expect(verb).remove(0).map(drop)
            }
            "snooze" => {
                store.snooze(&queue, &[Snooze { held, delay }]).await.expect(verb).remove(0)
            }
            "requeue" => store.requeue(&queue, &[held]).await.expect(verb).remove(0),
            _ => {
                let given_up = Archive { held, reason: ArchiveReason::Discarded, error: None };
                store.archive(&queue, &[given_up]).await.expect(verb).remove(0)
            }
        };
        assert_eq!(answer, Err(rejected()), "{verb}");
        assert!(claim(&store, 9).await.is_empty(), "{verb}");
        rig.advance(LEASE).await;
        assert_eq!(sweep(&store).await.reclaimed, 0, "{verb}");
        assert_eq!(store.queue(&queue).await.expect(verb).unfinished, 0);
        let dump = rig.dump().await;
        for key in OF_JOBS {
            assert!(dump.get(key).is_empty(), "{verb}, {key}: {:?}", dump.get(key));
        }
    }
}

#[tokio::test]
async fn nothing_is_kept_of_a_completed_job_whose_record_is_gone() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, [job("a").retention(HOUR)]).await;
    let claimed = claim(&store, 1).await;
    rig.on::<()>("HDEL", "jobs", &["a"]).await;
    complete(&store, held(&claimed[0])).await.expect("its holder is right");
    let dump = rig.dump().await;
    for key in OF_JOBS {
        assert!(dump.get(key).is_empty(), "{key}: {:?}", dump.get(key));
    }
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 0);
}

#[tokio::test]
async fn a_new_job_of_an_id_whose_record_was_deleted_outlives_the_old_ones_retention() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, [job("a").retention(HOUR)]).await;
    complete(&store, held(&claim(&store, 1).await[0])).await.expect("completed");
    rig.on::<()>("HDEL", "jobs", &["a"]).await;
    rig.advance(Duration::from_millis(1)).await;
    enqueue(&store, [job("a").payload("other", sprag::Codec::Raw)]).await;
    rig.advance(HOUR).await;
    assert_eq!(sweep(&store).await.evicted, 0);
    assert!(rig.dump().await.get("completed").is_empty());
    let claimed = claim(&store, 9).await;
    assert_eq!(names(&claimed), ["a"]);
    complete(&store, held(&claimed[0])).await.expect("completed");
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 0);
}

#[tokio::test]
async fn jobs_whose_holders_are_gone_are_claimable_again_long_before_their_leases_end() {
    let rig = Rig::new().await;
    let store = rig.direct();
    let all: Vec<String> = (0..450).map(|i| format!("job-{i}")).collect();
    enqueue(&store, all.iter().map(|name| job(name))).await;
    let held = store.claim(&queue(), &worker(), 450, 24 * HOUR).await.expect("claim");
    assert_eq!(held.jobs.len(), 450);
    rig.on::<()>("DEL", "holder", &[]).await;
    // A slice of about 100 each.
    for _ in 0..8 {
        sweep(&store).await;
    }
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.active, info.pending, info.unfinished), (0, 450, 450));
    assert_eq!(claim(&store, 1_000).await.len(), 450);
}

#[tokio::test]
async fn a_broken_record_among_what_its_job_left_behind_is_archived_once() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, ["a", "b"].map(job)).await;
    run_again_and_again(&store, "a").await;
    rig.on::<()>("HSET", "jobs", &["a", "garbage"]).await;
    assert_eq!(names(&claim(&store, 9).await), ["b"]);
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.archived, info.active, info.pending, info.unfinished), (1, 1, 0, 1));
}

/// A record that vanishes among what its job left behind costs itself, once.
#[tokio::test]
async fn a_vanished_record_among_what_its_job_left_behind_is_counted_off_once() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, ["a", "b"].map(job)).await;
    run_again_and_again(&store, "a").await;
    rig.on::<()>("HDEL", "jobs", &["a"]).await;
    assert_eq!(names(&claim(&store, 9).await), ["b"]);
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.pending, info.active, info.unfinished), (0, 1, 1));
}

/// Cancelled and run again: its entries so far are stale.
async fn run_again_and_again(store: &RedisStore, name: &str) {
    for operation in [Operation::Cancel, Operation::Rerun].repeat(3) {
        let outcomes = store.operate(&queue(), operation, &[id(name)]).await;
        outcomes.expect("operate").remove(0).expect("changed");
    }
}

#[tokio::test]
async fn what_is_said_of_stale_entries_may_be_broken_and_no_job_is_lost() {
    let rig = Rig::new().await;
    for garbage in ["", "garbage", "-1", "0 -", "5 -", "5 9", "99999999999999999999 1", "1 2 3 4"] {
        rig.empty().await;
        let store = rig.direct();
        enqueue(&store, ["a", "b"].map(job)).await;
        run_again_and_again(&store, "a").await;
        // A number of its own in place of the token would hide the job, but not one of no form.
        if !garbage.starts_with('5') {
            rig.on::<()>("HSET", "ghosts", &["4:a", garbage]).await;
        }
        rig.on::<()>("HSET", "meta", &["entries", garbage]).await;
        run_again_and_again(&store, "b").await;
        let mut ran = Vec::new();
        for _ in 0..4 {
            rig.advance(HOUR).await;
            sweep(&store).await;
            for claimed in claim(&store, 1).await {
                ran.push(claimed.id.to_string());
                complete(&store, held(&claimed)).await.expect(garbage);
            }
        }
        ran.sort();
        assert_eq!(ran, ["a", "b"], "{garbage}");
        rig.advance(HOUR).await;
        sweep(&store).await;
        let info = store.queue(&queue()).await.expect(garbage);
        assert_eq!((info.pending, info.unfinished), (0, 0), "{garbage}");
        assert!(rig.dump().await.get("ghosts").is_empty(), "{garbage}");
    }
}

/// CASES 45.
#[tokio::test]
async fn an_enqueue_repeated_after_its_job_ran_gets_the_first_answer_and_no_second_run() {
    let rig = Rig::new().await;
    World::build(&rig, &rig.store()).await;
    rig.empty().await;
    let (store, struck) = (rig.store(), rig.proxy.struck("enqueue"));
    rig.proxy.on("enqueue").hold_reply();
    let call = tokio::spawn(async move { store.enqueue(&queue(), &build([job("a")])).await });
    rig.proxy.wait_struck("enqueue", struck + 1).await;
    let other = rig.direct();
    complete(&other, held(&claim(&other, 1).await[0])).await.expect("it runs");
    rig.proxy.cut_all();
    let answer = call.await.expect("no panic").expect("enqueue").remove(0).expect("admitted");
    assert_eq!((answer.state, answer.existing), (Some(State::Pending), false));
    assert!(claim(&other, 9).await.is_empty());
    assert!(matches!(other.show(&queue(), &id("a")).await, Err(StoreError::NotFound(_))));
}

/// CASES 46, second half.
#[tokio::test]
async fn a_job_whose_record_was_deleted_by_hand_and_enqueued_again_never_runs_twice_at_once() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, [job("a")]).await;
    rig.on::<()>("HDEL", "jobs", &["a"]).await;
    enqueue(&store, [job("a")]).await;
    let claimed = claim(&store, 9).await;
    assert_eq!(names(&claimed), ["a"]);
    assert!(claim(&store, 9).await.is_empty());
    complete(&store, held(&claimed[0])).await.expect("complete");
    assert!(claim(&store, 9).await.is_empty());
    assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 0);
}

/// CASES 46, with the two entries claimed apart.
#[tokio::test]
async fn a_second_entry_of_a_running_job_is_dropped() {
    let rig = Rig::new().await;
    let store = rig.direct();
    enqueue(&store, [job("a")]).await;
    rig.on::<()>("HDEL", "jobs", &["a"]).await;
    enqueue(&store, [job("a"), job("b")]).await;
    assert_eq!(names(&claim(&store, 1).await), ["a"]);
    let next = store.claim(&queue(), &worker(), 1, LEASE).await.expect("claim");
    assert!(next.jobs.is_empty() && next.more, "there is work behind what was dropped: {next:?}");
    assert_eq!(names(&claim(&store, 1).await), ["b"]);
    assert!(claim(&store, 1).await.is_empty());
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.pending, info.active, info.unfinished), (0, 2, 2));
}

#[tokio::test]
async fn a_wrong_count_of_unfinished_jobs_is_set_right_by_a_sweep() {
    for wrong in ["-3", "99", "", "garbage"] {
        let (rig, store, claimed) = holding(&["a", "b", "c"]).await;
        enqueue(&store, [job("d")]).await;
        rig.on::<()>("HSET", "meta", &["unfinished", wrong]).await;
        sweep(&store).await;
        assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 4, "{wrong}");
        complete(&store, held(&claimed[0])).await.expect("held");
        assert_eq!(store.queue(&queue()).await.expect("queue").unfinished, 3, "{wrong}");
    }
}

/// CASES 20.
#[tokio::test]
async fn a_thousand_broken_records_among_expired_leases_do_not_hold_up_the_good_one() {
    let rig = Rig::new().await;
    let store = rig.direct();
    let bad: Vec<String> = (0..1_000).map(|i| format!("bad-{i}")).collect();
    for slice in bad.chunks(500) {
        enqueue(&store, slice.iter().map(|name| job(name))).await;
    }
    enqueue(&store, [job("good")]).await;
    assert_eq!(claim(&store, 1_000).await.len() + claim(&store, 1_000).await.len(), 1_001);
    for name in &bad {
        rig.on::<()>("HSET", "jobs", &[name, "garbage"]).await;
    }
    rig.advance(LEASE).await;
    assert_eq!(sweep(&store).await.reclaimed, 1_001);
    let (mut claimed, mut ended) = (Vec::new(), Vec::new());
    loop {
        let slice = store.claim(&queue(), &worker(), 100, LEASE).await.expect("claim");
        claimed.extend(slice.jobs);
        ended.extend(slice.ended);
        if !slice.more && store.queue(&queue()).await.expect("queue").pending == 0 {
            break;
        }
    }
    assert_eq!((names(&claimed), ended.len()), (vec!["good"], 1_000));
    assert!(ended.iter().all(|job| job.reason == EndingReason::Undecodable));
    let info = store.queue(&queue()).await.expect("queue");
    assert_eq!((info.archived, info.unfinished), (1_000, 1));
}
