//! The record: how a job is written down in Redis. One readable header line, a newline, the
//! payload's raw bytes.
//!
//! ```text
//! at=1764500000000 fp=9f86d081884c7d659a2feaa0c55ad015 priority=7 kind=email:welcome codec=json
//! ```
//!
//! Fields are `name=value`, separated by one space, values percent-encoded; only what differs from
//! its default stands there; unknown fields are kept. The enqueue script adds `at` in front and, if
//! the job is due later, `run_at` at the end, both by Redis' clock. From `fp` up to `kind` stands
//! what the scripts read: they cut it out as one piece and never look at the rest.

use super::{
    Codec, Envelope, Fingerprint, JobId, Kind, Mode, Partition, QueueName, Timestamp, Unique, When,
    envelope::{DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, DEFAULT_VERSION},
    millis,
    unique::Key,
};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::{fmt::Write, str::FromStr, time::Duration};

/// Everything but letters, digits and `. _ : / @ -` is encoded.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b':').remove(b'/').remove(b'@').remove(b'-');

/// Between the kind and the key in `unique=`; `ENCODED` keeps it out of both.
const SCOPE_END: char = '~';

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) envelope: Envelope,
    pub(crate) enqueued_at: Timestamp,
}

/// Why a record cannot be decoded: names the field, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("undecodable record: {0}")]
pub struct Undecodable(pub(crate) String);

/// The record of an envelope, as the enqueue script takes it: without `at` and `run_at`.
pub(crate) fn encode(job: &Envelope) -> Vec<u8> {
    let mut line = String::with_capacity(160 + job.payload.len());
    // Writing to a String cannot fail.
    let _ = write_header(&mut line, job);
    let mut record = line.into_bytes();
    record.push(b'\n');
    record.extend_from_slice(&job.payload);
    record
}

fn write_header(line: &mut String, job: &Envelope) -> std::fmt::Result {
    line.push_str("fp=");
    line.push_str(job.fingerprint.as_str());
    if job.priority != DEFAULT_PRIORITY {
        write!(line, " priority={}", job.priority)?;
    }
    if job.max_attempts != DEFAULT_MAX_ATTEMPTS {
        write!(line, " max_attempts={}", job.max_attempts)?;
    }
    match job.deadline {
        Some(When::At(at)) => write!(line, " deadline={}", at.as_millis())?,
        Some(When::In(delay)) => write!(line, " deadline=+{}", millis(delay))?,
        // At once: past by the time that it is read, and refused.
        Some(When::Now) => line.push_str(" deadline=0"),
        None => {}
    }
    if let Some(retention) = job.retention {
        write!(line, " retention={}", millis(retention))?;
    }
    if let Some(remember) = job.remember {
        write!(line, " remember={}", millis(remember))?;
    }
    if let Some(token) = unique_token(job) {
        write!(line, " unique={token}")?;
    }
    match job.unique.as_ref().map(|unique| unique.mode) {
        Some(Mode::Throttle { window }) => {
            write!(line, " unique_mode=throttle:{}", millis(window))?;
        }
        Some(Mode::Debounce { window, max_wait }) => {
            write!(line, " unique_mode=debounce:{}", millis(window))?;
            max_wait.map_or(Ok(()), |wait| write!(line, ":{}", millis(wait)))?;
        }
        Some(Mode::Lifecycle) | None => {}
    }
    line.push_str(" kind=");
    line.push_str(job.kind.as_str());
    if job.codec != Codec::default() {
        write!(line, " codec={}", job.codec.as_str())?;
    }
    if job.version != DEFAULT_VERSION {
        write!(line, " version={}", job.version)?;
    }
    if let Some(timeout) = job.timeout {
        write!(line, " timeout={}", millis(timeout))?;
    }
    if let Some(partition) = &job.partition {
        write!(line, " partition={}", utf8_percent_encode(partition.as_str(), ENCODED))?;
    }
    for (name, value) in &job.headers {
        let name = utf8_percent_encode(name, ENCODED);
        write!(line, " header.{name}={}", utf8_percent_encode(value, ENCODED))?;
    }
    for (name, value) in &job.unknown {
        write!(line, " {name}={value}")?;
    }
    Ok(())
}

/// A text as one word: percent-encoded like the values of a header.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The text of such a word; what is not UTF-8 is shown as such.
pub(crate) fn decoded(word: &str) -> String {
    percent_decode_str(word).decode_utf8_lossy().into_owned()
}

/// The unique key as scripts and the `unique` hash know it: `<kind>~<key>`, no kind if any.
pub(crate) fn unique_token(job: &Envelope) -> Option<String> {
    let unique = job.unique.as_ref()?;
    let kind = if unique.any_kind { "" } else { job.kind.as_str() };
    let key = match &unique.key {
        Key::Given(key) => percent_encoding::percent_encode(key, ENCODED).to_string(),
        Key::Payload => job.fingerprint.to_string(),
    };
    Some(format!("{kind}{SCOPE_END}{key}"))
}

/// Reads a record. Any bytes give an answer, never a panic.
pub(crate) fn decode(queue: &QueueName, id: &JobId, record: Bytes) -> Result<Record, Undecodable> {
    let end = record.iter().position(|b| *b == b'\n').ok_or_else(|| broken("no header line"))?;
    let line = std::str::from_utf8(&record[..end]).map_err(|_| broken("header is not UTF-8"))?;
    let mut fields = Fields::read(line)?;
    let kind: Kind = fields.required("kind")?;
    let fingerprint = fields.text("fp")?.ok_or_else(|| missing("fp"))?;
    let mut job = Envelope::builder(queue.clone(), kind).id(id.clone());
    job = job.payload(record.slice(end + 1..), fields.codec()?).max_payload(super::MAX_BATCH_BYTES);
    if let Some(version) = fields.number("version")? {
        job = job.version(version);
    }
    if let Some(priority) = fields.number("priority")? {
        job = job.priority(priority);
    }
    if let Some(attempts) = fields.number("max_attempts")? {
        job = job.max_attempts(attempts);
    }
    if let Some(timeout) = fields.duration("timeout")? {
        job = job.timeout(timeout);
    }
    if let Some(retention) = fields.duration("retention")? {
        job = job.retention(retention);
    }
    if let Some(deadline) = fields.number("deadline")? {
        job = job.deadline(When::At(Timestamp::from_millis(deadline)));
    }
    if let Some(remember) = fields.duration("remember")? {
        job = job.remember(remember);
    }
    if let Some(partition) = fields.text("partition")? {
        job = job.partition(Partition::new(partition).map_err(|_| bad("partition"))?);
    }
    let run_at = fields.number("run_at")?.map(|at| When::At(Timestamp::from_millis(at)));
    if let Some(unique) = fields.unique()? {
        job = job.unique(unique);
    }
    let enqueued_at = Timestamp::from_millis(fields.number("at")?.ok_or_else(|| missing("at"))?);
    for (name, value) in fields.headers()? {
        job = job.header(name, value);
    }
    let mut envelope = job.build().map_err(|error| broken(&error.to_string()))?;
    envelope.fingerprint = Fingerprint::new(&fingerprint).map_err(|_| bad("fp"))?;
    // Set past the builder: a debounced job's time is the script's.
    envelope.run_at = run_at.unwrap_or_default();
    // What was first enqueued under this id is the script's affair, too: not to be enqueued again.
    fields.take("first");
    envelope.unknown = fields.rest();
    Ok(Record { envelope, enqueued_at })
}

fn broken(what: &str) -> Undecodable {
    Undecodable(what.to_owned())
}

fn bad(field: &str) -> Undecodable {
    Undecodable(format!("field {field} is out of bounds"))
}

fn missing(field: &str) -> Undecodable {
    Undecodable(format!("field {field} is missing"))
}

/// The fields of a header line that nobody has taken yet.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn read(line: &'a str) -> Result<Self, Undecodable> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for field in line.split(' ') {
            let pair = field.split_once('=').filter(|(name, _)| !name.is_empty());
            let (name, value) = pair.ok_or_else(|| broken("a field is not name=value"))?;
            if fields.iter().any(|(known, _)| *known == name) {
                return Err(broken("a field stands twice"));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Undecodable> {
        self.take(name).map(|value| text(name, value)).transpose()
    }

    fn required<T: FromStr>(&mut self, name: &str) -> Result<T, Undecodable> {
        let value = self.text(name)?.ok_or_else(|| missing(name))?;
        value.parse().map_err(|_| bad(name))
    }

    fn number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Undecodable> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
        value.parse().ok().filter(|_| digits).map(Some).ok_or_else(|| bad(name))
    }

    fn duration(&mut self, name: &str) -> Result<Option<Duration>, Undecodable> {
        Ok(self.number(name)?.map(Duration::from_millis))
    }

    fn codec(&mut self) -> Result<Codec, Undecodable> {
        let Some(name) = self.take("codec") else { return Ok(Codec::default()) };
        Codec::ALL.into_iter().find(|c| c.as_str() == name).ok_or_else(|| bad("codec"))
    }

    fn unique(&mut self) -> Result<Option<Unique>, Undecodable> {
        let Some(token) = self.take("unique") else { return Ok(None) };
        let (kind, key) = token.split_once(SCOPE_END).ok_or_else(|| bad("unique"))?;
        let unique = Unique::key(percent_decode_str(key).collect::<Vec<u8>>()).mode(self.mode()?);
        Ok(Some(if kind.is_empty() { unique.any_kind() } else { unique }))
    }

    fn mode(&mut self) -> Result<Mode, Undecodable> {
        let Some(mode) = self.take("unique_mode") else { return Ok(Mode::Lifecycle) };
        let mut parts = mode.split(':');
        let name = parts.next();
        let times = parts.map(|time| time.parse().map(Duration::from_millis));
        let times = times.collect::<Result<Vec<_>, _>>().map_err(|_| bad("unique_mode"))?;
        match (name, &*times) {
            (Some("throttle"), [window]) => Ok(Mode::Throttle { window: *window }),
            (Some("debounce"), [window]) => Ok(Mode::Debounce { window: *window, max_wait: None }),
            (Some("debounce"), [window, wait]) => {
                Ok(Mode::Debounce { window: *window, max_wait: Some(*wait) })
            }
            _ => Err(bad("unique_mode")),
        }
    }

    fn headers(&mut self) -> Result<Vec<(String, String)>, Undecodable> {
        let mut headers = Vec::new();
        for (name, value) in std::mem::take(&mut self.0) {
            match name.strip_prefix("header.") {
                Some(header) => headers.push((text("header", header)?, text("header", value)?)),
                None => self.0.push((name, value)),
            }
        }
        Ok(headers)
    }

    fn rest(self) -> Vec<(String, String)> {
        self.0.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

fn text(field: &str, value: &str) -> Result<String, Undecodable> {
    let decoded = percent_decode_str(value).decode_utf8().map_err(|_| bad(field))?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EnvelopeBuilder;
    use proptest::prelude::*;

    fn builder() -> EnvelopeBuilder {
        let kind = Kind::new("email:welcome").expect("kind");
        Envelope::builder(QueueName::new("email").expect("queue"), kind)
    }

    fn stored(job: &Envelope) -> Bytes {
        [b"at=1764500000000 ", &encode(job)[..]].concat().into()
    }

    fn round_trip(job: &Envelope) -> Envelope {
        let record = decode(&job.queue, &job.id, stored(job)).expect("decodes");
        assert_eq!(record.enqueued_at.as_millis(), 1_764_500_000_000);
        record.envelope
    }

    #[test]
    fn a_plain_record_holds_only_what_differs_from_defaults() {
        let job = builder().payload("hi", Codec::MsgPack).build().expect("valid");
        let text = format!("fp={} kind=email:welcome\nhi", job.fingerprint);
        assert_eq!(encode(&job), text.as_bytes());
        assert_eq!(round_trip(&job), job);
    }

    #[test]
    fn every_field_comes_back() {
        let job = builder()
            .id(JobId::new("my-id").expect("id"))
            .payload(vec![0, 10, 255], Codec::Json)
            .version(3)
            .priority(9)
            .max_attempts(7)
            .timeout(Duration::from_secs(5))
            .retention(Duration::from_millis(1))
            .remember(Duration::from_millis(2))
            .deadline(When::At(Timestamp::from_millis(1_764_600_000_000)))
            .unique(Unique::key(b"user 42\n\xff~=").any_kind().mode(Mode::Debounce {
                window: Duration::from_millis(3),
                max_wait: Some(Duration::from_millis(4)),
            }))
            .partition(Partition::new("größe = 1").expect("partition"))
            .header("traceparent", "00-a b=c\n\0")
            .header("ü b=", "")
            .build()
            .expect("valid");
        assert_eq!(round_trip(&job), job);
    }

    #[test]
    fn unknown_fields_are_kept() {
        let job = builder().build().expect("valid");
        let mut record = String::from_utf8(stored(&job).to_vec()).expect("ASCII");
        record = record.replace(" kind=", " colour=r%20d kind=");
        let read = decode(&job.queue, &job.id, record.into()).expect("decodes").envelope;
        assert!(encode(&read).windows(14).any(|w| w == b" colour=r%20d\n"));
    }

    #[test]
    fn what_is_broken_is_named() {
        let job = builder().build().expect("valid");
        let whole = String::from_utf8(stored(&job).to_vec()).expect("ASCII");
        let cases = [
            ("", "no header line"),
            ("\n", "not name=value"),
            (&whole.replace("at=", "to="), "at is missing"),
            (&whole.replace("kind=", "kinder="), "kind is missing"),
            (&whole.replace("fp=", "fp=x"), "fp"),
            (&whole.replace(" kind", " priority=10 kind"), "priority"),
            (&whole.replace(" kind", " priority=+1 kind"), "priority"),
            (&whole.replace(" kind", " at=1 kind"), "twice"),
            (&whole.replace(" kind", " codec=xml kind"), "codec"),
            (&whole.replace(" kind", " unique=a kind"), "unique"),
            (&whole.replace(" kind", " header.x=%ff kind"), "header"),
        ];
        for (record, named) in cases {
            let record = Bytes::copy_from_slice(record.as_bytes());
            let error = decode(&job.queue, &job.id, record).expect_err(named).to_string();
            assert!(error.contains(named), "{error} should name {named}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused_without_a_panic(bytes: Vec<u8>, cut in 0usize..200) {
            let (queue, id) = (QueueName::new("q").expect("queue"), JobId::generate());
            let _ = decode(&queue, &id, bytes.clone().into());
            let mut nearly = stored(&builder().build().expect("valid")).to_vec();
            let at = cut.min(nearly.len());
            nearly.splice(at..at, bytes);
            let _ = decode(&queue, &id, nearly.into());
        }

        #[test]
        fn any_payload_key_and_header_round_trip(
            payload: Vec<u8>,
            key in proptest::collection::vec(any::<u8>(), 1..256),
            header: String,
            partition in "[^\\p{Cc}]{1,32}",
        ) {
            let partition = Partition::new(partition).expect("within its bound");
            let job = builder().payload(payload, Codec::Raw).unique(Unique::key(&key)).partition(partition);
            let job = job.header("h", header).build().expect("valid");
            prop_assert_eq!(round_trip(&job), job);
        }
    }
}
