//! Asks before much is changed.

use crate::{args::Global, fail::Failure, out};
use anyhow::anyhow;
use sprag::StoreError;
use std::io::{IsTerminal, Write};

/// Goes on if it was said before by `--yes`, or is said now on a terminal.
pub(crate) fn confirm(global: &Global, what: &str) -> Result<(), Failure> {
    if global.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let text = format!("--yes: is missing, and nobody is there to be asked: {what}?");
        return Err(StoreError::Invalid(text).into());
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{}? [y/N] ", out::visible(what))?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Other(anyhow!("nothing was done"))),
    }
}
