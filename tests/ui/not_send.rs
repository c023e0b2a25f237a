//~ future returned by `not_send` is not `Send`
//~ has type `Rc<Charge>` which is not `Send`
async fn not_send(job: Charge) -> Result<(), Verdict> {
    let shared = std::rc::Rc::new(job);
    std::future::ready(()).await;
    drop(shared);
    Ok(())
}

fn worker(client: &Client) {
    let _ = Worker::builder(client).handler(not_send);
}
