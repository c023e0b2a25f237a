//! What a command's end means for its job.

use super::child::Ended;
use crate::payload::raw_json;
use sprag::{
    Verdict,
    worker::{Answer, BoxError},
};
use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

/// `EX_DATAERR` of sysexits.h: the input was wrong.
const DATA_ERROR: i32 = 65;
/// `EX_TEMPFAIL` of sysexits.h: try again later.
const TRY_LATER: i32 = 75;

pub(super) fn of(ended: Ended, snooze: Duration) -> Result<Answer, BoxError> {
    match ended.status.code() {
        Some(0) => result(&ended),
        Some(TRY_LATER) => Err(Verdict::snooze(snooze).into()),
        Some(DATA_ERROR) => Err(Verdict::undecodable(said(&ended)).into()),
        _ => Err(said(&ended).into()),
    }
}

/// JSON as it is, other text as a JSON string, nothing as no result.
fn result(ended: &Ended) -> Result<Answer, BoxError> {
    if ended.stdout_overflowed {
        tracing::warn!("a command printed more than 64 KiB; its job has no result");
        return Ok(Answer::NONE);
    }
    let text = String::from_utf8_lossy(&ended.stdout);
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Ok(Answer::NONE);
    }
    Ok(match raw_json(text) {
        Some(json) => Answer::json(&json)?,
        None => Answer::json(&text)?,
    })
}

/// The end of stderr, and how the command ended.
fn said(ended: &Ended) -> String {
    let how = how(ended.status);
    let stderr = String::from_utf8_lossy(&ended.stderr_end);
    match stderr.trim() {
        "" => how,
        stderr => format!("{stderr}\n({how})"),
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(wait_status: i32, stdout: &str, stderr: &str) -> Ended {
        Ended {
            status: ExitStatus::from_raw(wait_status),
            stdout: stdout.into(),
            stdout_overflowed: false,
            stderr_end: stderr.into(),
        }
    }

    fn error(wait_status: i32, stderr: &str) -> String {
        let said = of(ended(wait_status, "", stderr), Duration::from_secs(1));
        said.expect_err("no success").to_string()
    }

    #[test]
    fn what_is_printed_is_the_result() {
        let result = |stdout| of(ended(0, stdout, ""), Duration::from_secs(1)).expect("success");
        assert_eq!(result(""), Answer::NONE);
        assert_eq!(result("\n"), Answer::NONE);
        assert_eq!(
            result("{\"a\":1}\n"),
            Answer::json(&serde_json::json!({"a": 1})).expect("json")
        );
        assert_eq!(result("two\nlines\n"), Answer::json(&"two\nlines").expect("json"));
    }

    #[test]
    fn how_it_ended_is_said_after_the_end_of_stderr() {
        assert_eq!(error(1 << 8, "no such user\n"), "no such user\n(exit code 1)");
        assert_eq!(error(9, ""), "killed by signal 9");
        assert_eq!(error(DATA_ERROR << 8, "odd"), "odd\n(exit code 65)");
    }
}
