//~ `Result<(), Verdict>` is not a future
fn not_async(job: Charge) -> Result<(), Verdict> {
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(not_async);
}
