use std::{thread, time::Instant};

use tracing::Level;

use crate::support::{Event, Log};

#[test]
fn a_local_log_has_this_threads_events() {
    let before = Instant::now();
    let log = Log::local();
    let outer = tracing::info_span!("outer", port = 1, later = tracing::field::Empty);
    outer.record("later", "x");
    outer.in_scope(|| tracing::warn!(target: "store", cause = "timeout", tries = 2, "gave up"));
    thread::scope(|scope| {
        scope.spawn(|| tracing::warn!("gave up elsewhere"));
    });

    let events: Vec<Event> = log.with("gave up");
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!((event.level, event.target.as_str()), (Level::WARN, "store"));
    assert_eq!(event.text, "gave up cause=timeout tries=2");
    assert_eq!(event.spans, "outer port=1 later=x");
    assert!(before <= event.at);
}

#[test]
fn a_global_log_has_all_threads_events_since_it_was_made() {
    let earlier = Log::global();
    tracing::info!("to port 4711");
    let log = Log::global();
    thread::scope(|scope| {
        scope.spawn(|| tracing::info!("back from port 4711"));
    });

    assert_eq!(earlier.with("port 4711").len(), 2);
    assert_eq!(log.with("port 4711").len(), 1);
    assert_eq!(log.with("port 4712").len(), 0);
}
