//! What a replica has outlives the master.

use crate::{
    pair::{Pair, run},
    world::{hasty, is_there, ms, note, patient},
};
use futures_util::future::join_all;

#[tokio::test]
async fn a_durable_job_outlives_its_master() {
    let mut pair = Pair::start().await;
    let client = patient(&pair.master.url(), ms(1_000));
    let ids: Vec<_> = (0..40).map(|number| format!("job-{number}")).collect();
    let enqueue = async |id: &String| {
        client.enqueue(note(1)).id(id).replicas(1, ms(10_000)).await.expect("a replica has it");
    };
    join_all(ids.iter().map(enqueue)).await;
    pair.master.kill();
    run::<()>(&pair.replica, &["REPLICAOF", "NO", "ONE"]).await;
    let promoted = hasty(&pair.replica.url());
    for id in &ids {
        assert!(is_there(&promoted, id).await, "{id}");
    }
    // And it can be worked on there.
    assert!(!promoted.enqueue(note(2)).await.expect("admitted").existing);
}
