//! A record of what was logged.

use std::{
    fmt::{self, Write},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use tracing::{
    Level, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

/// One event. Displays as `LEVEL target: message field=value [span field=value]`.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) level: Level,
    pub(crate) target: String,
    /// The message, then the fields as `name=value`.
    pub(crate) text: String,
    /// The spans around it with their fields, outermost first.
    pub(crate) spans: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {} [{}]", self.level, self.target, self.text, self.spans)
    }
}

/// The events that were logged since it was made.
#[derive(Debug)]
pub(crate) struct Log {
    recorder: Recorder,
    start: usize,
    _guard: Option<DefaultGuard>,
}

impl Log {
    /// Records what this thread logs, until dropped: for tests on a current-thread runtime.
    pub(crate) fn local() -> Self {
        // Where only one thread listens, what another one logs first is taken to interest nobody.
        drop(Self::global());
        let recorder = Recorder::default();
        let subscriber = Registry::default().with(recorder.clone());
        let guard = tracing::subscriber::set_default(subscriber);
        Self { recorder, start: 0, _guard: Some(guard) }
    }

    /// Records what the whole process logs from now on, other tests included, except on threads
    /// with a [`local`](Self::local) log. Look for something that is the test's own, such as
    /// a port or a limit's name.
    pub(crate) fn global() -> Self {
        static RECORDER: OnceLock<Recorder> = OnceLock::new();
        let recorder = RECORDER.get_or_init(|| {
            let recorder = Recorder::default();
            let subscriber = Registry::default().with(recorder.clone());
            tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
            recorder
        });
        Self { start: recorder.events().len(), recorder: recorder.clone(), _guard: None }
    }

    /// The events whose displayed form contains `part`, oldest first.
    pub(crate) fn with(&self, part: &str) -> Vec<Event> {
        let events = self.recorder.events();
        let since = events[self.start..].iter();
        since.filter(|event| event.to_string().contains(part)).cloned().collect()
    }
}

/// The layer that fills the record. Clones share it.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<Event>>>);

impl Recorder {
    fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id) {
            let mut text = Text(span.name().to_owned());
            attributes.record(&mut text);
            span.extensions_mut().insert(text);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, ctx: Context<'_, S>) {
        if let Some(span) = ctx.span(id)
            && let Some(text) = span.extensions_mut().get_mut::<Text>()
        {
            values.record(text);
        }
    }

    fn on_event(&self, event: &tracing::Event<'_>, ctx: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let spans: Vec<_> = ctx
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .filter_map(|span| span.extensions().get::<Text>().map(|text| text.0.clone()))
            .collect();
        self.events().push(Event {
            at: Instant::now(),
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            text: text.0,
            spans: spans.join(", "),
        });
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
            _ = write!(self.0, " {}={value:?}", field.name());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}
