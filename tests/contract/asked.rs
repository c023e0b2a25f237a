//! The list of workers, and what they are asked.

use crate::{support::PATIENCE, trial::*};
use sprag::{
    StoreError, Timestamp, WorkerId,
    store::{Channel, Event, RunningJob, Wish, WorkerInfo, WorkerState},
};

cases! {
    a_worker_is_listed_as_it_said,
    of_many_jobs_the_first_hundred_are_listed,
    a_worker_that_is_asked_hears_it_at_once_and_at_every_beat,
    who_is_asked_to_stop_is_not_asked_for_less,
    a_worker_that_is_not_listed_cannot_be_asked,
    what_was_asked_goes_with_the_worker,
}

fn info(worker: &WorkerId) -> WorkerInfo {
    WorkerInfo {
        id: worker.to_string(),
        queues: vec!["q".to_owned()],
        host: "h".to_owned(),
        pid: 1,
        version: "0".to_owned(),
        concurrency: 2,
        busy: 1,
        state: WorkerState::Quiet,
        jobs: vec![running(1)],
        started_at: Timestamp::from_millis(5),
        seen_at: Timestamp::from_millis(0),
        gone: false,
    }
}

fn running(number: u64) -> RunningJob {
    RunningJob {
        queue: "q".to_owned(),
        id: format!("job-{number}"),
        kind: "k".to_owned(),
        attempt: 2,
        started_at: Timestamp::from_millis(number),
    }
}

impl Trial {
    async fn beat(&self) -> Option<Wish> {
        self.store.beat(&info(&self.worker)).await.expect("a beat")
    }

    async fn ask(&self, wish: Wish) -> Result<(), StoreError> {
        self.store.ask(&self.worker, wish).await
    }

    async fn workers(&self) -> Vec<WorkerInfo> {
        self.store.workers().await.expect("workers")
    }
}

async fn a_worker_is_listed_as_it_said(t: Trial) {
    assert_eq!(t.beat().await, None);
    let listed = t.workers().await.remove(0);
    assert!(listed.seen_at > Timestamp::from_millis(0), "by the store's clock");
    assert_eq!(listed, WorkerInfo { seen_at: listed.seen_at, ..info(&t.worker) });
}

async fn of_many_jobs_the_first_hundred_are_listed(t: Trial) {
    let many = WorkerInfo { jobs: (0..250).map(running).collect(), ..info(&t.worker) };
    t.store.beat(&many).await.expect("a beat");
    let listed = t.workers().await.remove(0);
    assert_eq!(listed.jobs, (0..100).map(running).collect::<Vec<_>>());
}

async fn a_worker_that_is_asked_hears_it_at_once_and_at_every_beat(t: Trial) {
    let mut events = t.store.listen(Channel::Control).await.expect("listens");
    t.beat().await;
    for wish in [Wish::Quiet, Wish::Stop] {
        t.ask(wish).await.expect("asked");
        let told = tokio::time::timeout(PATIENCE, events.next()).await.expect("in time");
        assert_eq!(told, Some(Event::Asked { worker: t.worker.clone(), wish }));
        assert_eq!([t.beat().await, t.beat().await], [Some(wish); 2]);
    }
    assert_eq!(t.other_worker().beat().await, None, "others are asked nothing");
    assert_eq!(t.workers().await.len(), 2, "a wish is no worker");
}

async fn who_is_asked_to_stop_is_not_asked_for_less(t: Trial) {
    t.beat().await;
    t.ask(Wish::Stop).await.expect("asked");
    t.ask(Wish::Quiet).await.expect("asked");
    assert_eq!(t.beat().await, Some(Wish::Stop));
}

async fn a_worker_that_is_not_listed_cannot_be_asked(t: Trial) {
    assert!(matches!(t.ask(Wish::Stop).await, Err(StoreError::NotFound(_))));
    t.beat().await;
    t.store.retire(&t.worker).await.expect("left");
    assert!(matches!(t.ask(Wish::Stop).await, Err(StoreError::NotFound(_))));
    assert_eq!(t.beat().await, None);
}

async fn what_was_asked_goes_with_the_worker(t: Trial) {
    t.beat().await;
    t.ask(Wish::Quiet).await.expect("asked");
    t.store.retire(&t.worker).await.expect("left");
    assert_eq!(t.workers().await, []);
    assert_eq!(t.beat().await, None, "one that comes back starts anew");
}
