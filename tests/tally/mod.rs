//! A record of what was checked where, of which `tests/run --all` makes its table.
//!
//! It goes to the file that `TOLLGATE_TALLY` names. Without that, nothing is recorded.

#![cfg(test)]

use std::{
    collections::BTreeMap,
    env,
    fs::OpenOptions,
    io::{self, Write as _},
    thread,
};

use tollgate::algorithm::{Meter, Span};

/// The column of requests to limits of several algorithms.
const MIXED: &str = "mixed";

/// The column of an algorithm.
fn column(meter: Meter) -> &'static str {
    match meter {
        Meter::TokenBucket(_) => "token bucket",
        Meter::SlidingLog(_) => "sliding log",
        Meter::SlidingCounter(_) => "sliding counter",
        Meter::FixedWindow(window) => match window.span() {
            Span::Calendar(_) => "calendar",
            _ => "fixed window",
        },
        // It stands beside another.
        Meter::Lock(_) => MIXED,
        other => panic!("no column for {other:?}"),
    }
}

/// Counts the decisions of a store that a test compares with what they must be.
///
/// They are recorded when it is dropped. In a test that fails, `mixed` is recorded as failed instead if
/// there was any such request, or else the column of the last one.
#[derive(Debug)]
pub(crate) struct Tally {
    store: String,
    counts: BTreeMap<&'static str, usize>,
    last: &'static str,
}

impl Tally {
    /// Of the store of this name, which is a row of the table.
    pub(crate) fn of(store: impl Into<String>) -> Self {
        Self { store: store.into(), counts: BTreeMap::new(), last: MIXED }
    }

    /// Counts one request to such limits.
    pub(crate) fn request(&mut self, limits: impl IntoIterator<Item = Meter>) {
        let mut columns = limits.into_iter().map(column);
        let first = columns.next().unwrap_or(MIXED);
        self.last = if columns.all(|other| other == first) { first } else { MIXED };
        *self.counts.entry(self.last).or_default() += 1;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if thread::panicking() {
            let column = if self.counts.contains_key(MIXED) { MIXED } else { self.last };
            // A second panic would hide the first.
            _ = record(&[["failed", &self.store, column]]);
            return;
        }
        let counts: Vec<_> =
            self.counts.iter().map(|(column, count)| (column, count.to_string())).collect();
        let lines: Vec<_> =
            counts.iter().map(|(column, count)| ["checked", &self.store, column, count]).collect();
        record(&lines).expect("TOLLGATE_TALLY names a file that can be written");
    }
}

/// Appends lines of several fields each.
pub(crate) fn record<L: AsRef<[F]>, F: AsRef<str>>(lines: &[L]) -> io::Result<()> {
    let Some(path) = env::var_os("TOLLGATE_TALLY") else { return Ok(()) };
    let fields = |line: &L| line.as_ref().iter().map(AsRef::as_ref).collect::<Vec<_>>().join("\t");
    let text: String = lines.iter().map(|line| fields(line) + "\n").collect();
    // In one write, as other tests append to it as well.
    OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}
