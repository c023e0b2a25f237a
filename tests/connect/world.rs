//! What all of these tests use: a job, clients, and what errors are to say.

use serde::{Deserialize, Serialize};
use sprag::{Client, Enqueued, Job, RedisStore, StoreError};
use std::time::Duration;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) number: u32,
}

impl Job for Note {
    const KIND: &'static str = "note";
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn note(number: u32) -> Note {
    Note { number }
}

/// One that repeats nothing.
pub(crate) fn hasty(url: &str) -> Client {
    patient(url, Duration::ZERO)
}

/// One with this budget for repeats.
pub(crate) fn patient(url: &str, budget: Duration) -> Client {
    Client::new(RedisStore::builder(url).repeat_budget(budget).build().expect("a store"))
}

/// The error's text, if it is `Unavailable`.
#[track_caller]
pub(crate) fn unavailable<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(error @ StoreError::Unavailable(_)) => error.to_string(),
        other => panic!("not Unavailable: {other:?}"),
    }
}

/// The same of `Backend`.
#[track_caller]
pub(crate) fn backend<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(error @ StoreError::Backend(_)) => error.to_string(),
        other => panic!("not Backend: {other:?}"),
    }
}

/// The same of `Invalid`.
#[track_caller]
pub(crate) fn invalid<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(error @ StoreError::Invalid(_)) => error.to_string(),
        other => panic!("not Invalid: {other:?}"),
    }
}

/// It has all of these words.
#[track_caller]
pub(crate) fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?}: {text}");
    }
}

/// Whether it is there, for a client that asks for nothing else.
pub(crate) async fn is_there(client: &Client, id: &str) -> bool {
    client.inspector().job("default", id).await.is_ok()
}

#[track_caller]
pub(crate) fn existing(answer: Result<Enqueued, StoreError>) -> bool {
    answer.expect("admitted").existing
}
