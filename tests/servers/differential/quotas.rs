//! Quotas over the whole range of what can be kept.

use std::time::Duration;

use fastrand::Rng;
use tollgate::Quota;

const DAY: u64 = 86_400;
const TEN_YEARS: u64 = 10 * 365 * DAY;

/// A quota of any rate, period and burst.
pub(super) fn any(rng: &mut Rng) -> Quota {
    loop {
        let Ok(quota) = Quota::new(quantity(rng), period(rng)) else { continue };
        let burst = match rng.u8(..4) {
            0 => 1,
            1 => up_to(rng, 1 << 40),
            _ => return quota,
        };
        if let Ok(quota) = quota.try_burst(burst) {
            return quota;
        }
    }
}

/// The ends of the range, and rates that others have got wrong.
pub(super) fn corners() -> Vec<Quota> {
    let new = |quantity, period| Quota::new(quantity, period).unwrap();
    vec![
        Quota::per_day(1),
        Quota::per_day(1 << 40),
        Quota::per_second(1_000_000_000),
        Quota::per_second(1_000_000_000).burst(1_000),
        Quota::per_second(10_000_000),
        Quota::per_second(333_333),
        Quota::per_second(333_333).burst(1),
        Quota::per_second(1_001),
        Quota::per_second(3),
        Quota::per_minute(7),
        new(1, Duration::from_secs(TEN_YEARS)),
        new(TEN_YEARS * 1_000_000_000, Duration::from_secs(TEN_YEARS)),
        new(1, Duration::from_micros(1)),
        new(1, Duration::from_nanos(1_001)),
    ]
}

fn quantity(rng: &mut Rng) -> u64 {
    if rng.bool() { rng.u64(1..=1_000) } else { up_to(rng, 1 << 40) }
}

fn period(rng: &mut Rng) -> Duration {
    match rng.u8(..4) {
        0 => Duration::from_secs(DAY),
        1 => Duration::from_secs(1),
        2 => Duration::from_secs([7, 10, 60, 61, 3_599, 3_600, 30 * DAY][rng.usize(..7)]),
        _ => Duration::from_nanos(up_to(rng, TEN_YEARS * 1_000_000_000)),
    }
}

/// A number from 1 to `most`, small ones as likely as large ones.
pub(super) fn up_to(rng: &mut Rng, most: u64) -> u64 {
    let magnitude = 1_u64.checked_shl(rng.u32(1..=most.ilog2() + 1)).unwrap_or(u64::MAX);
    rng.u64(1..=magnitude.min(most))
}
