//! A lost answer: the repeat goes by another connection, on which nothing was written.

use crate::{
    pair::{Pair, makes},
    support::Proxy,
    world::{is_there, ms, note, patient, says, unavailable},
};

/// The budget has room for a repeat; that of a wait that came to nothing is the caller's.
const BUDGET: std::time::Duration = ms(3_000);

#[tokio::test]
async fn a_repeat_by_another_connection_waits_truly() {
    for make in makes() {
        let pair = Pair::of(make).await;
        let proxy = Proxy::in_front_of(&pair.master).await;
        let client = patient(&proxy.url(), BUDGET);
        // The queue is there, the scripts are loaded, and a caller is at hand.
        client.enqueue(note(1)).replicas(1, ms(10_000)).await.expect("a replica");
        let before = proxy.seen("enqueue");
        pair.replica.pause();
        proxy.on("enqueue").drop_reply();
        let answer = client.enqueue(note(2)).id("a").replicas(1, ms(300)).await;
        says(&unavailable(answer), &["job a ", "0 of 1"]);
        let calls = proxy.seen("enqueue") - before;
        assert_eq!((proxy.struck("enqueue"), calls), (1, 2), "{make:?}");
        pair.replica.resume();
        // With the replica back, the repeat of a lost answer succeeds.
        proxy.on("enqueue").drop_reply();
        let again = client.enqueue(note(3)).id("b").replicas(1, ms(10_000)).await;
        assert!(!again.expect("a replica").existing, "{make:?}");
        assert!(is_there(&patient(&pair.replica.url(), BUDGET), "b").await);
    }
}
