//! How long decisions take, in buckets of an eighth of a power of two.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// From 256 ns, in steps of an eighth, to four minutes.
const BUCKETS: usize = 8 * 30;
/// Powers of two below the first bucket's steps.
const FINEST: u32 = 5;

/// All decisions since the start.
pub(super) struct Latency([AtomicU64; BUCKETS]);

/// How many decisions took how long.
#[derive(Clone)]
pub(super) struct Taken(Box<[u64]>);

impl Latency {
    pub(super) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    pub(super) fn note(&self, taken: Duration) {
        self.0[bucket(taken)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Taken {
        Taken(self.0.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect())
    }
}

impl Taken {
    pub(super) fn none() -> Self {
        Self(vec![0; BUCKETS].into())
    }

    /// Those since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self(self.0.iter().zip(&earlier.0).map(|(now, before)| now - before).collect())
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Microseconds within which this share of decisions was made, rounded up to the end of a bucket.
    pub(super) fn within(&self, percent: u64) -> Option<f64> {
        let wanted = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let at = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(end(at))
    }
}

fn bucket(taken: Duration) -> usize {
    let nanos = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
    let units = (nanos >> FINEST).max(8);
    let power = units.ilog2() - 3;
    let eighth = (units >> power) - 8;
    usize::try_from(u64::from(power) * 8 + eighth).map_or(BUCKETS - 1, |at| at.min(BUCKETS - 1))
}

/// The end of a bucket, in microseconds.
fn end(at: usize) -> f64 {
    let units = (at as u64 % 8 + 9) << (at / 8);
    (units << FINEST) as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_less_than_an_eighth_above_what_it_holds() {
        for nanos in [256, 257, 300, 1_000, 1_023, 1_024, 12_345, 1_000_000, 999_999_999] {
            let end = end(bucket(Duration::from_nanos(nanos))) * 1_000.0;
            let nanos = nanos as f64;
            assert!(nanos < end && end <= nanos * 1.125 + 1.0, "{nanos} in a bucket to {end}");
        }
        assert_eq!(bucket(Duration::ZERO), 0);
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles() {
        let latency = Latency::new();
        assert_eq!(latency.read().within(50), None);
        (0..98).for_each(|_| latency.note(Duration::from_micros(10)));
        let before = latency.read();
        (0..2).for_each(|_| latency.note(Duration::from_millis(1)));
        let all = latency.read();
        assert_eq!(all.count(), 100);
        assert!(all.within(50).is_some_and(|micros| (10.0..12.0).contains(&micros)));
        assert!(all.within(98).is_some_and(|micros| (10.0..12.0).contains(&micros)));
        assert!(all.within(99).is_some_and(|micros| (1_000.0..1_130.0).contains(&micros)));
        assert!(all.since(&before).within(1).is_some_and(|micros| micros >= 1_000.0));
    }
}
