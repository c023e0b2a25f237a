//! What the library logs while a test looks.

use std::{
    cell::RefCell,
    fmt::{self, Write},
    sync::Once,
};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::SubscriberExt};

thread_local! {
    static HEARD: RefCell<Option<Vec<(Level, String)>>> = const { RefCell::new(None) };
}

/// Hears this thread's log lines, until it is dropped. Each test has a thread of its own.
///
/// One subscriber for all of the process: with one per thread, tracing may take a line that another
/// thread reached first for one that nobody wants.
pub(crate) struct Logs(());

impl Logs {
    pub(crate) fn listen() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(Listener);
            tracing::subscriber::set_global_default(subscriber).expect("nobody else listens");
        });
        HEARD.set(Some(Vec::new()));
        Self(())
    }

    /// The warnings that have these words.
    pub(crate) fn warnings(&self, words: &str) -> usize {
        let warned =
            |(level, line): &&(Level, String)| *level == Level::WARN && line.contains(words);
        HEARD.with_borrow(|heard| heard.iter().flatten().filter(warned).count())
    }

    /// Everything.
    pub(crate) fn all(&self) -> String {
        let line = |(_, line): &(Level, String)| line.clone();
        HEARD.with_borrow(|heard| heard.iter().flatten().map(line).collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        HEARD.set(None);
    }
}

struct Listener;

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        HEARD.with_borrow_mut(|heard| {
            if let Some(heard) = heard {
                heard.push((*event.metadata().level(), line.0));
            }
        });
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
