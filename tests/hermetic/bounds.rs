//! What is admitted over any time, by random arrivals: never more than the documentation says.

#![cfg(test)]

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{
    Algorithm, Calendar, ManualClock, MemoryStore, Quota, Standing, Store as _, Timestamp,
    algorithm::Meter, store::Hit,
};

use crate::support::memory;

/// A Thursday.
const START: u64 = 1_735_800_000_000_007;

struct Key {
    store: MemoryStore,
    clock: ManualClock,
    meter: Meter,
}

impl Key {
    fn new(meter: Meter) -> Self {
        let (store, clock) = memory();
        Self { store, clock, meter }
    }

    fn ask(&self, now: u64, cost: u64) -> Standing {
        self.clock.set(Timestamp::from_micros(now));
        let hit = Hit { key: b"k", meter: self.meter, cost, shadow: false, lease: 0 };
        self.store.acquire(&[hit]).try_now().unwrap().unwrap().standings[0]
    }

    /// When how many units were admitted.
    fn admitted(&self, arrivals: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut now = START;
        let mut admitted = Vec::new();
        for (gap, cost) in arrivals {
            now += gap;
            if *cost > 0 && self.ask(now, *cost).fits() {
                admitted.push((now, *cost));
            }
        }
        admitted
    }
}

fn quota(units: u64, micros: u64) -> Quota {
    Quota::new(units, Duration::from_micros(micros)).unwrap()
}

/// The most units in any span of so many microseconds: the worst end with one of them.
fn most(admitted: &[(u64, u64)], span: u64) -> u64 {
    let (mut first, mut units, mut most) = (0, 0, 0);
    for (at, cost) in admitted {
        units += cost;
        while admitted[first].0 + span <= *at {
            units -= admitted[first].1;
            first += 1;
        }
        most = most.max(units);
    }
    most
}

/// Gaps and costs: bursts, and pauses of up to two windows.
fn arrivals(window: u64) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![3 => Just(0), 3 => 0..=window / 8, 1 => 0..=window, 1 => 0..=2 * window];
    prop::collection::vec((gap, 0..6_u64), 1..160)
}

/// A limit, a window, and what comes.
fn cases() -> impl Strategy<Value = (u64, u64, Vec<(u64, u64)>)> {
    let window = prop_oneof![Just(7_u64), Just(1_000), Just(1_000_000), 1..100_000_000_u64];
    let limit = 1..20_u64;
    (limit, window).prop_flat_map(|(limit, window)| (Just(limit), Just(window), arrivals(window)))
}

proptest! {
    #[test]
    fn a_bucket_admits_at_most_its_burst_and_its_rate_times_the_time(
        (burst, period, arrivals) in cases(),
        quantity in 1..20_u64,
    ) {
        let quota = quota(quantity, period).try_burst(burst);
        // Not every burst is within the bounds of a quota.
        prop_assume!(quota.is_ok());
        let admitted = Key::new(Algorithm::TokenBucket.meter(quota.unwrap())).admitted(&arrivals);
        for (at, (first, _)) in admitted.iter().enumerate() {
            let mut units = 0;
            for (last, cost) in &admitted[at..] {
                units += cost;
                let earned = u128::from(last - first) * u128::from(quantity);
                prop_assert!(u128::from(units.saturating_sub(burst)) * u128::from(period) <= earned);
            }
        }
    }

    #[test]
    fn a_log_admits_no_more_than_its_limit_in_any_window((limit, window, arrivals) in cases()) {
        let key = Key::new(Algorithm::SlidingLog.meter(quota(limit, window)));
        prop_assert!(most(&key.admitted(&arrivals), window) <= limit);
    }

    #[test]
    fn a_counter_admits_at_most_twice_its_limit_in_any_window((limit, window, arrivals) in cases()) {
        let key = Key::new(Algorithm::SlidingCounter.meter(quota(limit, window)));
        prop_assert!(most(&key.admitted(&arrivals), window) <= 2 * limit);
    }

    #[test]
    fn a_fixed_window_admits_no_more_than_its_limit_in_each_window(
        (limit, window, arrivals) in cases(),
    ) {
        let key = Key::new(Algorithm::FixedWindow.meter(quota(limit, window)));
        let admitted = key.admitted(&arrivals);
        for units in admitted.chunk_by(|a, b| a.0 / window == b.0 / window) {
            prop_assert!(units.iter().map(|(_, cost)| cost).sum::<u64>() <= limit);
        }
    }

    #[test]
    fn the_calendar_admits_no_more_than_its_limit_in_each_of_its_units(
        limit in 1..20_u64,
        arrivals in arrivals(40 * 86_400_000_000),
        unit in prop::sample::select(vec![Calendar::Day, Calendar::Week, Calendar::Month]),
    ) {
        let quota = Quota::new(limit, unit.nominal()).unwrap();
        let admitted = Key::new(Algorithm::Calendar(unit).meter(quota)).admitted(&arrivals);
        let first = |at: u64| unit.around(Timestamp::from_micros(at)).0;
        for units in admitted.chunk_by(|a, b| first(a.0) == first(b.0)) {
            prop_assert!(units.iter().map(|(_, cost)| cost).sum::<u64>() <= limit);
        }
    }

    /// Each request that is denied could not have been admitted: nothing is held back either.
    #[test]
    fn a_log_denies_only_what_would_exceed_its_limit((limit, window, arrivals) in cases()) {
        let key = Key::new(Algorithm::SlidingLog.meter(quota(limit, window)));
        let (mut now, mut taken) = (START, Vec::new());
        for (gap, cost) in arrivals {
            now += gap;
            let alive = taken.iter().filter(|at| now - **at < window).count() as u64;
            let fits = key.ask(now, cost).fits();
            prop_assert_eq!(fits, cost == 0 || alive + cost <= limit);
            taken.extend((0..if fits { cost } else { 0 }).map(|_| now));
        }
    }
}

#[test]
fn who_polls_a_log_faster_than_its_limit_still_gets_the_limit_in_each_window() {
    for limit in [1_u64, 3, 10] {
        let window = 1_000_000;
        let key = Key::new(Algorithm::SlidingLog.meter(quota(limit, window)));
        let step = window / limit / 50;
        let polls: Vec<(u64, u64)> = (0..20 * window / step).map(|_| (step, 1)).collect();
        let admitted = key.admitted(&polls);
        let first = admitted[0].0;
        for at in 0..19 {
            // The first poll that is a window later.
            let period = window.next_multiple_of(step);
            let start = first + at * period;
            let within = |(at, _): &&(u64, u64)| (start..start + period).contains(at);
            assert_eq!(admitted.iter().filter(within).count() as u64, limit, "window {at}");
        }
    }
}

/// The worst case of the counter, which is why its bound is what it is.
#[test]
fn a_counter_can_be_brought_to_nearly_twice_its_limit() {
    let (limit, window) = (1_000, 1_000_000);
    let key = Key::new(Algorithm::SlidingCounter.meter(quota(limit, window)));
    let start = START / window * window + 10 * window;
    // All at the end of a window; in the next one, whatever comes free, as late as it can.
    let mut admitted = vec![(start + window - 1, limit)];
    assert!(key.ask(start + window - 1, limit).fits());
    for at in (1..window - 1).step_by(500) {
        let now = start + window + at;
        let left = key.ask(now, 0).remaining();
        if left > 0 && key.ask(now, left).fits() {
            admitted.push((now, left));
        }
    }
    let worst = most(&admitted, window);
    println!("a counter of {limit} was brought to {worst} in a window");
    assert!((1_990..=2_000).contains(&worst), "{worst}");
}

/// By steady random arrivals, as many clients make them, of half to twice the limit.
#[test]
fn the_error_of_a_counter_against_a_log_is_small_under_steady_load() {
    let (limit, window) = (100, 1_000_000);
    let (mut most_off, mut most_over): (f64, f64) = (0.0, 0.0);
    for percent in [50, 90, 100, 110, 150, 200, 400] {
        let mut rng = fastrand::Rng::with_seed(percent);
        let mean = window * 100 / limit / percent;
        let arrivals: Vec<_> = (0..10_000).map(|_| (rng.u64(..2 * mean), 1)).collect();
        let by = |algorithm: Algorithm| Key::new(algorithm.meter(quota(limit, window)));
        let log = by(Algorithm::SlidingLog).admitted(&arrivals);
        let counter = by(Algorithm::SlidingCounter).admitted(&arrivals);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (off, over) = (
            (counter.len() as f64 / log.len() as f64 - 1.0) * 100.0,
            (most(&counter, window) as f64 / limit as f64 - 1.0) * 100.0,
        );
        println!(
            "load {percent:>3} %: the counter admits {off:+.1} % against the log, \
             and in its worst window {over:+.1} % against the limit"
        );
        most_off = most_off.max(off.abs());
        most_over = most_over.max(over);
    }
    assert!(most_off <= 5.0, "{most_off} % off");
    assert!(most_over <= 20.0, "{most_over} % over");
}
