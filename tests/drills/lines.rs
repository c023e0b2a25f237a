//! What is logged for operators to read: warnings and errors.

use std::sync::{Arc, Mutex, PoisonError};
use tracing::{Event, Level, Subscriber, field, subscriber::DefaultGuard};
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
};

/// The lines of this test's thread, which runs all of the test. None after the handle.
pub(crate) struct Lines {
    heard: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

struct Hear(Arc<Mutex<Vec<String>>>, Level);

struct Text(String);

impl field::Visit for Text {
    fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl<S: Subscriber> Layer<S> for Hear {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let about = event.metadata();
        if *about.level() <= self.1 && about.target().starts_with("sprag") {
            let mut text = Text(String::new());
            event.record(&mut text);
            // True of the rig's servers, and said of each at the first call: no fault's line.
            if text.0.contains("no append-only file") {
                return;
            }
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.0);
        }
    }
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self::up_to(Level::WARN)
    }

    pub(crate) fn up_to(level: Level) -> Self {
        let heard = Arc::default();
        let registry = Registry::default().with(Hear(Arc::clone(&heard), level));
        Self { heard, _guard: tracing::subscriber::set_default(registry) }
    }

    /// Those since the last look.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
