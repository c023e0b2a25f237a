//! Stopping a worker: by its handle, by signals, from far.

use tokio_util::sync::CancellationToken;

/// Stops a worker from outside. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    quiet: CancellationToken,
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Shutdown {
    /// Claims nothing more; what runs goes on, and the worker lives until it is told to
    /// [`drain`](Shutdown::drain). There is no way back.
    pub fn quiet(&self) {
        self.quiet.cancel();
    }

    /// Claims nothing more, waits for running handlers up to the grace, tells those left to stop,
    /// puts their jobs back with no attempt spent, and ends.
    pub fn drain(&self) {
        // Last: whoever wakes by it sees the whole.
        self.drain.cancel();
        self.quiet.cancel();
    }

    /// Drains without grace: handlers are dropped at their next `.await`, their jobs put back, and
    /// calls to a store that does not answer are given up.
    pub fn abort(&self) {
        self.abort.cancel();
        self.drain();
    }

    /// Whether it claims nothing more.
    pub fn is_quiet(&self) -> bool {
        self.quiet.is_cancelled()
    }

    /// Whether it is about to end.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    pub(super) async fn quieted(&self) {
        self.quiet.cancelled().await;
    }

    pub(super) async fn draining(&self) {
        self.drain.cancelled().await;
    }

    pub(super) async fn aborted(&self) {
        self.abort.cancelled().await;
    }

    /// Aborts the worker if whoever runs it is dropped.
    pub(super) fn unless_dropped(&self) -> AbortOnDrop {
        AbortOnDrop(Some(self.clone()))
    }
}

pub(super) struct AbortOnDrop(Option<Shutdown>);

impl AbortOnDrop {
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(shutdown) = &self.0 {
            shutdown.abort();
        }
    }
}

/// Obeys the signals of a process: SIGTSTP quiets, SIGTERM and SIGINT drain, a second one aborts.
#[cfg(unix)]
pub(super) async fn obey_signals(shutdown: Shutdown) {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = || {
        let quiet = signal(SignalKind::from_raw(libc::SIGTSTP))?;
        Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, quiet))
    };
    let (mut term, mut int, mut quiet) = match listen() {
        Ok(signals) => signals,
        Err(error) => {
            let error: std::io::Error = error;
            return tracing::error!(%error, "cannot listen to signals; stop this worker by its handle");
        }
    };
    loop {
        tokio::select! {
            _ = quiet.recv() => {
                tracing::info!("SIGTSTP: claims nothing more");
                shutdown.quiet();
            }
            _ = term.recv() => stop(&shutdown),
            _ = int.recv() => stop(&shutdown),
        }
    }
}

/// Ctrl-C drains, a second one aborts.
#[cfg(not(unix))]
pub(super) async fn obey_signals(shutdown: Shutdown) {
    loop {
        if let Err(error) = tokio::signal::ctrl_c().await {
            return tracing::error!(%error, "cannot listen to signals; stop this worker by its handle");
        }
        stop(&shutdown);
    }
}

fn stop(shutdown: &Shutdown) {
    if shutdown.is_draining() {
        tracing::warn!("told again to stop: the grace is over");
        shutdown.abort();
    } else {
        tracing::info!("told to stop: draining");
        shutdown.drain();
    }
}
