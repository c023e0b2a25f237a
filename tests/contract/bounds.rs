//! Every bound, on both sides, and the text that names it.

use crate::trial::*;
use sprag::{
    Codec, JobId, Kind, Namespace, Partition, QueueName, State, StoreError, Timestamp, Unique,
    When, WorkerId,
    model::{EnvelopeBuilder, MAX_BATCH_BYTES, MAX_DURATION, Mode},
};
use std::time::Duration;

cases! {
    an_envelope_within_its_bounds_is_admitted,
    an_envelope_beyond_its_bounds_cannot_be_built,
    a_claim_counts_from_one_to_a_thousand,
    a_lease_is_from_100_ms_to_24_h,
    a_delay_is_from_one_millisecond_to_ten_years,
    a_bad_delay_is_that_items_alone,
    a_bad_delay_is_judged_before_the_fence,
}

const DURATION: &str = "whole ms, 1 ms to 10 years";

fn mode(key: &str, mode: Mode) -> Unique {
    Unique::key(key).mode(mode)
}

fn debounce(key: &str, window: Duration, max_wait: Option<Duration>) -> Unique {
    mode(key, Mode::Debounce { window, max_wait })
}

async fn an_envelope_within_its_bounds_is_admitted(t: Trial) {
    let headers = |count: usize, bytes: usize| {
        (0..count).fold(t.job(), |job, n| job.header(format!("{n:02}"), "v".repeat(bytes)))
    };
    let partition = Partition::new("p".repeat(128)).expect("partition");
    let good = [
        t.job().payload(vec![0; 1 << 20], Codec::Raw),
        t.job().payload("", Codec::Raw),
        t.job().priority(0),
        t.job().priority(9),
        t.job().max_attempts(1),
        t.job().max_attempts(1_000),
        t.job().timeout(ms(1)),
        t.job().timeout(MAX_DURATION),
        t.job().retention(ms(1)),
        t.job().retention(MAX_DURATION),
        t.job().remember(ms(1)),
        t.job().remember(MAX_DURATION),
        t.job().deadline(When::In(ms(1))),
        t.job().deadline(When::In(MAX_DURATION)),
        t.job().deadline(When::At(Timestamp::from_millis(9_999_999_999_999))),
        t.job().unique(mode("t1", Mode::Throttle { window: ms(1) })),
        t.job().unique(mode("t2", Mode::Throttle { window: MAX_DURATION })),
        t.job().unique(debounce("d1", ms(1), None)),
        t.job().unique(debounce("d2", MAX_DURATION, Some(ms(1)))),
        t.job().unique(debounce("d3", ms(1), Some(MAX_DURATION))),
        t.job().run_at(When::In(ms(1))),
        t.job().run_at(When::In(MAX_DURATION)),
        t.job().run_at(When::At(Timestamp::from_millis(9_999_999_999_999))),
        t.job().unique(Unique::key("k")),
        t.job().unique(Unique::key("k".repeat(256))),
        headers(64, 254),
        t.job().partition(partition),
        t.named(&"x".repeat(128)),
    ];
    let count = good.len() as u64;
    for job in good {
        t.enqueue(job).await;
    }
    assert_eq!(t.info().await.unfinished, count);
}

#[test]
fn a_name_is_refused_with_its_bound() {
    fn check<T>(new: fn(&str) -> Result<T, StoreError>, max: usize, odd: char, bound: &str) {
        let (field, allowed) = bound.split_once(": ").expect("field: bound");
        let long = "x".repeat(max + 1);
        assert!(new("x").is_ok() && new(&long[1..]).is_ok(), "{field}");
        let cut = &long[..long.len().min(64)];
        let cases = [
            (String::new(), "\"\" (0 bytes)".to_owned()),
            (odd.to_string(), format!("{:?} ({} bytes)", odd.to_string(), odd.len_utf8())),
            (long.clone(), format!("{cut:?}… ({} bytes)", long.len())),
        ];
        for (bad, shown) in cases {
            let text = format!("{field}: {shown}; must be {allowed}");
            assert_eq!(new(&bad).err(), Some(invalid(&text)));
        }
    }
    check(|t| Namespace::new(t), 64, ':', "namespace: 1 to 64 of A-Z a-z 0-9 . _ -");
    check(|t| QueueName::new(t), 64, '}', "queue: 1 to 64 of A-Z a-z 0-9 . _ -");
    check(|t| WorkerId::new(t), 128, '/', "worker: 1 to 128 of A-Z a-z 0-9 . _ : @ -");
    check(|t| Kind::new(t), 128, '@', "kind: 1 to 128 of A-Z a-z 0-9 . _ : / -");
    check(|t| JobId::new(t), 128, ' ', "id: 1 to 128 printable ASCII characters without space");
    let bound = "partition: 1 to 128 bytes without control characters";
    check(|t| Partition::new(t), 128, '\u{85}', bound);
}

fn refused(job: EnvelopeBuilder, text: impl AsRef<str>) {
    assert_eq!(job.build(), Err(invalid(text.as_ref())));
}

async fn an_envelope_beyond_its_bounds_cannot_be_built(t: Trial) {
    let large = vec![0; (1 << 20) + 1];
    refused(
        t.job().payload(large, Codec::Raw),
        "payload: 1048577 bytes; must be at most 1048576 bytes",
    );
    refused(
        t.job().max_payload(MAX_BATCH_BYTES + 1),
        "max_payload: 8388609; must be at most 8388608 bytes",
    );
    refused(t.job().priority(10), "priority: 10; must be 0 to 9");
    refused(t.job().max_attempts(0), "max_attempts: 0; must be 1 to 1000");
    refused(t.job().max_attempts(1_001), "max_attempts: 1001; must be 1 to 1000");
    for bad in bad_delays() {
        refused(t.job().timeout(bad), format!("timeout: {}; must be {DURATION}", in_ms(bad)));
        refused(t.job().retention(bad), format!("retention: {}; must be {DURATION}", in_ms(bad)));
        refused(t.job().remember(bad), format!("remember: {}; must be {DURATION}", in_ms(bad)));
        refused(
            t.job().run_at(When::In(bad)),
            format!("delay: {}; must be {DURATION}", in_ms(bad)),
        );
        refused(
            t.job().deadline(When::In(bad)),
            format!("deadline: {}; must be {DURATION}", in_ms(bad)),
        );
        let throttle = mode("k", Mode::Throttle { window: bad });
        refused(t.job().unique(throttle), format!("throttle: {}; must be {DURATION}", in_ms(bad)));
        let window = debounce("k", bad, None);
        refused(t.job().unique(window), format!("debounce: {}; must be {DURATION}", in_ms(bad)));
        let wait = debounce("k", ms(1), Some(bad));
        refused(t.job().unique(wait), format!("max_wait: {}; must be {DURATION}", in_ms(bad)));
    }
    refused(
        t.job().run_at(When::At(Timestamp::from_millis(10_000_000_000_000))),
        "run_at: 10000000000000; must be at most 9999999999999 ms (year 2286)",
    );
    refused(
        t.job().deadline(When::At(Timestamp::from_millis(10_000_000_000_000))),
        "deadline: 10000000000000; must be at most 9999999999999 ms (year 2286)",
    );
    refused(
        t.job().unique(debounce("k", ms(1), None)).run_at(When::In(ms(1))),
        "run_at: set; must be unset with debounce, which sets it",
    );
    refused(t.job().unique(Unique::key("")), "unique key: 0 bytes; must be 1 to 256 bytes");
    refused(
        t.job().unique(Unique::key("k".repeat(257))),
        "unique key: 257 bytes; must be 1 to 256 bytes",
    );
    let many = (0..65).fold(t.job(), |job, n| job.header(n.to_string(), ""));
    refused(many, "headers: 65; must be at most 64");
    refused(t.job().header("", "x"), "header name: empty; must be 1 byte or more");
    refused(
        t.job().header("x", "v".repeat(16 << 10)),
        "headers: 16385 bytes; must be at most 16384 bytes",
    );
}

async fn a_claim_counts_from_one_to_a_thousand(t: Trial) {
    t.enqueue(t.job()).await;
    for count in [0, 1_001] {
        let text = format!("count: {count}; must be 1 to 1000");
        let claim = t.store.claim(&t.queue, &t.worker, count, LEASE).await;
        assert_eq!(claim, Err(invalid(&text)));
    }
    assert_eq!(t.info().await.pending, 1, "nothing is claimed");
    assert!(t.store.claim(&t.queue, &t.worker, 1, LEASE).await.is_ok());
    assert!(t.store.claim(&t.queue, &t.worker, 1_000, LEASE).await.is_ok());
}

async fn a_lease_is_from_100_ms_to_24_h(t: Trial) {
    t.enqueue(t.job()).await;
    let bad = [ms(0), ms(99), Duration::from_micros(100_400), DAY + ms(1), Duration::MAX];
    for lease in bad {
        let refused =
            invalid(&format!("lease: {}; must be whole ms, 100 ms to 24 h", in_ms(lease)));
        let claim = t.store.claim(&t.queue, &t.worker, 1, lease).await;
        assert_eq!(claim, Err(refused));
    }
    let held = t.claim_one().await;
    for lease in bad {
        let refused =
            invalid(&format!("lease: {}; must be whole ms, 100 ms to 24 h", in_ms(lease)));
        let all = t.store.extend(&t.queue, std::slice::from_ref(&held), lease).await;
        assert_eq!(all, Err(refused));
    }
    for lease in [ms(100), DAY] {
        assert_eq!(t.extend(&held, lease).await, Ok(()));
        assert_eq!(t.sweep_after(lease - ms(1)).await.reclaimed, 0);
    }
}

fn bad_delays() -> [Duration; 5] {
    let micros = Duration::from_micros;
    [ms(0), micros(400), micros(1_500), MAX_DURATION + ms(1), Duration::MAX]
}

async fn a_delay_is_from_one_millisecond_to_ten_years(t: Trial) {
    t.enqueue(t.job()).await;
    let held = t.claim_one().await;
    for delay in bad_delays() {
        let refused = invalid(&format!("delay: {}; must be {DURATION}", in_ms(delay)));
        assert_eq!(t.retry(&held, delay).await, Err(refused.clone()));
        assert_eq!(t.snooze(&held, delay).await, Err(refused));
    }
    let info = t.show(&held.id).await;
    assert_eq!((info.state, info.attempt), (State::Active, 0), "nothing is written");
    for delay in [ms(1), MAX_DURATION] {
        for (name, snooze) in [("r", false), ("s", true)] {
            let job = t.enqueue(t.named(&format!("{name}{}", delay.as_millis()))).await;
            let held = t.claim_one().await;
            match snooze {
                true => t.snooze(&held, delay).await.expect("snoozed"),
                false => drop(t.retry(&held, delay).await.expect("retried")),
            }
            assert_eq!(t.due_in(&job).await, delay);
        }
    }
}

async fn a_bad_delay_is_that_items_alone(t: Trial) {
    t.offer_all(&t.jobs(2)).await;
    let jobs: Vec<_> = t.claim(2).await.iter().map(held).collect();
    let retry = |at: usize, delay| sprag::store::Retry {
        held: jobs[at].clone(),
        delay,
        error: String::new(),
    };
    let outcomes = t.store.retry(&t.queue, &[retry(0, ms(0)), retry(1, ms(1))]).await;
    let outcomes = outcomes.expect("the call is fine");
    assert!(matches!(outcomes[0], Err(StoreError::Invalid(_))), "{outcomes:?}");
    assert_eq!(outcomes[1], Ok(State::Retry));
    assert_eq!(t.state(&jobs[0].id).await, State::Active);
}

async fn a_bad_delay_is_judged_before_the_fence(t: Trial) {
    t.enqueue(t.job()).await;
    let nobody = stale(&t.claim_one().await);
    assert!(matches!(t.retry(&nobody, ms(0)).await, Err(StoreError::Invalid(_))));
    assert!(matches!(t.snooze(&nobody, ms(0)).await, Err(StoreError::Invalid(_))));
}
