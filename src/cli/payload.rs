//! Payloads: read from an argument, a file or stdin; shown as JSON if they can be.

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::ValueEnum;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use sprag::{Codec, Envelope, StoreError};
use std::{fmt::Display, io::Read};

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
pub(crate) fn read(field: &str, argument: &str) -> Result<Vec<u8>, StoreError> {
    if argument == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|error| unreadable(field, "stdin", &error));
    }
    match argument.strip_prefix('@') {
        Some(file) => std::fs::read(file).map_err(|error| unreadable(field, file, &error)),
        None => Ok(argument.as_bytes().to_vec()),
    }
}

/// A file that was named cannot be read.
pub(crate) fn unreadable(field: &str, file: &str, error: &std::io::Error) -> StoreError {
    StoreError::Invalid(format!("{field}: cannot read {file}: {error}"))
}

/// Checks that bytes are one JSON text.
pub(crate) fn check_json(field: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let not_json = |why: &dyn Display| StoreError::Invalid(format!("{field}: not JSON: {why}"));
    // What is skipped is not looked at so closely.
    let text = std::str::from_utf8(bytes).map_err(|error| not_json(&error))?;
    let checked = serde_json::from_str::<IgnoredAny>(text);
    checked.map(drop).map_err(|error| not_json(&error))
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

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Payload(_) => "payload",
            Self::PayloadBase64(_) => "payload_base64",
        }
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

pub(crate) fn msgpack_as_json(bytes: &[u8]) -> Option<Box<RawValue>> {
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
    fn json_is_utf_8() {
        assert_eq!(check_json("p", "[\"ü\", 1e400]".as_bytes()), Ok(()));
        for bad in [&b"\"\xff\""[..], b"{\"\xc3\": 1}", b"[\"\xed\xa0\x80\"]", b"\"a", b""] {
            let error = check_json("p", bad).expect_err("not JSON").to_string();
            assert!(error.starts_with("invalid p: not JSON: "), "{error}");
        }
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
