//! `sprag completions` and `sprag man`: made of the grammar itself.

use crate::{args::Args, fail::Failure, out};
use clap::CommandFactory;
use sprag::StoreError;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    // Into memory first: written straight to a pipe that nobody reads, it panics.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "sprag", &mut script);
    out::bytes(&script)
}

pub(crate) fn manual(words: &[String]) -> Result<(), Failure> {
    let mut all = Args::command();
    // Gives each command its whole name and the flags of all.
    all.build();
    let mut found = &all;
    for word in words {
        found = found.find_subcommand(word).ok_or_else(|| {
            StoreError::Invalid(format!("command: there is no {}", words.join(" ")))
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).render(&mut page)?;
    out::bytes(&page)
}
