//~ the trait bound `Opaque: serde::Serialize` is not satisfied
struct Opaque;

async fn opaque(job: Charge) -> Result<Opaque, Verdict> {
    Ok(Opaque)
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(opaque);
}
