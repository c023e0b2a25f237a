//! Paging through the jobs of a state.

use crate::trial::*;
use sprag::{
    Envelope, Kind, State, StoreError, When,
    store::{Listed, Operation, Page},
};

cases! {
    pending_jobs_are_listed_in_the_order_of_their_claim,
    due_jobs_are_listed_by_their_time_and_then_their_ids,
    active_jobs_are_listed_by_the_end_of_their_lease,
    finished_jobs_are_listed_by_their_eviction,
    a_job_is_listed_in_its_state_only,
    a_listed_job_is_told_whole_but_for_its_payload,
    a_kind_lists_its_own_jobs,
    pages_of_any_size_show_every_job_once,
    pages_of_one_kind_show_each_of_its_jobs_once,
    a_job_behind_the_cursor_is_listed_and_one_before_it_is_not,
    an_empty_state_is_an_empty_page,
    an_absent_queue_lists_nothing_and_is_not_made,
    a_page_is_from_one_to_a_thousand,
    a_page_of_a_thousand_holds_a_thousand,
    a_cursor_that_no_page_gave_is_refused,
    listing_changes_nothing,
}

async fn page(
    t: &Trial,
    state: State,
    kind: Option<&Kind>,
    cursor: Option<&str>,
    limit: usize,
) -> Page {
    let page = t.store.list(&t.queue, state, kind, cursor, limit).await.expect("list");
    assert!(page.jobs.len() <= limit, "{limit} are asked for: {page:?}");
    page
}

/// All pages of a state, one after the other.
async fn all(t: &Trial, state: State, kind: Option<&Kind>, limit: usize) -> Vec<Listed> {
    let (mut jobs, mut cursor) = (Vec::new(), None);
    loop {
        let page = page(t, state, kind, cursor.as_deref(), limit).await;
        jobs.extend(page.jobs);
        cursor = page.cursor;
        if cursor.is_none() {
            return jobs;
        }
    }
}

async fn ids(t: &Trial, state: State) -> Vec<String> {
    all(t, state, None, 100).await.iter().map(|job| job.id.to_string()).collect()
}

async fn pending_jobs_are_listed_in_the_order_of_their_claim(t: Trial) {
    for (name, priority) in [("low", 0), ("b", 4), ("high", 9), ("a", 4)] {
        t.enqueue(t.named(name).priority(priority)).await;
    }
    t.job_in(State::Scheduled, t.named("front")).await;
    t.operate(Operation::Run, &id("front")).await.expect("pending");
    t.enqueue_named(&["gone", "back"]).await;
    t.cancel(&id("gone")).await.expect("cancelled");
    let listed = ids(&t, State::Pending).await;
    assert_eq!(listed, ["high", "front", "b", "a", "back", "low"]);
    assert_eq!(t.claim_ids().await, listed);
}

async fn due_jobs_are_listed_by_their_time_and_then_their_ids(t: Trial) {
    for (name, due) in [("late", 9), ("b", 5), ("a", 5), ("C", 5), ("early", 1)] {
        t.enqueue(t.named(name).run_at(When::In(secs(due)))).await;
        t.enqueue(t.named(&format!("retry-{name}"))).await;
        t.retry(&t.claim_one().await, secs(due)).await.expect("retried");
    }
    assert_eq!(ids(&t, State::Scheduled).await, ["early", "C", "a", "b", "late"]);
    let retries = ["retry-early", "retry-C", "retry-a", "retry-b", "retry-late"];
    assert_eq!(ids(&t, State::Retry).await, retries);
}

async fn active_jobs_are_listed_by_the_end_of_their_lease(t: Trial) {
    t.enqueue_named(&["b", "c", "a"]).await;
    let longest = t.claim_one().await;
    t.claim(2).await;
    t.extend(&longest, 2 * LEASE).await.expect("extended");
    assert_eq!(ids(&t, State::Active).await, ["a", "c", "b"]);
}

async fn finished_jobs_are_listed_by_their_eviction(t: Trial) {
    for state in ENDED {
        let t = t.other_queue().await;
        for (name, days) in [("late", 200), ("b", 100), ("a", 100), ("early", 95)] {
            let kept = t.saying(name).id(id(name)).retention(days * DAY);
            match state {
                State::Completed => {
                    t.enqueue(kept).await;
                    t.complete(&t.claim_one().await).await.expect("completed");
                }
                _ => drop(t.job_in(state, kept).await),
            }
        }
        assert_eq!(ids(&t, state).await, ["early", "a", "b", "late"], "{state}");
    }
}

async fn a_job_is_listed_in_its_state_only(t: Trial) {
    for state in State::ALL {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job()).await;
        for other in State::ALL {
            let expected: &[String] = if other == state { &[job.to_string()] } else { &[] };
            assert_eq!(ids(&t, other).await, expected, "{other}");
        }
    }
}

async fn a_listed_job_is_told_whole_but_for_its_payload(t: Trial) {
    for state in State::ALL {
        let t = t.other_queue().await;
        let job = t.job_in(state, t.job().header("a", "b").timeout(secs(5))).await;
        let info = t.show(&job).await;
        let listed = only(all(&t, state, None, 10).await);
        let (whole, at) = info.envelope.expect("decodes");
        let (told, told_at) = listed.envelope.expect("decodes");
        assert_eq!((told.payload().len(), told_at), (0, at));
        let same = |job: &Envelope| {
            let (timeout, run_at) = (job.timeout(), job.run_at());
            (job.id().clone(), job.headers().clone(), timeout, run_at, job.fingerprint())
        };
        assert_eq!(same(&told), same(&whole));
        let lease = info.holder.map(|holder| holder.lease_expires_at);
        assert_eq!(listed.at, info.due_at.or(lease).or(info.evicted_at), "{state}");
    }
}

fn of_kind(t: &Trial, name: &str, kind: &str) -> Envelope {
    let kind = Kind::new(kind).expect("kind");
    build(Envelope::builder(t.queue.clone(), kind).id(id(name)))
}

async fn a_kind_lists_its_own_jobs(t: Trial) {
    t.offer_all(&[of_kind(&t, "a", "one"), of_kind(&t, "b", "one:more")]).await;
    for (kind, expected) in [("one", &["a"][..]), ("one:more", &["b"]), ("on", &[])] {
        let kind = Kind::new(kind).expect("kind");
        let listed = all(&t, State::Pending, Some(&kind), 10).await;
        let listed: Vec<&str> = listed.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(listed, expected);
    }
}

async fn pages_of_any_size_show_every_job_once(t: Trial) {
    for state in [State::Pending, State::Scheduled, State::Cancelled] {
        let t = t.other_queue().await;
        for n in 0..12 {
            let job = t.named(&format!("{n:02}")).priority([4, 9, 0][n % 3]);
            t.job_in(state, job).await;
        }
        let whole = all(&t, state, None, 1_000).await;
        assert_eq!(whole.len(), 12);
        for limit in [1, 5, 11, 12, 13] {
            assert_eq!(all(&t, state, None, limit).await, whole, "{state} by {limit}");
        }
    }
}

async fn pages_of_one_kind_show_each_of_its_jobs_once(t: Trial) {
    let jobs: Vec<Envelope> = (0..30)
        .map(|n| of_kind(&t, &format!("{n:02}"), if n % 7 == 3 { "rare" } else { "usual" }))
        .collect();
    t.offer_all(&jobs).await;
    let rare = Kind::new("rare").expect("kind");
    for limit in [1, 2, 10] {
        let listed = all(&t, State::Pending, Some(&rare), limit).await;
        let listed: Vec<&str> = listed.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(listed, ["03", "10", "17", "24"], "by {limit}");
    }
}

async fn a_job_behind_the_cursor_is_listed_and_one_before_it_is_not(t: Trial) {
    for (name, due) in [("a", 1), ("b", 2), ("d", 4)] {
        t.enqueue(t.named(name).run_at(When::In(secs(due)))).await;
    }
    let first = page(&t, State::Scheduled, None, None, 2).await;
    assert_eq!(first.jobs.len(), 2);
    t.enqueue(t.named("c").run_at(When::In(secs(3)))).await;
    let rest = page(&t, State::Scheduled, None, first.cursor.as_deref(), 10).await;
    let rest: Vec<&str> = rest.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(rest, ["c", "d"]);
}

async fn an_empty_state_is_an_empty_page(t: Trial) {
    t.limit(5).await;
    for state in State::ALL {
        assert_eq!(page(&t, state, None, None, 10).await, Page::default());
    }
}

async fn an_absent_queue_lists_nothing_and_is_not_made(t: Trial) {
    for state in State::ALL {
        assert_eq!(page(&t, state, None, None, 10).await, Page::default());
    }
    assert!(t.store.queue(&t.queue).await.is_err());
}

async fn a_page_is_from_one_to_a_thousand(t: Trial) {
    t.enqueue(t.job()).await;
    for limit in [0, 1_001, usize::MAX] {
        let refused = invalid(&format!("limit: {limit}; must be 1 to 1000"));
        let answer = t.store.list(&t.queue, State::Pending, None, None, limit).await;
        assert_eq!(answer, Err(refused));
    }
    for limit in [1, 1_000] {
        assert_eq!(page(&t, State::Pending, None, None, limit).await.jobs.len(), 1);
    }
}

async fn a_page_of_a_thousand_holds_a_thousand(t: Trial) {
    let jobs = t.jobs(1_000);
    t.offer_all(&jobs).await;
    t.enqueue(t.named("last")).await;
    let listed = all(&t, State::Pending, None, 1_000).await;
    let expected = jobs.iter().map(|job| job.id().clone()).chain([id("last")]);
    assert!(listed.iter().map(|job| job.id.clone()).eq(expected));
}

async fn a_cursor_that_no_page_gave_is_refused(t: Trial) {
    t.enqueue(t.job()).await;
    for state in State::ALL {
        for cursor in ["", "nonsense", "\0"] {
            let answer = t.store.list(&t.queue, state, None, Some(cursor), 10).await;
            assert!(matches!(answer, Err(StoreError::Invalid(_))), "{cursor:?}: {answer:?}");
        }
    }
}

async fn listing_changes_nothing(t: Trial) {
    t.enqueue_named(&["a", "b"]).await;
    t.token().await;
    let before = (t.info().await, t.show(&id("a")).await);
    all(&t, State::Pending, None, 1).await;
    assert_eq!((t.info().await, t.show(&id("a")).await), before);
    assert!(!t.token().await);
    assert_eq!(t.claim_ids().await, ["a", "b"]);
}
