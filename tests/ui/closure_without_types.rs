//~ cannot satisfy `_: Job`
//~ consider giving this closure parameter an explicit type
fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(|job, context| async move { Ok::<(), Verdict>(()) });
}
