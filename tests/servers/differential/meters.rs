//! Limits of every algorithm, over the range of what can be kept.

use std::time::Duration;

use fastrand::Rng;
use tollgate::{
    Algorithm, Calendar, Quota,
    algorithm::{Meter, SlidingLog},
};

use super::quotas;

const MICROS_PER_TEN_YEARS: u64 = 10 * 365 * 86_400 * 1_000_000;

/// Of which algorithm the limits of a trace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    TokenBucket,
    SlidingLog,
    SlidingCounter,
    FixedWindow,
    Calendar,
    /// Any, side by side in one request.
    Mixed,
}

/// What counts a key, the other limits that it meets when its limit is changed after it.
pub(super) fn any(rng: &mut Rng, kind: Kind) -> Vec<Meter> {
    let kinds = [
        Kind::TokenBucket,
        Kind::SlidingLog,
        Kind::SlidingCounter,
        Kind::FixedWindow,
        Kind::Calendar,
    ];
    match kind {
        Kind::Mixed => {
            let kind = kinds[rng.usize(..kinds.len())];
            any(rng, kind)
        }
        Kind::TokenBucket => {
            let corners = quotas::corners();
            let quota = |rng: &mut Rng| match rng.u8(..4) {
                0 => corners[rng.usize(..corners.len())],
                _ => quotas::any(rng),
            };
            (0..4).map(|_| Algorithm::TokenBucket.meter(quota(rng))).collect()
        }
        Kind::SlidingLog => limits(rng, Algorithm::SlidingLog, period, |rng| match rng.u8(..64) {
            0 if rng.u8(..8) == 0 => rng.u64(1_000..=2_500),
            0..4 => rng.u64(1..=200),
            4..16 => 1,
            _ => rng.u64(1..=20),
        }),
        Kind::SlidingCounter => {
            limits(rng, Algorithm::SlidingCounter, period, |rng| count(rng, 31))
        }
        Kind::FixedWindow => limits(rng, Algorithm::FixedWindow, period, |rng| count(rng, 52)),
        Kind::Calendar => {
            let unit = [Calendar::Day, Calendar::Week, Calendar::Month][rng.usize(..3)];
            limits(rng, Algorithm::Calendar(unit), |_| unit.nominal(), |rng| count(rng, 51))
        }
    }
}

/// What a request can take at once, at most.
pub(super) fn limit(meter: &Meter) -> u64 {
    match meter {
        Meter::TokenBucket(bucket) => {
            u64::try_from(bucket.capacity() / bucket.increment(1)).unwrap()
        }
        Meter::SlidingLog(log) => SlidingLog::limit(log),
        Meter::SlidingCounter(counter) => counter.limit(),
        Meter::FixedWindow(window) => window.limit(),
        other => panic!("unknown: {other:?}"),
    }
}

/// Limits that differ only in their quantity.
fn limits(
    rng: &mut Rng,
    algorithm: Algorithm,
    period: impl Fn(&mut Rng) -> Duration,
    quantity: impl Fn(&mut Rng) -> u64,
) -> Vec<Meter> {
    let period = period(rng);
    let mut meters = Vec::new();
    while meters.len() < 4 {
        if let Ok(quota) = Quota::new(quantity(rng), period) {
            meters.push(algorithm.meter(quota));
        } else if period < Duration::from_micros(3_000) {
            // Too short for most quantities.
            meters.push(algorithm.meter(Quota::new(1, period).unwrap()));
        }
    }
    meters
}

/// A period of whole microseconds.
fn period(rng: &mut Rng) -> Duration {
    let micros = match rng.u8(..4) {
        0 => [1, 2, 7, 1_000, 1 << 20, (1 << 20) + 1, (1 << 20) * 3 - 1][rng.usize(..7)],
        1 => [1, 10, 60, 3_600, 86_400, 30 * 86_400][rng.usize(..6)] * 1_000_000,
        2 => MICROS_PER_TEN_YEARS - rng.u64(..10),
        _ => quotas::up_to(rng, MICROS_PER_TEN_YEARS),
    };
    Duration::from_micros(micros)
}

/// A quantity of at most 2 to the power of `bits`, most often a small one.
fn count(rng: &mut Rng, bits: u32) -> u64 {
    match rng.u8(..8) {
        0 => 1,
        1 => 1 << bits,
        2..5 => rng.u64(1..=50),
        _ => quotas::up_to(rng, 1 << bits),
    }
}
