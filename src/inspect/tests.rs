use super::*;
use crate::{
    MemoryStore,
    model::{Codec, Envelope, EnvelopeBuilder, Fingerprint, Kind, Unique, WorkerId},
    store::Released,
};
use std::time::Duration;

struct Trial {
    client: Client,
    inspector: Inspector,
}

fn job(id: &str, kind: &str) -> EnvelopeBuilder {
    let names = (QueueName::new("q").expect("q"), Kind::new(kind).expect("kind"));
    let job = Envelope::builder(names.0, names.1).payload(id.as_bytes().to_vec(), Codec::Raw);
    job.id(JobId::new(id).expect("id"))
}

impl Trial {
    fn start() -> Self {
        let client = Client::new(MemoryStore::new());
        Self { inspector: client.inspector(), client }
    }

    async fn enqueue(&self, job: EnvelopeBuilder) {
        let outcomes = self.client.enqueue_envelopes(&[job.build().expect("valid")]).await;
        outcomes.expect("a store")[0].as_ref().expect("enqueued");
    }

    async fn many(&self, count: usize, kind: &str) {
        for i in 0..count {
            self.enqueue(job(&format!("{kind}-{i}"), kind)).await;
        }
    }

    async fn info(&self) -> QueueInfo {
        self.inspector.queue("q").await.expect("made")
    }
}

#[tokio::test]
async fn queues_are_listed_and_steered() {
    let t = Trial::start();
    assert!(matches!(t.inspector.queue("q").await, Err(StoreError::NotFound(_))));
    t.inspector.pause("q").await.expect("paused");
    t.inspector.limit("a", Some(7)).await.expect("limited");
    let queues = t.inspector.queues().await.expect("queues");
    let told: Vec<_> = queues.iter().map(|q| (q.queue.as_str(), q.limit, q.paused)).collect();
    assert_eq!(told, [("a", Some(7), false), ("q", None, true)]);
    t.inspector.resume("q").await.expect("resumed");
    assert!(!t.info().await.paused);
    assert_eq!(t.inspector.days("q", 2).await.expect("days").len(), 2);
    t.many(1, "k").await;
    assert!(matches!(t.inspector.delete_queue("q", false).await, Err(StoreError::Invalid(_))));
    t.inspector.delete_queue("q", true).await.expect("deleted");
    assert_eq!(t.inspector.queues().await.expect("queues").len(), 1);
    for bad in ["", "a b"] {
        assert!(matches!(t.inspector.queue(bad).await, Err(StoreError::Invalid(_))), "{bad}");
        assert!(matches!(t.inspector.jobs(bad, State::Active), Err(StoreError::Invalid(_))));
    }
}

#[tokio::test]
async fn one_job_is_steered_by_its_id() {
    let t = Trial::start();
    t.enqueue(job("x", "k").run_at(crate::When::In(Duration::from_secs(60)))).await;
    let i = &t.inspector;
    assert_eq!(i.run("q", "x").await, Ok(Change::Changed));
    assert_eq!(i.run("q", "x").await, Ok(Change::Unchanged));
    assert_eq!(i.cancel("q", "x").await, Ok(Change::Changed));
    assert!(matches!(i.archive("q", "x").await, Err(StoreError::Invalid(_))));
    assert_eq!(i.rerun("q", "x").await, Ok(Change::Changed));
    assert_eq!(i.archive("q", "x").await, Ok(Change::Changed));
    assert_eq!(i.job("q", "x").await.expect("there").state, State::Archived);
    assert_eq!(i.delete("q", "x").await, Ok(Change::Changed));
    assert!(matches!(i.delete("q", "x").await, Err(StoreError::NotFound(_))));
    assert!(matches!(i.job("q", "x").await, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn pages_hold_every_job_once_and_can_be_gone_on_with() {
    let t = Trial::start();
    t.many(5, "a").await;
    t.many(4, "b").await;
    let jobs = || t.inspector.jobs("q", State::Pending).expect("valid").page_size(2);
    let mut first = jobs();
    let page = first.next_page().await.expect("a page").expect("jobs");
    assert_eq!(page.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a-0", "a-1"]);
    let mut rest = jobs().from_cursor(first.cursor().expect("more"));
    let mut count = 2;
    while let Some(page) = rest.next_page().await.expect("a page") {
        assert!((1..=2).contains(&page.len()));
        count += page.len();
    }
    assert_eq!((count, rest.cursor()), (9, None));
    let mut of_b = jobs().kind("b").expect("valid").page_size(1_000);
    assert_eq!(of_b.next_page().await.expect("a page").expect("jobs").len(), 4);
    assert_eq!(of_b.next_page().await, Ok(None));
    assert!(matches!(jobs().page_size(0).next_page().await, Err(StoreError::Invalid(_))));
    assert!(matches!(jobs().from_cursor("?").next_page().await, Err(StoreError::Invalid(_))));
}

#[tokio::test]
async fn bulk_goes_in_slices_and_can_be_broken_off() {
    let t = Trial::start();
    t.many(25, "a").await;
    t.many(5, "b").await;
    let bulk = |operation, state| {
        let bulk = t.inspector.bulk("q", operation, state).expect("allowed");
        bulk.kind("a").expect("valid").slice_size(10)
    };
    let mut broken_off = bulk(Operation::Cancel, State::Pending);
    let slice = broken_off.next_slice().await.expect("done").expect("a slice");
    assert_eq!((slice.changed, t.info().await.cancelled), (10, 10));
    drop(broken_off);
    let rest = bulk(Operation::Cancel, State::Pending).run().await.expect("done");
    assert_eq!((rest.changed, rest.unchanged, rest.refused.len()), (15, 0, 0));
    let again = bulk(Operation::Cancel, State::Pending).run().await.expect("done");
    assert_eq!((again, t.info().await.pending), (Slice::default(), 5));
    let back = bulk(Operation::Rerun, State::Cancelled).run().await.expect("done");
    assert_eq!((back.changed, t.info().await.pending), (25, 30));
    let there = bulk(Operation::Cancel, State::Cancelled).run().await.expect("nothing");
    assert_eq!(there, Slice::default());
    for (operation, state) in
        [(Operation::Delete, State::Active), (Operation::Rerun, State::Quarantined)]
    {
        let refused = t.inspector.bulk("q", operation, state);
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{operation:?} {state}");
    }
}

#[tokio::test]
async fn bulk_tries_each_job_once_though_it_comes_back() {
    let t = Trial::start();
    t.many(3, "a").await;
    t.inspector.bulk("q", Operation::Archive, State::Pending).expect("ok").run().await.expect("ok");
    let rerun = t.inspector.bulk("q", Operation::Rerun, State::Archived).expect("allowed");
    let (mut rerun, mut changed) = (rerun.slice_size(1), 0);
    while let Some(slice) = rerun.next_slice().await.expect("done") {
        changed += slice.changed;
        let back = t.inspector.bulk("q", Operation::Archive, State::Pending).expect("allowed");
        back.run().await.expect("done");
    }
    assert_eq!((changed, t.info().await.archived), (3, 3));
}

#[tokio::test]
async fn bulk_tells_what_it_was_refused() {
    let t = Trial::start();
    t.enqueue(job("x", "k").unique(Unique::key("u"))).await;
    t.inspector.cancel("q", "x").await.expect("cancelled");
    t.enqueue(job("y", "k").unique(Unique::key("u"))).await;
    let rerun = t.inspector.bulk("q", Operation::Rerun, State::Cancelled).expect("allowed");
    let refused = rerun.run().await.expect("done").refused;
    let duplicate = StoreError::Duplicate { existing_id: "y".to_owned(), replaced: false };
    assert_eq!(refused, [(JobId::new("x").expect("id"), duplicate)]);
}

#[tokio::test]
async fn a_fingerprint_is_closed_and_opened() {
    let t = Trial::start();
    t.many(1, "k").await;
    let fingerprint = Fingerprint::of("k", b"k-0");
    let i = &t.inspector;
    assert_eq!(i.quarantine("q", fingerprint, Some("kills")).await, Ok(Change::Changed));
    assert_eq!(i.quarantine("q", fingerprint, None).await, Ok(Change::Unchanged));
    let listed = i.quarantines("q").await.expect("listed");
    assert_eq!((listed.len(), listed[0].reason.as_deref()), (1, Some("kills")));
    assert_eq!(i.quarantined("q", fingerprint).await.as_ref(), Ok(&listed[0]));
    let other = i.quarantined("q", "0".repeat(32)).await;
    assert!(matches!(other, Err(StoreError::NotFound(_))));
    let worker = WorkerId::new("w").expect("w");
    let queue = QueueName::new("q").expect("q");
    let lease = Duration::from_secs(1);
    let claim = t.client.store().claim(&queue, &worker, 1, lease).await.expect("a claim");
    assert_eq!((claim.jobs.len(), t.info().await.quarantined), (0, 1));
    assert_eq!(i.release("q", fingerprint).await, Ok(Released { released: 1, archived: 0 }));
    assert!(matches!(i.release("q", fingerprint).await, Err(StoreError::NotFound(_))));
    assert!(matches!(i.release("q", "?").await, Err(StoreError::Invalid(_))));
}

#[tokio::test]
async fn a_silent_worker_is_gone_and_later_forgotten() {
    let clock = crate::ManualClock::at(crate::Timestamp::from_millis(1_764_500_000_000));
    let client = Client::new(MemoryStore::with_clock(clock.clone()));
    let info = crate::store::WorkerInfo {
        id: "w".to_owned(),
        queues: vec!["q".to_owned()],
        host: "h".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        concurrency: 2,
        busy: 1,
        state: crate::store::WorkerState::Running,
        jobs: Vec::new(),
        started_at: clock.now(),
        seen_at: crate::Timestamp::from_millis(0),
        gone: false,
    };
    let gone = async || {
        let workers = client.inspector().workers().await.expect("workers");
        workers.iter().map(|worker| worker.gone).collect::<Vec<_>>()
    };
    client.store().beat(&info).await.expect("a beat");
    assert_eq!(gone().await, [false]);
    clock.advance(Duration::from_secs(60));
    assert_eq!(gone().await, [true]);
    client.store().beat(&info).await.expect("a beat");
    assert_eq!(gone().await, [false]);
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(gone().await, [false; 0]);
    client.store().beat(&info).await.expect("a beat");
    client.store().retire(&WorkerId::new("w").expect("w")).await.expect("left");
    assert_eq!(gone().await, [false; 0]);
}
