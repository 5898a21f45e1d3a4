//! The crate's Redis script, run without the crate's client: by the server's clock, or by a clock
//! of the test's own, next to a model of what it must answer.

#![cfg(test)]

mod joined;
mod kept;
mod model;
#[path = "../../../src/store/redis/source.rs"]
mod source;
mod wire;

use tollgate::{
    Timestamp,
    store::{Hit, Refund},
};

pub(crate) use self::{
    joined::{Joined, Write},
    kept::Kept,
    model::{Model, Modelled},
    wire::Found,
};
use crate::{
    support::{Connection, RedisServer, Value},
    tally::Tally,
};

/// The script that decides, as the crate joins it.
pub(crate) const SOURCE: &str = source::ACQUIRE;

/// The script that gives back, as the crate joins it.
pub(crate) const REFUND: &str = source::REFUND;

/// One request: the hits that are charged together.
pub(crate) type Request<'a> = Vec<Hit<'a>>;

/// A script that a server has loaded, and a connection to run it over.
pub(crate) struct Script {
    connection: Connection,
    sha: String,
    tally: Tally,
}

impl Script {
    pub(crate) fn load(server: &RedisServer, source: &str) -> Self {
        let mut connection = server.connection();
        let sha = connection.call(&["SCRIPT", "LOAD", source]).expect("the server answers");
        let sha = sha.expect("the script compiles");
        Self { connection, sha, tally: Tally::of(server.name()) }
    }

    /// The script as it is, by the server's clock: its now, and what it found for each hit.
    ///
    /// # Panics
    ///
    /// If it answers an error, or in another form than its header says.
    pub(crate) fn acquire(&mut self, batch: &[Request<'_>]) -> (Timestamp, Vec<Found>) {
        wire::answer(&self.run(batch, &[]), batch)
    }

    /// Any other command, which succeeds.
    pub(crate) fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        let value = self.connection.ask(args).expect("the server answers");
        assert!(!matches!(value, Value::Error(_)), "{value:?}");
        value
    }

    /// The string that a key holds.
    pub(crate) fn get(&mut self, key: &[u8]) -> Option<String> {
        match self.command(&[b"GET", key]) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What a key holds, of the same type as `like`.
    pub(crate) fn kept(&mut self, key: &[u8], like: &Kept) -> Option<Kept> {
        let value = match like {
            Kept::Text(_) => self.command(&[b"GET", key]),
            Kept::Log(_) => self.command(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]),
        };
        Kept::read(&value)
    }

    fn run(&mut self, batch: &[Request<'_>], more: &[String]) -> Value {
        for request in batch {
            self.tally.request(request.iter().map(|hit| hit.meter));
        }
        let command = wire::evalsha(&self.sha, batch, more);
        self.command(&command)
    }

    fn run_refund(&mut self, sha: &str, refunds: &[Refund<'_>], more: &[String]) -> Value {
        let command = wire::refund(sha, refunds, more);
        self.command(&command)
    }
}
