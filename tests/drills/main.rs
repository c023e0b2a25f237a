//! What happens to a service that works while its Redis fails over, moves, is cut off or goes away.
//!
//! Each drill has producers and a worker at work the whole time, does one thing to the servers, and
//! then sees that work flowed again soon, that nobody stormed the servers or the log meanwhile, and
//! that every acknowledged job was run. `shift` is who works, `tries` counts who came knocking,
//! `lines` what was logged; every other module is a kind of fault.

#[path = "../support/mod.rs"]
mod support;

mod lines;
mod shift;
mod tries;

mod blocked;
mod cut;
mod demoted;
mod failed_over;
mod handed_over;
mod loading;
mod lost_node;
mod moved;
mod not_let_in;
mod others_go_on;
mod refused;
mod replicated;
mod silent;
mod unanswered;
mod unreachable;
