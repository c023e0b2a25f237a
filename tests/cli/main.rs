//! The `sprag` command as a program: what it prints, what it answers, what it leaves behind.
#![cfg(feature = "cli")]

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod bulk;
mod config;
mod damaged;
mod demo;
mod enqueue;
mod envelope;
mod help;
mod look;
mod outside;
mod password;
mod program;
mod quarantine;
mod queues;
mod script;
mod settle;
mod shapes;
mod steer;
mod top;
mod undelivered;
mod unique;
mod work;
mod workers;
