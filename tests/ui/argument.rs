//~ `String` cannot be made of a job
//~ a handler cannot have an argument of this type
//~ shared state is `Data<T>`
async fn argument(job: Charge, db: String) -> Result<(), Verdict> {
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(argument);
}
