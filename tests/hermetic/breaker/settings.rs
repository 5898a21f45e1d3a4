//! Settings out of their bounds.

use std::{panic::catch_unwind, time::Duration};

use tollgate::Breaker;

use super::MILLI;

fn refused(set: fn(Breaker) -> Breaker) -> String {
    let Err(panic) = catch_unwind(|| set(Breaker::default())) else { panic!("it is taken") };
    *panic.downcast().expect("a message")
}

#[test]
fn they_are_refused_with_the_value_and_the_bound() {
    type Set = fn(Breaker) -> Breaker;
    let cases: [(Set, &[&str]); 12] = [
        (|b| b.failures(0), &["0 failures", "1 to 10000"]),
        (|b| b.failures(10_001), &["10001 failures", "1 to 10000"]),
        (|b| b.share(0.0), &["share of 0 ", "more than 0 and at most 1"]),
        (|b| b.share(1.5), &["share of 1.5 ", "more than 0 and at most 1"]),
        (|b| b.share(f64::NAN), &["share of NaN ", "more than 0 and at most 1"]),
        (|b| b.calls(0), &["0 calls", "1 to 1000000"]),
        (|b| b.window(99 * MILLI), &["99ms", "100ms to 60s"]),
        (|b| b.window(Duration::from_secs(61)), &["61s", "100ms to 60s"]),
        (|b| b.slower_than(Duration::ZERO), &["0ns", "1µs to 60s"]),
        (|b| b.slower_than(Duration::MAX), &["1µs to 60s"]),
        (|b| b.open_for(Duration::ZERO, MILLI), &["0ns to 1ms", "1ms to 60s"]),
        (|b| b.open_for(2 * MILLI, MILLI), &["2ms to 1ms", "the shorter time first"]),
    ];
    for (set, parts) in cases {
        let message = refused(set);
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
}

#[test]
fn their_bounds_are_taken() {
    let longest = Duration::from_secs(60);
    let _ = Breaker::default()
        .failures(10_000)
        .share(1.0)
        .calls(1_000_000)
        .window(longest)
        .slower_than(longest)
        .open_for(MILLI, MILLI)
        .open_for(longest, longest);
}
