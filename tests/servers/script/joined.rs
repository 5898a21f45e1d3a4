use tollgate::Timestamp;

use super::{Found, Kept, Request, SOURCE, Script, wire};
use crate::support::{RedisServer, Value};

/// The crate's script, whole, with a clock of the test's own instead of the server's.
///
/// Keys do not expire, as the server's clock stands still by comparison. What the script would have
/// them do is in the [`Write`]s.
pub(crate) struct Joined(Script);

/// A key that the script wrote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Write {
    pub(crate) key: String,
    pub(crate) kept: Kept,
    /// In milliseconds.
    pub(crate) ttl: u64,
}

impl Joined {
    pub(crate) fn load(server: &RedisServer) -> Self {
        let around = include_str!("joined.lua");
        let (before, after) = around.split_once("-- the script\n").expect("the place is marked");
        Self(Script::load(server, &format!("{before}{SOURCE}{after}")))
    }

    /// What the script finds at `now`, and what it writes.
    ///
    /// # Panics
    ///
    /// If it uses a key that it was not given, reads one after it wrote another, hands the server
    /// a number to be made a text, or reports another time.
    pub(crate) fn acquire(
        &mut self,
        batch: &[Request<'_>],
        now: Timestamp,
    ) -> (Vec<Found>, Vec<Write>) {
        let micros = now.as_micros();
        // As the server has it: without leading zeros.
        let time = [(micros / 1_000_000).to_string(), (micros % 1_000_000).to_string()];
        let value = self.0.run(batch, &time);
        let Value::Array(pair) = value else { panic!("not a pair: {value:?}") };
        let [answer, Value::Array(written)] = pair.as_slice() else { panic!("not two: {pair:?}") };
        let (at, found) = wire::answer(answer, batch);
        assert_eq!(at, now, "the time that the script reports");
        (found, written.chunks(3).map(write).collect())
    }

    /// The server behind the script.
    pub(crate) fn server(&mut self) -> &mut Script {
        &mut self.0
    }
}

fn write(set: &[Value]) -> Write {
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => panic!("not a text: {value:?}"),
    };
    let [key, value, ttl] = set else { panic!("a value without expiry: {set:?}") };
    let ttl = text(ttl).parse().expect("a whole number of milliseconds");
    // A log that was emptied would be gone, and its expiry with it.
    let kept = Kept::read(value).expect("a value");
    Write { key: text(key), kept, ttl }
}
