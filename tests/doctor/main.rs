//! `sprag doctor`: finds what somebody's hand has broken, mends it, and says nothing of a healthy
//! queue, however busy.
#![cfg(feature = "cli")]

#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "the doctor needs a part of it")]
mod program;
#[path = "../support/mod.rs"]
mod support;

mod busy;
mod planted;
mod server;
