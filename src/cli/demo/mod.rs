use crate::{args::Global, fail::Failure};
use std::process::ExitCode;
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Part {
    Producer,
}
pub(crate) async fn demo(_g: &Global) -> Result<ExitCode, Failure> {
    Ok(ExitCode::SUCCESS)
}
pub(crate) async fn part(_g: &Global, _p: Part) -> Result<(), Failure> {
    Ok(())
}
