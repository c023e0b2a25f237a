//! What a redis-rs error means: which [`StoreError`] it is, and what to do with the connection.
//!
//! The table behind it was seen by running each fault against redis-rs 1.8.

use crate::model::StoreError;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::{error::Error, sync::Arc};

/// How the text of a timeout begins.
pub(super) const NO_ANSWER: &str = "no answer in time";

/// A call that got no answer from its script.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    /// The call may have been applied.
    pub(super) sent: bool,
    /// The user may not run the command, or not on this key.
    pub(super) forbidden: bool,
    /// The connection may be dead, out of step, or lead to the wrong server: get a new one.
    pub(super) discard: bool,
    /// It answers, but another server is the one to ask.
    pub(super) wrong_server: bool,
    /// The script is not in the server's cache.
    pub(super) no_script: bool,
    /// Another node of the cluster is the one to ask.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "clusters redirect"))]
    pub(super) redirect: Option<Redirect>,
}

/// Where a node of a cluster sends a command that it did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "clusters redirect"))]
pub(super) struct Redirect {
    pub(super) slot: u16,
    /// `host:port`; no host means that of the node that says so.
    pub(super) to: String,
    /// For this command only: the slot is about to move.
    pub(super) ask: bool,
}

impl Fault {
    /// The same call may be repeated: a later one can succeed, and a repeat does nothing twice.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.error, StoreError::Unavailable(_))
    }

    /// The call was not sent, or not taken: it was certainly not applied.
    pub(super) fn unsent(mut self) -> Self {
        self.sent = false;
        self
    }

    /// Says which server it is about: an address has no secrets.
    pub(super) fn at(mut self, server: impl std::fmt::Display) -> Self {
        let server = server.to_string();
        if let StoreError::Unavailable(why) | StoreError::Backend(why) = &mut self.error
            && !why.starts_with(&server)
        {
            *why = format!("{server}: {why}");
        }
        self
    }

    /// Adds what helps, if anything does.
    pub(super) fn hinted(mut self, hint: &str) -> Self {
        if let StoreError::Unavailable(why) | StoreError::Backend(why) = &mut self.error {
            why.push_str(hint);
        }
        self
    }

    pub(super) fn unavailable(why: impl Into<String>) -> Self {
        let error = StoreError::Unavailable(why.into());
        Self { discard: true, ..Self::refused(error) }
    }

    /// Nothing that time or another connection mends.
    pub(super) fn refused(error: StoreError) -> Self {
        Self {
            error,
            sent: true,
            forbidden: false,
            discard: false,
            wrong_server: false,
            no_script: false,
            redirect: None,
        }
    }

    /// What went wrong with a connection before it was one: a certificate that is not trusted is told
    /// from a server that is away, and what a server does that has no room is told.
    pub(super) fn while_connecting(error: RedisError) -> Self {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, InvalidData, UnexpectedEof};
        let text = describe(&error);
        match io_kind(&error) {
            Some(InvalidData) => {
                let hint = "check ca=, cert= and key= in the URL, and the host's name";
                Self::refused(StoreError::Backend(format!("TLS: {text} ({hint})")))
            }
            Some(ConnectionReset | UnexpectedEof | BrokenPipe) => Self::unavailable(format!(
                "{text} (does the server want TLS, rediss://? Or has it reached its maxclients?)"
            )),
            _ => Self::from(error),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}

/// Codes with which a server says that it cannot serve now.
const CANNOT_SERVE: [&str; 12] = [
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
    "UNBLOCKED",
];

/// Codes with which a server says that it has not begun with a script.
const NOT_BEGUN: [&str; 11] = [
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "NOREPLICAS",
    "NOAUTH",
    "NOSCRIPT",
];

/// Those of them that mean: another server is the one to ask.
const WRONG_SERVER: [&str; 3] = ["READONLY", "NOREPLICAS", "UNBLOCKED"];

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        let text = describe(&error);
        let code = error.code().unwrap_or_default();
        let redirect = error.redirect_node().map(|(to, slot)| Redirect {
            slot,
            to: to.to_owned(),
            ask: code == "ASK",
        });
        let unavailable = match error.kind() {
            // Parse: a reply that was cut off. Whether the script ran is not known.
            ErrorKind::Io | ErrorKind::Parse => return Self::unavailable(text),
            _ => CANNOT_SERVE.contains(&code),
        };
        let error_is = if unavailable { StoreError::Unavailable } else { StoreError::Backend };
        let wrong_server = WRONG_SERVER.contains(&code);
        Self {
            sent: !NOT_BEGUN.contains(&code),
            forbidden: text.contains("NOPERM"),
            discard: wrong_server,
            wrong_server,
            no_script: error.kind() == ErrorKind::Server(ServerErrorKind::NoScript),
            redirect,
            ..Self::refused(error_is(text))
        }
    }
}

fn io_kind(error: &RedisError) -> Option<std::io::ErrorKind> {
    let inner = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    inner.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
}

/// The server's words on one line, with a hint where they do not say what is meant.
fn describe(error: &RedisError) -> String {
    // A server's error as the server said it: redis-rs puts its code between quotes.
    let said = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    };
    let text = said.replace(['\r', '\n'], " ");
    match error.code() {
        _ if error.is_timeout() => NO_ANSWER.to_owned(),
        _ if error.kind() == ErrorKind::AuthenticationFailed => {
            "the server refuses user and password (WRONGPASS), or has none (check user and password)".to_owned()
        }
        Some("READONLY") => {
            format!("{text} (a replica: the URL should lead to the master, or to redis+sentinel://)")
        }
        Some("BUSY") => format!("{text} (a script of somebody else: SLOWLOG, SCRIPT KILL)"),
        Some("OOM") => format!("{text} (raise maxmemory, or let workers work off what there is)"),
        Some("NOREPLICAS") => format!("{text} (min-replicas-to-write: see INFO replication)"),
        Some("MOVED" | "ASK") => format!("{text} (a cluster: is the URL redis+cluster://?)"),
        Some("NOAUTH" | "WRONGPASS") => format!("{text} (check user and password)"),
        _ if text.contains("without any password configured") => {
            format!("{text} (the server has no password: check user and password)")
        }
        // So a long command is answered where NOAUTH would be the answer to a short one.
        _ if text.contains("Protocol error: unauthenticated") => {
            format!("{text} (the server wants a password)")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(line: &str) -> Fault {
        let parsed = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("RESP");
        Fault::from(parsed.extract_error().expect_err("an error"))
    }

    #[test]
    fn a_server_that_cannot_serve_now_is_unavailable() {
        for code in CANNOT_SERVE {
            let fault = server(&format!("{code} some words"));
            assert!(fault.may_pass(), "{code}: {fault:?}");
            assert_eq!(fault.discard, WRONG_SERVER.contains(&code), "{code}");
        }
    }

    #[test]
    fn what_a_repeat_cannot_mend_is_backend() {
        for line in ["WRONGTYPE x", "NOPERM x", "ERR x", "NOAUTH x", "WRONGPASS x", "CROSSSLOT x"] {
            let fault = server(line);
            assert!(
                matches!(fault.error, StoreError::Backend(_)) && !fault.may_pass(),
                "{fault:?}"
            );
        }
        assert!(server("NOSCRIPT No matching script.").no_script);
    }

    #[test]
    fn a_server_s_words_are_told_as_it_said_them() {
        for line in ["WRONGTYPE Operation against a key", "ERR unknown command", "LOADING soon"] {
            let error = server(line).error.to_string();
            assert!(error.ends_with(&format!(": {line}")), "{error}");
        }
        // A code alone says what it can.
        assert!(server("NEVERHEARD").error.to_string().contains("NEVERHEARD"));
    }

    #[test]
    fn a_server_that_wants_a_password_is_told_from_a_broken_one() {
        let fault = server("ERR Protocol error: unauthenticated bulk length");
        let text = fault.error.to_string();
        assert!(text.ends_with("(the server wants a password)") && !fault.may_pass(), "{text}");
    }

    #[test]
    fn a_broken_connection_is_unavailable_and_not_used_again() {
        let kinds = [std::io::ErrorKind::BrokenPipe, std::io::ErrorKind::ConnectionRefused];
        for kind in kinds {
            let fault = Fault::from(RedisError::from(std::io::Error::from(kind)));
            assert!(fault.may_pass() && fault.discard, "{fault:?}");
        }
        let cut = redis::parse_redis_value(b"$5\r\nab").expect_err("half a reply");
        assert!(Fault::from(cut).may_pass());
    }
}
