//! Answers of windows, by the plainest computation there is: all units ever taken, counted anew.

use tollgate::{Algorithm, Stamp, Standing};

use super::{Backend, START, windows};

const WINDOW: u64 = 60_000_000;

/// What is left, and when all is back, after random requests on one key.
pub(crate) fn windows_answer_as_an_oracle_does(backend: &mut impl Backend) {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    for round in (0..40).step_by(backend.in_part() as usize) {
        let limit = rng.u64(1..=12);
        for (algorithm, meter) in windows(limit, WINDOW) {
            let Some(oracle) = oracle(algorithm) else { continue };
            let key = format!("{algorithm:?}:{round}");
            let mut taken: Vec<u64> = Vec::new();
            let mut now = START;
            for _ in 0..60 {
                now += if rng.bool() { 0 } else { rng.u64(..WINDOW / 2) };
                let cost = rng.u64(..=limit + 1);
                let standing = backend.one(meter, now, &key, cost);
                let context = format!("{key}, {cost} of {limit} at {now}, seed {seed}");
                let (left, _) = oracle(&taken, limit, now);
                assert_eq!(standing.fits(), cost <= left || cost == 0, "{context}");
                if standing.fits() {
                    taken.extend((0..cost).map(|_| now));
                }
                let (left, reset) = oracle(&taken, limit, now);
                let seen = |standing: &Standing| {
                    (standing.remaining(), u64::try_from(standing.reset().as_micros()).unwrap())
                };
                assert_eq!(seen(&standing), (left, reset), "{context}");
            }
        }
    }
}

/// Units that were given back count as if nobody had ever taken them.
pub(crate) fn windows_with_refunds_answer_as_an_oracle_does(backend: &mut impl Backend) {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    for round in (0..40).step_by(backend.in_part() as usize) {
        let limit = rng.u64(1..=12);
        for (algorithm, meter) in windows(limit, WINDOW) {
            let Some(oracle) = oracle(algorithm) else { continue };
            let key = format!("refunds:{algorithm:?}:{round}");
            let (mut taken, mut charged): (Vec<u64>, Vec<(u64, Stamp)>) = Default::default();
            let mut now = START;
            for _ in 0..80 {
                now += if rng.bool() { 0 } else { rng.u64(..WINDOW / 2) };
                let context = format!("{key}, of {limit} at {now}, seed {seed}");
                if !charged.is_empty() && rng.u8(..3) == 0 {
                    let at = rng.usize(..charged.len());
                    let (units, stamp) = &mut charged[at];
                    let some = rng.u64(1..=*units);
                    backend.refund(meter, now, &key, some, *stamp);
                    for _ in 0..some {
                        let gone = taken.iter().position(|moment| *moment == stamp.parts().0);
                        taken.swap_remove(gone.unwrap());
                    }
                    *units -= some;
                    if *units == 0 {
                        charged.swap_remove(at);
                    }
                    taken.sort_unstable();
                } else {
                    let cost = rng.u64(1..=limit);
                    let standing = backend.one(meter, now, &key, cost);
                    assert_eq!(standing.fits(), cost <= oracle(&taken, limit, now).0, "{context}");
                    if standing.fits() {
                        taken.extend((0..cost).map(|_| now));
                        charged.push((cost, standing.stamp()));
                    }
                }
                let look = backend.one(meter, now, &key, 0);
                let reset = u64::try_from(look.reset().as_micros()).unwrap();
                assert_eq!((look.remaining(), reset), oracle(&taken, limit, now), "{context}");
            }
        }
    }
}

/// Of moments at which units were taken, and the limit, at a moment: units left, and microseconds
/// until all are.
type Oracle = fn(&[u64], u64, u64) -> (u64, u64);

fn oracle(algorithm: Algorithm) -> Option<Oracle> {
    match algorithm {
        Algorithm::SlidingLog => Some(log),
        Algorithm::SlidingCounter => Some(counter),
        Algorithm::FixedWindow => Some(fixed),
        // The same arithmetic in other windows, which have a table of their own.
        _ => None,
    }
}

fn log(taken: &[u64], limit: u64, now: u64) -> (u64, u64) {
    let alive: Vec<&u64> = taken.iter().filter(|moment| *moment + WINDOW > now).collect();
    let reset = alive.last().map_or(0, |last| **last + WINDOW - now);
    (limit - alive.len() as u64, reset)
}

fn within(taken: &[u64], start: u64) -> u64 {
    taken.iter().filter(|moment| (start..start + WINDOW).contains(moment)).count() as u64
}

fn fixed(taken: &[u64], limit: u64, now: u64) -> (u64, u64) {
    let start = now / WINDOW * WINDOW;
    let used = within(taken, start);
    (limit - used, if used == 0 { 0 } else { start + WINDOW - now })
}

fn counter(taken: &[u64], limit: u64, now: u64) -> (u64, u64) {
    let start = now / WINDOW * WINDOW;
    let (current, previous) = (within(taken, start), within(taken, start - WINDOW));
    // The tick is the window by 2^20, rounded up.
    let tick = WINDOW.div_ceil(1 << 20);
    let ticks = WINDOW.div_ceil(tick);
    let overlap = ticks - (now - start) / tick;
    let weighed = previous * overlap + current * ticks;
    let reset = match (current, previous) {
        (0, 0) => 0,
        (0, _) => start + WINDOW - now,
        _ => start + 2 * WINDOW - now,
    };
    ((limit * ticks).saturating_sub(weighed) / ticks, reset)
}
