//! What only this store promises. The rest is in `tests/contract`.

use super::*;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("queue")
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_a_token_ends_at_its_timeout_by_tokios_clock() {
    let (store, start) = (MemoryStore::new(), Instant::now());
    assert_eq!(store.wait(&[queue("a")], MINUTE).await, Ok(None));
    assert_eq!(start.elapsed(), MINUTE);
}

#[tokio::test(start_paused = true)]
async fn one_token_ends_one_of_two_waits() {
    let (store, start) = (MemoryStore::new(), Instant::now());
    let names = [queue("a"), queue("b")];
    let wake = async {
        tokio::time::sleep(MINUTE / 2).await;
        store.wake(&names[1]).await
    };
    let (one, two, _) = tokio::join!(store.wait(&names, MINUTE), store.wait(&names, MINUTE), wake);
    let woken = [one, two].into_iter().filter(|woken| *woken == Ok(Some(queue("b")))).count();
    assert_eq!((woken, start.elapsed()), (1, MINUTE));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_leaves_the_token() {
    let store = MemoryStore::new();
    let names = [queue("a")];
    drop(tokio::time::timeout(MINUTE, store.wait(&names, 2 * MINUTE)).await);
    store.wake(&names[0]).await.expect("wake");
    assert_eq!(store.wait(&names, MINUTE).await, Ok(Some(queue("a"))));
}

#[tokio::test(start_paused = true)]
async fn a_token_left_between_the_look_and_the_sleep_is_found() {
    let (store, names) = (MemoryStore::new(), [queue("a")]);
    let find = || {
        let found = store.take_token(&names);
        store.leave_token(&mut store.shelf(), &names[0]);
        found
    };
    assert_eq!(tokio::time::timeout(MINUTE, store.look(find)).await, Ok(queue("a")));
}

#[tokio::test]
async fn a_debug_text_shows_no_payload() {
    let store = MemoryStore::new();
    let kind = crate::Kind::new("k").expect("kind");
    let job = Envelope::builder(queue("a"), kind).payload("secret", crate::Codec::Raw);
    store.enqueue(&queue("a"), &[job.build().expect("valid")]).await.expect("enqueued");
    assert!(!format!("{store:?}").contains("secret"));
}
