//! W3C trace context: which trace a job belongs to.

use crate::model::StoreError;
use std::{fmt, str::FromStr};

/// The header that carries it.
pub(crate) const HEADER: &str = "traceparent";

tokio::task_local! {
    /// The span of the handler that runs in this task.
    static CURRENT: TraceParent;
}

/// The value of a `traceparent` header (W3C Trace Context, version 00): trace id, span id, flags.
///
/// ```
/// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let parent: sprag::TraceParent = parent.parse().expect("well-formed");
/// assert_eq!(parent.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// assert_eq!(parent.child().trace_id(), parent.trace_id());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

impl TraceParent {
    /// Begins a trace, sampled.
    pub fn generate() -> Self {
        let (trace_id, span_id) = (fastrand::u128(1..), fastrand::u64(1..));
        Self { trace_id, span_id, flags: 1 }
    }

    /// Another span of the same trace.
    pub fn child(&self) -> Self {
        Self { span_id: fastrand::u64(1..), ..*self }
    }

    /// 32 lowercase hex digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// 16 lowercase hex digits.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span_id)
    }

    /// Whether whoever began the trace keeps it.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// The span of the handler in whose task this is called: what a job enqueued there belongs to.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|current| *current).ok()
    }

    /// Runs a handler inside its span.
    pub(crate) async fn scope<T>(span: Option<Self>, handler: impl Future<Output = T>) -> T {
        match span {
            Some(span) => CURRENT.scope(span, handler).await,
            None => handler.await,
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

impl FromStr for TraceParent {
    type Err = StoreError;

    /// Later versions are read as version 00, as the recommendation says.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        read(text).ok_or_else(|| {
            let bound = "version-traceid-spanid-flags in lowercase hex, as by W3C Trace Context";
            StoreError::invalid(HEADER, format!("{text:?}"), bound)
        })
    }
}

fn read(text: &str) -> Option<TraceParent> {
    let is_hex = |part: &&str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let of_length = |part: Option<&'_ str>, length| {
        part.filter(|part| part.len() == length && is_hex(part)).map(str::to_owned)
    };
    let mut parts = text.split('-');
    let version = of_length(parts.next(), 2).filter(|version| version != "ff")?;
    let trace_id = u128::from_str_radix(&of_length(parts.next(), 32)?, 16).ok()?;
    let span_id = u64::from_str_radix(&of_length(parts.next(), 16)?, 16).ok()?;
    let flags = u8::from_str_radix(&of_length(parts.next(), 2)?, 16).ok()?;
    let whole = version != "00" || parts.next().is_none();
    (whole && trace_id != 0 && span_id != 0).then_some(TraceParent { trace_id, span_id, flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_ones_round_trip_and_others_are_refused() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(good.parse::<TraceParent>().map(|p| p.to_string()), Ok(good.to_owned()));
        for bad in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert!(bad.parse::<TraceParent>().is_err(), "{bad:?}");
        }
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert!(later.parse::<TraceParent>().is_ok());
    }

    #[tokio::test]
    async fn the_span_of_a_handler_is_seen_inside_it_alone() {
        let span = TraceParent::generate();
        assert_eq!(
            TraceParent::scope(Some(span), async { TraceParent::current() }).await,
            Some(span)
        );
        assert_eq!(TraceParent::current(), None);
    }
}
