//~ is not implemented for `u8`
//~ required for `Result<(), u8>` to implement
async fn wrong_error(job: Charge) -> Result<(), u8> {
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(wrong_error);
}
