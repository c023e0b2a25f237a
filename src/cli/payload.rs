//! Payloads: read from an argument, a file or stdin; shown as JSON if they can be.

use crate::fail::Failure;
use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use clap::ValueEnum;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use sprag::{Codec, Envelope, StoreError};
use std::io::Read;

/// The codecs that a command can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CodecArg {
    /// A JSON text, stored as it is given
    #[default]
    Json,
    /// Bytes
    Raw,
}

impl From<CodecArg> for Codec {
    fn from(codec: CodecArg) -> Self {
        match codec {
            CodecArg::Json => Self::Json,
            CodecArg::Raw => Self::Raw,
        }
    }
}

/// The argument itself, `@file`, or `-` for stdin.
pub(crate) fn read(argument: &str) -> Result<Vec<u8>, Failure> {
    if argument == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read stdin")?;
        return Ok(bytes);
    }
    match argument.strip_prefix('@') {
        Some(file) => Ok(std::fs::read(file).with_context(|| format!("cannot read {file}"))?),
        None => Ok(argument.as_bytes().to_vec()),
    }
}

/// Checks that bytes are one JSON text.
pub(crate) fn check_json(field: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let checked = serde_json::from_slice::<IgnoredAny>(bytes);
    checked.map(drop).map_err(|error| StoreError::Invalid(format!("{field}: not JSON: {error}")))
}

/// A payload as an object shows it: `payload`, or `payload_base64`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shown {
    Payload(Box<RawValue>),
    PayloadBase64(String),
}

impl Shown {
    pub(crate) fn of(envelope: &Envelope) -> Self {
        let bytes = envelope.payload();
        let json = match envelope.codec() {
            Codec::Json => std::str::from_utf8(bytes).ok().and_then(raw_json),
            Codec::MsgPack => msgpack_as_json(bytes),
            Codec::Raw => None,
        };
        json.map_or_else(|| Self::PayloadBase64(BASE64_STANDARD.encode(bytes)), Self::Payload)
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Payload(json) => json.get(),
            Self::PayloadBase64(text) => text,
        }
    }
}

/// The JSON text as it is, but on one line: outside of strings a line's end is mere space, and
/// inside it cannot be.
pub(crate) fn raw_json(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.replace(['\n', '\r'], " ")).ok()
}

fn msgpack_as_json(bytes: &[u8]) -> Option<Box<RawValue>> {
    let mut decoder = rmp_serde::Deserializer::new(bytes);
    // A decoder's stack is finite.
    decoder.set_max_depth(64);
    let value = serde_json::Value::deserialize(&mut decoder).ok()?;
    let whole = decoder.get_ref().is_empty();
    whole.then(|| serde_json::value::to_raw_value(&value).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sprag::{Kind, QueueName};

    fn shown(payload: &[u8], codec: Codec) -> String {
        let names = (QueueName::new("q").expect("queue"), Kind::new("k").expect("kind"));
        let job = Envelope::builder(names.0, names.1).payload(payload.to_vec(), codec);
        serde_json::to_string(&Shown::of(&job.build().expect("valid"))).expect("encodes")
    }

    #[test]
    fn a_payload_is_shown_as_the_json_that_it_is_or_as_base64() {
        let big = b"{\"n\":\n123456789012345678901234567890}";
        assert_eq!(shown(big, Codec::Json), r#"{"payload":{"n": 123456789012345678901234567890}}"#);
        assert_eq!(shown(b"\x81\xa1a\x01", Codec::MsgPack), r#"{"payload":{"a":1}}"#);
        assert_eq!(shown(b"\x01\x02", Codec::MsgPack), r#"{"payload_base64":"AQI="}"#);
        assert_eq!(shown(b"\xc4\x01a", Codec::MsgPack), r#"{"payload_base64":"xAFh"}"#);
        assert_eq!(shown(b"no json", Codec::Json), r#"{"payload_base64":"bm8ganNvbg=="}"#);
        assert_eq!(shown(b"1", Codec::Raw), r#"{"payload_base64":"MQ=="}"#);
        assert_eq!(shown(&[0x91; 10_000], Codec::MsgPack).len(), 13_357);
    }
}
