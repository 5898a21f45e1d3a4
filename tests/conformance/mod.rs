//! What every backend must do alike. Each backend runs all of it, by a clock that the test sets.

pub(crate) mod all_or_none;
pub(crate) mod calendar;
pub(crate) mod exact;
pub(crate) mod latest;
pub(crate) mod lock;
pub(crate) mod oracle;
pub(crate) mod refund;
pub(crate) mod waits;

use std::time::Duration;

use tollgate::{Algorithm, Calendar, Quota, Stamp, Standing, Timestamp, algorithm::Meter};

/// A time that is no round number, with few microseconds.
const START: u64 = 1_764_461_091_000_007;

/// A backend whose clock the test sets.
pub(crate) trait Backend {
    /// Decides requests of a key and a cost each, one after another, all at `now`.
    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing>;

    /// Decides one request of a limit and the lock that guards it, whose name follows from the key.
    fn guarded(&mut self, meters: [Meter; 2], micros: u64, key: &str, cost: u64) -> [Standing; 2];

    /// Gives back units of a charge.
    fn refund(&mut self, meter: Meter, micros: u64, key: &str, units: u64, stamp: Stamp);

    /// Forgets a key.
    fn reset(&mut self, key: &str);

    /// Forgets the lock of a key.
    fn reset_lock(&mut self, key: &str) {
        self.reset(&lock_name(key));
    }

    /// Decides as [`decide`](Self::decide) does, with a token bucket.
    fn ask(&mut self, quota: Quota, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.decide(bucket(quota), now, asks)
    }

    /// One request.
    fn one(&mut self, meter: Meter, micros: u64, key: &str, cost: u64) -> Standing {
        self.decide(meter, Timestamp::from_micros(micros), &[(key, cost)])[0]
    }

    /// Of what is asked again and again, how much is left out: all but one in so many.
    fn in_part(&self) -> u32 {
        1
    }

    /// One request of several limits.
    fn together(&mut self, micros: u64, hits: &[tollgate::store::Hit<'_>]) -> Vec<Standing>;
}

fn bucket(quota: Quota) -> Meter {
    Algorithm::TokenBucket.meter(quota)
}

pub(crate) fn lock_name(key: &str) -> String {
    format!("{key}:lk")
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
