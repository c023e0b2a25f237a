//! Lets one try to connect pass per back-off, whoever asks: no storm when a server is away.

use crate::store::redis::{call::less_up_to_half, fault::Fault};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Waits between tries: from the first, doubling up to the last, less up to a half.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// The same after a refusal that time alone does not mend: a wrong password, a setting.
const REFUSED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// A log line about a server at most so often.
const LOG_PAUSE: Duration = Duration::from_secs(3);
/// A server that did not serve may well answer what asks for no service (`INFO`, what a user may do): so
/// long after it, answers say nothing. Longer than the longest wait between tries.
const IN_DOUBT: Duration = Duration::from_secs(3);

/// In front of one server. Shared by all connections to it: away for one, it is away for all.
#[derive(Default)]
pub(super) struct Gate {
    /// Failures since the last answer.
    failures: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Until when, and with what, those who ask are turned away.
    closed: Option<(Instant, Fault)>,
    logged_at: Option<Instant>,
    /// When it last answered that another server is the one to ask.
    unserved_at: Option<Instant>,
}

impl State {
    fn is_in_doubt(&self) -> bool {
        self.unserved_at.is_some_and(|at| at.elapsed() < IN_DOUBT)
    }

    /// Whether it is time for a log line.
    fn may_log(&mut self) -> bool {
        let now = Instant::now();
        let may = self.logged_at.is_none_or(|at| now.duration_since(at) >= LOG_PAUSE);
        if may {
            self.logged_at = Some(now);
        }
        may
    }
}

impl Gate {
    /// Lets a try through, or says why not now.
    pub(super) fn pass(&self) -> Result<(), Fault> {
        let mut state = self.lock();
        match &mut state.closed {
            Some((until, fault)) if Instant::now() < *until => Err(fault.clone()),
            // One tries for all: the others wait, as if this try had failed already.
            Some((until, fault)) => {
                *until = Instant::now() + pause(self.failures(), fault);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A try failed.
    pub(super) fn failed(&self, fault: &Fault, server: &str) {
        let mut state = self.lock();
        let failures = self.failures();
        state.closed = Some((Instant::now() + pause(failures, fault), fault.clone()));
        self.failures.store(failures.saturating_add(1), Ordering::Relaxed);
        if state.may_log() {
            tracing::warn!(server, error = %fault.error, tries = failures + 1,
                "cannot connect to Redis; trying again with back-off");
        }
    }

    /// A connection was lost, or leads to a server that does not serve. Once is no reason to wait.
    pub(super) fn lost(&self, fault: &Fault, server: &str) {
        let mut state = self.lock();
        let failures = self.failures();
        self.failures.store(failures.saturating_add(1), Ordering::Relaxed);
        if fault.wrong_server {
            state.unserved_at = Some(Instant::now());
        }
        if failures > 0 {
            state.closed = Some((Instant::now() + pause(failures - 1, fault), fault.clone()));
        }
        if state.may_log() {
            tracing::warn!(server, error = %fault.error,
                "connection to Redis given up; connecting anew at the next call");
        }
    }

    /// A new connection was answered on: whoever else wants one need not wait as if that try had failed.
    /// Whether commands are served is not known yet: the back-off goes on where it was if they are not.
    pub(super) fn reached(&self) {
        if self.failures() > 0 {
            let mut state = self.lock();
            if !state.is_in_doubt() {
                state.closed = None;
            }
        }
    }

    /// The server answered: what was before is forgotten. Costs nothing when nothing was.
    pub(super) fn answered(&self) {
        if self.failures() > 0 {
            let mut state = self.lock();
            if state.is_in_doubt() {
                return;
            }
            self.failures.store(0, Ordering::Relaxed);
            (state.closed, state.unserved_at) = (None, None);
        }
    }

    /// How often the server failed since its last answer.
    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing behind this lock can be left half-done by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pause(failures: u32, fault: &Fault) -> Duration {
    let (first, last) = if fault.may_pass() { BACKOFF } else { REFUSED };
    less_up_to_half(first.saturating_mul(1 << failures.min(10)).min(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StoreError;
    use tokio::time::{advance, sleep};

    /// How many tries pass within ten seconds, asked every ms, if each fails so.
    async fn tries(fault: Fault, fails: fn(&Gate, &Fault)) -> u32 {
        let (gate, mut tries) = (Gate::default(), 0);
        for _ in 0..10_000 {
            if gate.pass().is_ok() {
                tries += 1;
                fails(&gate, &fault);
            }
            advance(Duration::from_millis(1)).await;
        }
        tries
    }

    #[tokio::test(start_paused = true)]
    async fn an_absent_server_is_tried_at_most_twenty_times_in_ten_seconds() {
        let away = || Fault::unavailable("refused");
        assert!((8..=20).contains(&tries(away(), |gate, fault| gate.failed(fault, "h")).await));
        // Also one that takes connections, and answers READONLY each time.
        assert!((8..=20).contains(&tries(away(), |gate, fault| gate.lost(fault, "h")).await));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_and_does_not_serve_is_tried_as_seldom() {
        let fault = Fault { wrong_server: true, ..Fault::unavailable("READONLY") };
        let answers_first = |gate: &Gate, fault: &Fault| {
            gate.answered();
            gate.lost(fault, "h");
        };
        assert!((8..=20).contains(&tries(fault, answers_first).await));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_reached_and_fails_its_first_command_is_tried_as_seldom() {
        let reached_first = |gate: &Gate, fault: &Fault| {
            gate.reached();
            gate.lost(fault, "h");
        };
        let fault = Fault::unavailable("broken pipe");
        assert!((8..=20).contains(&tries(fault, reached_first).await));
    }

    #[tokio::test(start_paused = true)]
    async fn who_reaches_the_server_opens_the_gate_for_the_others() {
        let (gate, fault) = (Gate::default(), Fault::unavailable("refused"));
        for _ in 0..10 {
            gate.failed(&fault, "h");
        }
        sleep(BACKOFF.1).await;
        assert!(gate.pass().is_ok());
        assert!(gate.pass().is_err(), "one tries for all");
        gate.reached();
        assert!(gate.pass().is_ok() && gate.pass().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_serves_again_is_trusted_after_three_seconds() {
        let (gate, fault) = (Gate::default(), Fault::unavailable("READONLY"));
        for _ in 0..10 {
            gate.lost(&Fault { wrong_server: true, ..fault.clone() }, "h");
        }
        gate.answered();
        assert!(gate.pass().is_err());
        sleep(IN_DOUBT).await;
        gate.answered();
        assert_eq!(gate.failures(), 0);
        assert!(gate.pass().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_password_is_tried_at_most_a_dozen_times_in_ten_seconds() {
        let error = StoreError::Backend("wrong password".into());
        let fault = Fault { error, ..Fault::unavailable("") };
        assert!((3..=12).contains(&tries(fault, |gate, fault| gate.failed(fault, "h")).await));
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_loss_is_no_reason_to_wait() {
        let (gate, fault) = (Gate::default(), Fault::unavailable("reset"));
        gate.lost(&fault, "h");
        assert!(gate.pass().is_ok());
        gate.lost(&fault, "h");
        assert!(gate.pass().is_err());
        sleep(BACKOFF.0).await;
        assert!(gate.pass().is_ok());
        gate.answered();
        gate.lost(&fault, "h");
        assert!(gate.pass().is_ok(), "forgotten");
    }
}
