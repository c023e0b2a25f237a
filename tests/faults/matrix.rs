//! Repeats: every call that changes something × every fault of the wire. The answer is what it would
//! have been, and so is every key: nothing was done twice.

use crate::{
    case::Case,
    rig::{Rig, assert_same},
    support::ANY_SCRIPT,
    wire::Wire,
};
use sprag::RedisStore;

/// A command that a case sends: its name, and how many of that name come before it.
type Place = (String, u64);

/// What a case comes to when nothing befalls it.
struct Calm {
    answer: String,
    dump: crate::rig::Dump,
    places: Vec<Place>,
}

async fn calm(rig: &Rig, case: Case) -> Calm {
    // Through the proxy once: it learns the scripts' names, the server the scripts.
    case.call(&rig.store(), &case.prepare(rig, &rig.store()).await).await;
    let world = case.prepare(rig, &rig.direct()).await;
    let count = |proxy: &crate::support::Proxy| {
        [case.script(), "sadd", "sismember", "srem"].map(|name| (name, proxy.seen(name)))
    };
    let scripts = || rig.proxy.seen(ANY_SCRIPT) - rig.proxy.seen("access");
    let (called, before) = (scripts(), count(&rig.proxy));
    let answer = case.call(&rig.store(), &world).await;
    let mut after = count(&rig.proxy);
    // Who makes a queue says how it is laid out, by the command SET: it goes by the script's name.
    after[0].1 -= u64::from(case == Case::LimitNewQueue);
    // Deleting a queue looks at it first.
    let others = u64::from(case.script() == "delete_queue");
    let seen = scripts() - called - others;
    assert_eq!(seen, after[0].1 - before[0].1, "one script");
    let places = before.iter().zip(after).flat_map(|((name, before), (_, after))| {
        (0..after - before).map(|skip| ((*name).to_owned(), skip))
    });
    case.settle_down(rig).await;
    Calm { answer, dump: rig.dump().await.of_jobs(), places: places.collect() }
}

/// The case with one of its commands struck.
async fn struck(
    rig: &Rig,
    case: Case,
    wire: Wire,
    (command, skip): &Place,
) -> (String, RedisStore) {
    let world = case.prepare(rig, &rig.direct()).await;
    let (store, before) = (rig.store(), rig.proxy.struck(command));
    wire.arm(&rig.proxy, command, *skip);
    let (answer, ()) =
        tokio::join!(case.call(&store, &world), wire.meanwhile(&rig.proxy, command, before));
    assert_eq!(rig.proxy.struck(command) - before, wire.strikes(), "{case:?} {wire:?}: it strikes");
    (answer, store)
}

async fn every_fault_on(case: Case) {
    let rig = Rig::new().await;
    let calm = calm(&rig, case).await;
    for place in &calm.places {
        for wire in Wire::ALL {
            if place.0 != case.script() && !wire.befalls_plain_commands() {
                continue;
            }
            let what = format!("{case:?}, {wire:?} on {place:?}");
            let (answer, _store) = struck(&rig, case, wire, place).await;
            if case.answers_the_same() {
                assert_eq!(answer, calm.answer, "{what}");
            }
            case.settle_down(&rig).await;
            let dump = rig.dump().await;
            assert_same(&calm.dump, &dump.clone().of_jobs(), &what);
            for reply in rig.proxy.release_late().await {
                assert!(!reply.starts_with('-'), "{what}: the late request is answered {reply}");
            }
            assert_same(&dump, &rig.dump().await, &format!("{what}, then it arrives late"));
        }
    }
}

/// What a store asks before its first call, and says when it made a queue.
#[tokio::test]
async fn the_questions_before_a_first_call_repeat() {
    let (rig, case) = (Rig::new().await, Case::EnqueueNewQueue);
    let calm = calm(&rig, case).await;
    for command in ["access", "get", "set"] {
        for wire in Wire::ALL {
            if command != "access" && !wire.befalls_plain_commands() {
                continue;
            }
            let what = format!("{wire:?} on {command}");
            let (answer, _store) = struck(&rig, case, wire, &(command.to_owned(), 0)).await;
            assert_eq!(answer, calm.answer, "{what}");
            assert_same(&calm.dump, &rig.dump().await.of_jobs(), &what);
            rig.proxy.release_late().await;
            assert_same(&calm.dump, &rig.dump().await.of_jobs(), &format!("{what}, then late"));
        }
    }
}

macro_rules! matrix {
    ($($case:ident $fact:ident,)*) => {
        $(
            #[tokio::test]
            async fn $fact() {
                every_fault_on(Case::$case).await;
            }
        )*

        #[test]
        fn every_case_is_in_the_matrix() {
            assert_eq!([$(Case::$case),*], Case::ALL);
        }
    };
}

matrix! {
    EnqueuePlain enqueue_repeats,
    EnqueueMixed enqueue_with_options_repeats,
    EnqueueNewQueue enqueue_that_makes_a_queue_repeats,
    EnqueueDuplicate enqueue_of_a_duplicate_repeats,
    EnqueueConflict enqueue_of_a_conflict_repeats,
    EnqueueBackpressure enqueue_into_a_full_queue_repeats,
    EnqueueExisting enqueue_of_existing_jobs_repeats,
    EnqueueThrottled enqueue_of_throttled_jobs_repeats,
    EnqueueDebounced enqueue_of_debounced_jobs_repeats,
    EnqueueDebouncedAgain enqueue_into_a_debounced_job_repeats,
    EnqueueRemembered enqueue_of_a_remembered_job_repeats,
    EnqueueDeadline enqueue_with_deadlines_repeats,
    EnqueueQuarantined enqueue_of_a_quarantined_job_repeats,
    EnqueueFreedKey enqueue_that_takes_a_left_key_repeats,
    EnqueueBehindGhost enqueue_of_an_id_with_a_ghost_repeats,
    ReplaceInPending replace_in_a_pending_job_repeats,
    ReplaceBehindGhost replace_into_a_lane_with_a_ghost_repeats,
    ReplacePostpones replace_that_postpones_repeats,
    ReplaceInScheduled replace_in_a_scheduled_job_repeats,
    ReplaceInRetry replace_in_a_retry_job_repeats,
    ReplaceInRetryLater replace_that_postpones_a_retry_repeats,
    AtomicAdmitted atomic_enqueue_repeats,
    AtomicDuplicate atomic_enqueue_of_a_duplicate_repeats,
    AtomicBackpressure atomic_enqueue_into_a_full_queue_repeats,
    ClaimOne claim_of_one_repeats,
    ClaimAll claim_of_all_repeats,
    ClaimTried claim_of_a_job_that_failed_repeats,
    ClaimBroken claim_past_a_broken_record_repeats,
    ClaimEmpty claim_of_nothing_repeats,
    ClaimExpired claim_past_an_expired_job_repeats,
    ClaimQuarantined claim_past_a_quarantined_job_repeats,
    ClaimDebounced claim_of_a_debounced_job_repeats,
    ClaimMarked claim_of_a_marked_entry_repeats,
    CompletePlain complete_repeats,
    CompleteTried complete_of_a_job_that_failed_repeats,
    CompleteWithResult complete_with_a_result_repeats,
    CompleteStale complete_by_a_stale_holder_repeats,
    CompleteRemembered complete_of_a_remembered_job_repeats,
    CompleteKeptByQueue complete_that_the_queue_keeps_repeats,
    CompleteClearsCrashes complete_that_clears_crashes_repeats,
    CompleteWithProgress complete_of_a_job_with_progress_repeats,
    CompleteWatched complete_of_a_job_that_is_waited_for_repeats,
    CompleteKeptAndWatched complete_of_a_kept_job_that_is_waited_for_repeats,
    RetryLater retry_repeats,
    RetryExhausted retry_that_exhausts_repeats,
    RetryExpired retry_past_the_deadline_repeats,
    ArchiveWithError archive_repeats,
    ArchiveWithKey archive_that_frees_a_key_repeats,
    SnoozeOne snooze_repeats,
    SnoozeSoon snooze_that_makes_the_next_due_time_repeats,
    RequeueAll requeue_repeats,
    RequeueBehindGhost requeue_in_front_of_a_ghost_repeats,
    CancelWaiting cancel_of_waiting_jobs_repeats,
    CancelActive cancel_of_active_jobs_repeats,
    CancelRefused cancel_that_is_refused_repeats,
    OperatorArchives archive_by_an_operator_repeats,
    RunWaiting run_repeats,
    RunBehindGhost run_in_front_of_a_ghost_repeats,
    RerunFinished rerun_repeats,
    RerunWithKey rerun_that_takes_its_key_repeats,
    RerunRefused rerun_that_is_refused_repeats,
    DeleteWaiting delete_of_waiting_jobs_repeats,
    DeleteFinished delete_of_finished_jobs_repeats,
    DeleteRemembered delete_of_a_remembered_job_repeats,
    LimitSet limit_repeats,
    LimitLifted lifting_a_limit_repeats,
    LimitNewQueue limit_that_makes_a_queue_repeats,
    SetAll set_repeats,
    Pause pause_repeats,
    QuarantineOne quarantine_repeats,
    QuarantineAgain quarantine_of_a_closed_fingerprint_repeats,
    QuarantineNewQueue quarantine_that_makes_a_queue_repeats,
    ReleaseInSlices release_in_slices_repeats,
    ReleaseKeyTaken release_of_a_job_whose_key_is_taken_repeats,
    ReleaseNobody release_of_nobody_repeats,
    ReleaseBehindGhost release_of_a_job_with_a_ghost_repeats,
    Progress progress_repeats,
    ProgressStale progress_by_a_stale_holder_repeats,
    DeleteQueue delete_of_a_queue_repeats,
    DeleteQueueRefused delete_of_a_queue_that_is_refused_repeats,
    Extend extend_repeats,
    WatchEnds watching_repeats,
    WatchEndsNewQueue watching_no_queue_repeats,
    SweepPromotes promoting_repeats,
    SweepBehindGhosts promoting_and_reclaiming_jobs_with_ghosts_repeats,
    SweepReclaims reclaiming_repeats,
    SweepEvicts evicting_repeats,
    SweepMends mending_repeats,
    SweepMendsGhosts mending_of_ghosts_repeats,
    SweepInSlices sweeping_in_slices_repeats,
    SweepExpires expiring_repeats,
    SweepQuarantines quarantining_by_crashes_repeats,
    SweepTimers sweeping_what_time_ended_repeats,
    SweepMaxArchived evicting_by_number_repeats,
    SweepDays forgetting_days_repeats,
}
