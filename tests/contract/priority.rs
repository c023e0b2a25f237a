//! Higher priorities first, oldest first in a lane.

use crate::trial::*;
use sprag::When;

cases! {
    the_oldest_of_a_lane_is_first,
    higher_priorities_are_first,
    one_claim_takes_from_several_lanes,
    a_later_job_of_a_higher_lane_overtakes,
    due_jobs_join_at_the_back_of_their_lane,
    due_jobs_join_in_the_order_in_which_they_fall_due,
    a_retry_that_falls_due_joins_at_the_back,
    a_reclaimed_job_joins_at_the_back,
    a_job_keeps_its_lane_through_its_life,
}

async fn the_oldest_of_a_lane_is_first(t: Trial) {
    t.enqueue_named(&["c", "a", "b"]).await;
    assert_eq!(t.claim_one().await.id, id("c"));
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}

async fn higher_priorities_are_first(t: Trial) {
    for priority in [0, 9, 4, 5, 1, 8, 2, 7, 3, 6] {
        t.enqueue(t.named(&priority.to_string()).priority(priority)).await;
    }
    for priority in (0..=9).rev() {
        assert_eq!(t.claim_one().await.id, id(&priority.to_string()));
    }
}

async fn one_claim_takes_from_several_lanes(t: Trial) {
    for (name, priority) in [("low1", 0), ("high1", 9), ("mid", 4), ("high2", 9), ("low2", 0)] {
        t.enqueue(t.named(name).priority(priority)).await;
    }
    assert_eq!(
        t.claim(4).await.iter().map(|j| j.id.as_str()).collect::<Vec<_>>(),
        ["high1", "high2", "mid", "low1"]
    );
    assert_eq!(t.claim_ids().await, ["low2"]);
}

async fn a_later_job_of_a_higher_lane_overtakes(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    assert_eq!(t.claim_one().await.id, id("a"));
    t.enqueue(t.named("urgent").priority(5)).await;
    assert_eq!(t.claim_ids().await, ["urgent", "b"]);
}

async fn due_jobs_join_at_the_back_of_their_lane(t: Trial) {
    t.enqueue(t.named("due").run_at(When::In(secs(1)))).await;
    t.enqueue(t.named("high").run_at(When::In(secs(1))).priority(9)).await;
    t.enqueue(t.named("waiting")).await;
    t.sweep_after(secs(1)).await;
    t.enqueue(t.named("new")).await;
    assert_eq!(t.claim_ids().await, ["high", "waiting", "due", "new"]);
}

async fn due_jobs_join_in_the_order_in_which_they_fall_due(t: Trial) {
    for (name, due) in [("third", 3), ("first", 1), ("second", 2)] {
        t.enqueue(t.named(name).run_at(When::In(secs(due)))).await;
    }
    t.sweep_after(HOUR).await;
    assert_eq!(t.claim_ids().await, ["first", "second", "third"]);
}

async fn a_retry_that_falls_due_joins_at_the_back(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    assert_eq!(t.claim_ids().await, ["b", "a"]);
}

async fn a_reclaimed_job_joins_at_the_back(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.claim_one().await;
    t.vanish().await;
    t.enqueue_named(&["c"]).await;
    assert_eq!(t.claim_ids().await, ["b", "a", "c"]);
}

async fn a_job_keeps_its_lane_through_its_life(t: Trial) {
    t.enqueue(t.named("a").priority(9)).await;
    t.enqueue_named(&["filler"]).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    t.snooze(&t.claim_one().await, secs(1)).await.expect("snoozed");
    t.sweep_after(secs(1)).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    assert_eq!(t.claim_one().await.id, id("a"));
    t.vanish().await;
    assert_eq!(t.claim_ids().await, ["a", "filler"]);
}
