//~ this is not a handler of jobs
//~ up to eight further ones
type C = Context;

async fn too_many(job: Charge, a: C, b: C, c: C, d: C, e: C, f: C, g: C, h: C, i: C) -> Result<(), Verdict> {
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(too_many);
}
