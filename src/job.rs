//! A job's Rust type.

use crate::{
    model::{Codec, Envelope, StoreError, Unique},
    worker::BoxError,
};
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

/// A type whose values are payloads: what producers enqueue and handlers receive.
///
/// ```
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendWelcome { user: u64 }
///
/// impl sprag::Job for SendWelcome {
///     const KIND: &'static str = "email:welcome";
///     const QUEUE: &'static str = "email";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "does not implement `sprag::Job`",
    note = "a job is what a client enqueues, and the first argument of its handler: `impl sprag::Job for {Self} {{ const KIND: &'static str = \"…\"; }}`"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The type's name and dispatch key. Whoever changes it lists the old one in
    /// [`ALIASES`](Job::ALIASES) while jobs of it wait.
    const KIND: &'static str;
    /// Other kinds that its handler runs as well: its former names.
    const ALIASES: &'static [&'static str] = &[];
    /// Where its jobs go unless the producer says otherwise.
    const QUEUE: &'static str = "default";
    /// How payloads are encoded.
    const CODEC: Codec = Codec::MsgPack;
    /// The version of this type's fields: see [`upgrade`](Job::upgrade).
    const VERSION: u32 = 1;
    /// 0 to 9, higher first.
    const PRIORITY: u8 = 4;
    /// Failed attempts before a job is archived, 1 to 1,000.
    const MAX_ATTEMPTS: u32 = 25;
    /// How long one attempt may take: whole ms, 1 ms to 10 years. None: as the worker
    /// [says](crate::worker::WorkerBuilder::timeout).
    const TIMEOUT: Option<Duration> = None;
    /// How long after it was enqueued a job is worth running: whole ms, 1 ms to 10 years. Then it is
    /// archived as `expired`; a handler that runs is told to stop.
    const DEADLINE: Option<Duration> = None;
    /// How long a completed job, and its result, is kept: whole ms, 1 ms to 10 years. None: not at
    /// all.
    const RETENTION: Option<Duration> = None;

    /// The unique key of this job, if it has one.
    fn unique(&self) -> Option<Unique> {
        None
    }

    /// How long to wait after the attempt of this number (from 1) failed; none: as the worker
    /// [says](crate::worker::WorkerBuilder::backoff).
    fn backoff(attempt: u32) -> Option<Duration> {
        let _ = attempt;
        None
    }

    /// Makes a job of a payload of another version than [`VERSION`](Job::VERSION). Unless written
    /// otherwise it is read as if it were of this one: enough for new fields with a default.
    ///
    /// ```
    /// use sprag::{Job, job::Payload, worker::BoxError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Greet { name: String, formal: bool }
    /// # #[derive(serde::Deserialize)]
    /// struct GreetV1 { first: String, last: String }
    ///
    /// impl Job for Greet {
    ///     const KIND: &'static str = "greet";
    ///     const VERSION: u32 = 2;
    ///
    ///     fn upgrade(payload: Payload<'_>) -> Result<Self, BoxError> {
    ///         match payload.version() {
    ///             1 => {
    ///                 let GreetV1 { first, last } = payload.decode()?;
    ///                 Ok(Self { name: format!("{first} {last}"), formal: false })
    ///             }
    ///             _ => Ok(payload.decode()?),
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// Any: the job is archived as `undecodable`, with the error. A payload of a later version is
    /// snoozed for another worker, as it is when a deployment is under way.
    fn upgrade(payload: Payload<'_>) -> Result<Self, BoxError> {
        Ok(payload.decode()?)
    }
}

/// A payload as it was enqueued.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    version: u32,
    codec: Codec,
    bytes: &'a [u8],
}

/// Why a payload is not of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotDecoded(String);

impl<'a> Payload<'a> {
    pub(crate) fn of(envelope: &'a Envelope) -> Self {
        Self { version: envelope.version(), codec: envelope.codec(), bytes: envelope.payload() }
    }

    /// The version of the type that it was made of.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads it as a value of this type; all of it must be used.
    ///
    /// # Errors
    /// It is not one, or is raw, without any type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, NotDecoded> {
        decode(self.codec, self.bytes).map_err(NotDecoded)
    }
}

/// Encodes a payload.
///
/// # Errors
/// `Invalid` if the type cannot be encoded, or the codec is [`Codec::Raw`], which knows no types.
pub(crate) fn encode<T: Serialize>(codec: Codec, payload: &T) -> Result<Vec<u8>, StoreError> {
    let cannot = |error: &dyn std::fmt::Display| {
        StoreError::Invalid(format!("payload: cannot be encoded as {}: {error}", codec.as_str()))
    };
    match codec {
        Codec::MsgPack => rmp_serde::to_vec_named(payload).map_err(|e| cannot(&e)),
        Codec::Json => serde_json::to_vec(payload).map_err(|e| cannot(&e)),
        Codec::Raw => Err(cannot(&"a raw payload is bytes, not a type")),
    }
}

/// Nesting deeper than this is refused: a decoder's stack is finite.
const MAX_DEPTH: usize = 64;

/// Decodes a payload; all of it must be used.
fn decode<T: DeserializeOwned>(codec: Codec, payload: &[u8]) -> Result<T, String> {
    match codec {
        Codec::MsgPack => {
            let mut decoder = rmp_serde::Deserializer::new(payload);
            decoder.set_max_depth(MAX_DEPTH);
            let value = T::deserialize(&mut decoder).map_err(|e| e.to_string())?;
            if decoder.get_ref().is_empty() {
                Ok(value)
            } else {
                Err("bytes after the value".into())
            }
        }
        Codec::Json => serde_json::from_slice(payload).map_err(|e| e.to_string()),
        Codec::Raw => Err("a raw payload has no type".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_but_raw_round_trips_and_refuses_what_is_left_over() {
        for codec in [Codec::MsgPack, Codec::Json] {
            let mut bytes = encode(codec, &(1u8, "x")).expect("encodes");
            assert_eq!(decode::<(u8, String)>(codec, &bytes), Ok((1, "x".to_owned())));
            bytes.push(b'1');
            assert!(decode::<(u8, String)>(codec, &bytes).is_err(), "{codec:?}");
        }
        assert!(encode(Codec::Raw, &1).is_err() && decode::<u8>(Codec::Raw, b"1").is_err());
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        #[derive(serde::Deserialize)]
        struct Nest(#[allow(dead_code, reason = "only its depth matters")] Vec<Nest>);
        let deep = vec![0x91; 100_000];
        assert!(decode::<Nest>(Codec::MsgPack, &deep).is_err());
    }
}
