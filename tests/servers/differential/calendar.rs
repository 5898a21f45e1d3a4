//! Moments at which a unit of the calendar ends, by counting days.

use fastrand::Rng;

const MICROS_PER_DAY: u64 = 86_400 * 1_000_000;

/// The first moment of a month from 2001 to 2096, or of another day near it.
pub(super) fn boundary(rng: &mut Rng) -> u64 {
    let year = match rng.u8(..3) {
        0 => rng.u64(501..524) * 4,
        _ => rng.u64(2_002..2_096),
    };
    let month = match rng.u8(..3) {
        0 => 0,
        1 => 2,
        _ => rng.u64(..12),
    };
    let day = first_of(year, month) + rng.u64(..3) - 1;
    day * MICROS_PER_DAY
}

/// The day since 1970-01-01 on which a month, 0 to 11, begins.
fn first_of(year: u64, month: u64) -> u64 {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let years: u64 = (1_970..year).map(|year| 365 + u64::from(leap(year))).sum();
    let february = 28 + u64::from(leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30];
    years + months.into_iter().take(usize::try_from(month).unwrap()).sum::<u64>()
}
