//! What operators set for a queue.

use super::queue::Queue;
use crate::{
    model::State,
    store::{ARCHIVED_RETENTION, CANCELLED_RETENTION, CRASH_LIMIT, CRASH_WINDOW, Setting},
};
use std::{collections::HashMap, time::Duration};

/// The settings that differ from their defaults.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) limit: Option<u64>,
    pub(super) paused: bool,
    pub(super) max_archived: Option<u64>,
    retention: HashMap<State, Duration>,
    crash_limit: Option<u32>,
    crash_window: Option<Duration>,
}

impl Settings {
    pub(super) fn crash_limit(&self) -> u32 {
        self.crash_limit.unwrap_or(CRASH_LIMIT)
    }

    pub(super) fn crash_window(&self) -> Duration {
        self.crash_window.unwrap_or(CRASH_WINDOW)
    }

    /// How long a finished job is kept: a completed one as it says itself, others at least as long
    /// as their state says.
    pub(super) fn kept(&self, state: State, own: Option<Duration>) -> Duration {
        let of_state = self.retention.get(&state).copied().unwrap_or(match state {
            State::Archived | State::Quarantined => ARCHIVED_RETENTION,
            State::Cancelled => CANCELLED_RETENTION,
            _ => Duration::ZERO,
        });
        match (state, own) {
            (State::Completed, Some(own)) => own,
            (_, own) => of_state.max(own.unwrap_or_default()),
        }
    }
}

impl Queue {
    /// Changes a setting that was checked. Who waits looks again: there may be room, or work.
    pub(super) fn set(&mut self, setting: Setting) {
        let settings = &mut self.settings;
        match setting {
            Setting::Limit(limit) => {
                settings.limit = limit;
                self.wake = true;
            }
            Setting::Paused(paused) => {
                settings.paused = paused;
                self.wake |= !paused;
            }
            Setting::Retention(state, Some(kept)) => {
                settings.retention.insert(state, kept);
            }
            Setting::Retention(state, None) => {
                settings.retention.remove(&state);
            }
            Setting::MaxArchived(most) => settings.max_archived = most,
            Setting::CrashLimit(limit) => settings.crash_limit = limit,
            Setting::CrashWindow(window) => settings.crash_window = window,
        }
        self.made = true;
    }
}
