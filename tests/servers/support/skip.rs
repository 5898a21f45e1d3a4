//! Tests that a server gives no occasion for.

use std::{
    io::{self, Write as _},
    thread,
};

use super::RedisServer;
use crate::tally;

/// Says that the rest of a test does not apply to this server, and why: past the test runner, which
/// shows nothing of a test that passes, and in the record of what was checked.
pub(crate) fn skip(server: &RedisServer, reason: &str) {
    let (name, thread) = (server.name(), thread::current());
    let test = thread.name().unwrap_or_default();
    _ = writeln!(io::stderr(), "skipped on {name}: {test}: {reason}");
    tally::record(&[["skipped", name, test, reason]]).expect("a record that can be written");
}
