//! What every backend must do alike. Each backend runs all of it, by a clock that the test sets.

pub(crate) mod calendar;
pub(crate) mod exact;
pub(crate) mod oracle;
pub(crate) mod together;
pub(crate) mod waits;

use std::time::Duration;

use tollgate::{Algorithm, Calendar, Quota, Standing, Timestamp, algorithm::Meter, store::Hit};

use crate::tally::{self, Tally};

/// A time that is no round number, with few microseconds.
const START: u64 = 1_764_461_091_000_007;

/// A backend whose clock the test sets.
pub(crate) trait Backend {
    /// Decides requests of a key and a cost each, one after another, all at `now`.
    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing>;

    /// Decides one request to several limits, at `now`.
    fn together(&mut self, now: Timestamp, hits: &[Hit<'_>]) -> Vec<Standing>;

    /// Decides requests to a token bucket.
    fn ask(&mut self, quota: Quota, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.decide(Algorithm::TokenBucket.meter(quota), now, asks)
    }

    /// One request.
    fn one(&mut self, meter: Meter, micros: u64, key: &str, cost: u64) -> Standing {
        self.decide(meter, Timestamp::from_micros(micros), &[(key, cost)])[0]
    }
}

/// A backend whose decisions are counted.
pub(crate) struct Counted<B>(B, Tally);

impl<B: Backend> Counted<B> {
    pub(crate) fn new(name: &str, backend: B) -> Self {
        Self(backend, Tally::of(name))
    }
}

impl<B: Backend> Backend for Counted<B> {
    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.1.count(tally::column(meter), asks.len());
        self.0.decide(meter, now, asks)
    }

    fn together(&mut self, now: Timestamp, hits: &[Hit<'_>]) -> Vec<Standing> {
        self.1.count(tally::MIXED, 1);
        self.0.together(now, hits)
    }
}

/// One limit of each algorithm but the bucket, of so many units in so many microseconds.
fn windows(units: u64, micros: u64) -> Vec<(Algorithm, Meter)> {
    let quota = Quota::new(units, Duration::from_micros(micros)).unwrap();
    let by = |algorithm: Algorithm, quota| (algorithm, algorithm.meter(quota));
    let calendar =
        |unit: Calendar| by(Algorithm::Calendar(unit), Quota::new(units, unit.nominal()).unwrap());
    vec![
        by(Algorithm::SlidingLog, quota),
        by(Algorithm::SlidingCounter, quota),
        by(Algorithm::FixedWindow, quota),
        calendar(Calendar::Day),
        calendar(Calendar::Week),
        calendar(Calendar::Month),
    ]
}
