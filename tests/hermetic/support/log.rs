use std::{
    fmt::{self, Write},
    sync::{Arc, Mutex, Once},
};

use tracing::{
    Level, Subscriber,
    field::{Field, Visit},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
};

/// What this thread logs, until dropped: for tests on a current-thread runtime.
#[derive(Debug)]
pub(crate) struct Log {
    record: Record,
    _guard: DefaultGuard,
}

impl Log {
    pub(crate) fn start() -> Self {
        // Where only one thread listens, what another one logs first is taken to interest nobody.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            let _ = tracing::subscriber::set_global_default(Registry::default());
        });
        let record = Record::default();
        let subscriber = Registry::default().with(record.clone());
        Self { record, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// All events, oldest first: the level, then the message and fields as `name=value`.
    pub(crate) fn events(&self) -> Vec<(Level, String)> {
        self.record.0.lock().unwrap().clone()
    }

    /// The events that somebody sees who did not ask for debugging.
    pub(crate) fn notices(&self) -> Vec<(Level, String)> {
        let mut events = self.events();
        events.retain(|(level, _)| *level <= Level::INFO);
        events
    }
}

#[derive(Clone, Debug, Default)]
struct Record(Arc<Mutex<Vec<(Level, String)>>>);

impl<S: Subscriber> Layer<S> for Record {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if !event.metadata().target().starts_with("tollgate") {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }
}

/// A message with fields.
#[derive(Debug, Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}{}", self.0);
        } else {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}
