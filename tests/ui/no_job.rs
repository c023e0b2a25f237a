//~ `u64` is not a job
//~ does not implement `sprag::Job`
//~ impl sprag::Job for u64
async fn no_job(user: u64) -> Result<(), Verdict> {
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(no_job);
}
