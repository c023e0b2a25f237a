//! How to test producers and handlers: in memory, without Redis, without `sleep`. The functions
//! below would be `#[tokio::test]`s of yours.
//!
//! ```sh
//! cargo run --example testing
//! ```

#![allow(clippy::print_stdout, reason = "it says that all went well")]

use sprag::{
    Client, Job, State, StoreError, Worker, assert_enqueued, assert_not_enqueued,
    testing::Kit,
    worker::{Attempt, BoxError},
};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

// What is to be tested: a producer and a handler.

#[derive(serde::Serialize, serde::Deserialize)]
struct SendWelcome {
    user: u64,
}

impl Job for SendWelcome {
    const KIND: &'static str = "email:welcome";
    const QUEUE: &'static str = "email";
}

async fn sign_up(client: &Client, user: u64) -> Result<(), StoreError> {
    client.enqueue(SendWelcome { user }).id(format!("welcome-{user}")).delay(HOUR).await?;
    Ok(())
}

async fn send_welcome(job: SendWelcome, Attempt(attempt): Attempt) -> Result<(), BoxError> {
    if job.user == 13 && attempt == 0 {
        return Err("no luck at first".into());
    }
    Ok(())
}

// Its tests.

fn worker(kit: &Kit) -> Result<Worker, StoreError> {
    kit.worker().handler(send_welcome).backoff(|_| MINUTE).build()
}

async fn a_signup_sends_a_welcome_an_hour_later() -> Result<(), StoreError> {
    let kit = Kit::new();
    sign_up(kit.client(), 7).await?;
    assert_enqueued!(kit, SendWelcome { user: 7 });

    let mut worker = worker(&kit)?;
    assert_eq!(kit.drain(&mut worker).await.completed, 0);
    kit.advance(HOUR).await;
    assert_eq!(kit.drain(&mut worker).await.completed, 1);
    assert_not_enqueued!(kit, SendWelcome { .. });
    Ok(())
}

async fn two_signups_of_one_user_send_one_welcome() -> Result<(), StoreError> {
    let kit = Kit::new();
    sign_up(kit.client(), 7).await?;
    sign_up(kit.client(), 7).await?;
    assert_eq!(kit.enqueued::<SendWelcome>().await.len(), 1);
    Ok(())
}

async fn a_welcome_that_fails_is_tried_again_a_minute_later() -> Result<(), StoreError> {
    let kit = Kit::new();
    kit.client().enqueue(SendWelcome { user: 13 }).id("unlucky").await?;

    let mut worker = worker(&kit)?;
    assert_eq!(kit.drain(&mut worker).await.retried, 1);
    let job = kit.inspector().job("email", "unlucky").await?;
    assert_eq!((job.state, job.attempt), (State::Retry, 1));
    kit.advance(MINUTE).await;
    assert_eq!(kit.drain(&mut worker).await.completed, 1);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), StoreError> {
    a_signup_sends_a_welcome_an_hour_later().await?;
    two_signups_of_one_user_send_one_welcome().await?;
    a_welcome_that_fails_is_tried_again_a_minute_later().await?;
    println!("all 3 hold");
    Ok(())
}
