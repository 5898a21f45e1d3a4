use tollgate::{Timestamp, store::Refund};

use super::{Found, Kept, REFUND, Request, SOURCE, Script, wire};
use crate::support::{RedisServer, Value};

/// The crate's script, whole, with a clock of the test's own instead of the server's.
///
/// Keys do not expire, as the server's clock stands still by comparison. What the script would have
/// them do is in the [`Write`]s.
pub(crate) struct Joined {
    acquire: Script,
    /// The name of the other script, on the same connection.
    refund: String,
}

/// A key that the script wrote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Write {
    pub(crate) key: String,
    pub(crate) kept: Kept,
    /// The second at which it expires, since the Unix epoch.
    pub(crate) until: u64,
}

impl Joined {
    pub(crate) fn load(server: &RedisServer) -> Self {
        let around = include_str!("joined.lua");
        let (before, after) = around.split_once("-- the script\n").expect("the place is marked");
        let mut acquire = Script::load(server, &format!("{before}{SOURCE}{after}"));
        let Value::Text(refund) =
            acquire.command(&["SCRIPT", "LOAD", &format!("{before}{REFUND}{after}")])
        else {
            panic!("no name of a script")
        };
        Self { acquire, refund }
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
        let value = self.acquire.run(batch, &time(now));
        let (answer, written) = both(&value);
        let (at, found) = wire::answer(answer, batch);
        assert_eq!(at, now, "the time that the script reports");
        (found, written)
    }

    /// What the script that gives back writes at `now`.
    ///
    /// # Panics
    ///
    /// As [`acquire`](Self::acquire), and if a key holds something else.
    pub(crate) fn refund(&mut self, refunds: &[Refund<'_>], now: Timestamp) -> Vec<Write> {
        let value = self.acquire.run_refund(&self.refund, refunds, &time(now));
        let (answer, written) = both(&value);
        let mut expected = vec![Value::Integer(now.as_micros().try_into().unwrap())];
        expected.resize(1 + refunds.len(), Value::Integer(1));
        assert_eq!(*answer, Value::Array(expected), "what the script answers");
        written
    }

    /// The server behind the script.
    pub(crate) fn server(&mut self) -> &mut Script {
        &mut self.acquire
    }
}

/// As the server has it: without leading zeros.
fn time(now: Timestamp) -> [String; 2] {
    let micros = now.as_micros();
    [(micros / 1_000_000).to_string(), (micros % 1_000_000).to_string()]
}

/// The script's answer, and what it wrote.
fn both(value: &Value) -> (&Value, Vec<Write>) {
    let Value::Array(pair) = value else { panic!("not a pair: {value:?}") };
    let [answer, Value::Array(written)] = pair.as_slice() else { panic!("not two: {pair:?}") };
    (answer, written.chunks(3).map(write).collect())
}

fn write(set: &[Value]) -> Write {
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        _ => panic!("not a text: {value:?}"),
    };
    let [key, value, until] = set else { panic!("a value without expiry: {set:?}") };
    let until = text(until).parse().expect("a whole number of seconds");
    // A log that was emptied would be gone, and its expiry with it.
    let kept = Kept::read(value).expect("a value");
    Write { key: text(key), kept, until }
}
