//~ a handler returns a `Result`
//~ this handler returns `()`
async fn no_result(job: Charge) {}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(no_result);
}
