//! Users of Redis who have a role's published rules and no more: what they do passes without one
//! refusal; who lacks a command is told which at the first call, and nothing is written.
#![cfg(feature = "cli")]

#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod program;
#[path = "../support/mod.rs"]
mod support;

mod again;
mod command;
mod lacks;
mod layout;
mod passes;
mod user;
