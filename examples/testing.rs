//! How to test producers and handlers: in memory, without Redis, without `sleep`. The functions
//! below would be `#[tokio::test]`s of yours.
//!
//! ```sh
//! cargo run --example testing
//! ```

#![allow(clippy::print_stdout, reason = "it says that all went well")]

use sprag::{
    Client, Job, ManualClock, MemoryStore, State, StoreError, Timestamp, Worker,
    worker::{Attempt, BoxError},
};
use std::time::Duration;

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
    let an_hour = Duration::from_secs(3600);
    client.enqueue(SendWelcome { user }).id(format!("welcome-{user}")).delay(an_hour).await?;
    Ok(())
}

async fn welcome(job: SendWelcome, Attempt(attempt): Attempt) -> Result<(), BoxError> {
    if job.user == 13 && attempt == 0 {
        return Err("no luck at first".into());
    }
    Ok(())
}

// Its tests.

/// A client whose time stands still until the clock is moved.
fn client() -> (Client, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_764_500_000_000));
    (Client::new(MemoryStore::with_clock(clock.clone())), clock)
}

fn worker(client: &Client) -> Result<Worker, StoreError> {
    Worker::builder(client).handler(welcome).backoff(|_| Duration::from_secs(60)).build()
}

async fn a_signup_sends_a_welcome_an_hour_later() -> Result<(), StoreError> {
    let (client, clock) = client();
    sign_up(&client, 7).await?;
    let job = client.inspector().job("email", "welcome-7").await?;
    assert_eq!(job.state, State::Scheduled);

    let mut worker = worker(&client)?;
    assert_eq!(worker.run_until_empty().await.completed, 0);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(worker.run_until_empty().await.completed, 1);
    Ok(())
}

async fn two_signups_of_one_user_send_one_welcome() -> Result<(), StoreError> {
    let (client, _) = client();
    sign_up(&client, 7).await?;
    sign_up(&client, 7).await?;
    assert_eq!(client.inspector().queue("email").await?.unfinished, 1);
    Ok(())
}

async fn a_welcome_that_fails_is_tried_again_a_minute_later() -> Result<(), StoreError> {
    let (client, clock) = client();
    client.enqueue(SendWelcome { user: 13 }).id("unlucky").await?;

    let mut worker = worker(&client)?;
    assert_eq!(worker.run_until_empty().await.retried, 1);
    let job = client.inspector().job("email", "unlucky").await?;
    assert_eq!((job.state, job.attempt), (State::Retry, 1));
    clock.advance(Duration::from_secs(60));
    assert_eq!(worker.run_until_empty().await.completed, 1);
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
