//~ this is not a handler of jobs
//~ its first argument is the job
async fn nothing() -> Result<(), Verdict> {
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(nothing);
}
