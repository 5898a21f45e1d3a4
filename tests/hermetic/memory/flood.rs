//! A stream of keys that nobody has seen before, which is what an attacker sends.

use tollgate::{ManualClock, MemoryStore, Quota};

#[cfg(target_os = "linux")]
use super::{alone, resident};
use super::{take, takes};
use crate::support::secs;

const CAP: usize = 100_000;
const FLOOD: u64 = 1_000_000;

fn store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::builder().capacity(CAP).clock(clock.clone()).build(), clock)
}

/// A key that looks like a hashed credential.
fn key(number: u64) -> String {
    format!("{{key:{:016x}}}:api/requests:tb60s", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[test]
#[cfg(target_os = "linux")]
fn a_million_keys_stay_under_the_cap_and_in_bounded_memory() {
    let name = "memory::flood::a_million_keys_stay_under_the_cap_and_in_bounded_memory";
    alone(name, || {
        let (store, _) = store();
        let (before, mut most) = (resident(), 0);
        for number in 0..FLOOD {
            take(&store, key(number).as_bytes(), Quota::per_minute(60), 1);
            if number % 1_000 == 0 {
                let len = store.len();
                assert!(len <= CAP, "{len} entries after {number} keys");
                most = most.max(len);
            }
        }
        let grown = resident().saturating_sub(before);
        // The cap is used, too.
        assert!(most > CAP * 8 / 10, "at most {most} entries");
        // A map of all of them takes 150 MB.
        assert!(grown < 40, "{grown} MB more than before");
    });
}

#[test]
fn keys_deep_in_debt_are_not_freed_early_by_a_flood() {
    let (store, clock) = store();
    let deep = Quota::per_hour(10);
    let key_of = |client: u64| format!("deep:{client}");
    for client in 0..1_000 {
        assert!(takes(&store, key_of(client).as_bytes(), deep, 10));
    }
    for number in 0..FLOOD / 4 {
        take(&store, key(number).as_bytes(), Quota::per_minute(60), 1 + number % 60);
        if number % 10_000 == 0 {
            clock.advance(secs(1));
        }
    }
    let passed = FLOOD / 4 / 10_000;
    for client in 0..1_000 {
        let answer = take(&store, key_of(client).as_bytes(), deep, 1);
        let standing = answer.standings[0];
        assert!(!standing.fits(), "{client} was freed");
        assert_eq!(standing.wait(), Some(secs(360 - passed)), "{client}");
    }
}

#[test]
fn a_store_of_few_entries_keeps_its_cap_and_still_limits() {
    for cap in [1, 2, 3, 15, 16, 17, 511, 512, 1_023, 1_024, 5_000] {
        let store = MemoryStore::builder().capacity(cap).clock(ManualClock::new()).build();
        for number in 0..3 * cap as u64 {
            take(&store, key(number).as_bytes(), Quota::per_minute(60), 1);
            assert!(store.len() <= cap, "{} of {cap}", store.len());
        }
        assert!(takes(&store, b"deep", Quota::per_hour(2), 2));
        assert!(!takes(&store, b"deep", Quota::per_hour(2), 1), "{cap}");
    }
}

#[test]
fn looks_and_denials_leave_no_entries_behind() {
    let (store, _) = store();
    for number in 0..1_000 {
        take(&store, key(number).as_bytes(), Quota::per_minute(60), 0);
        assert!(!takes(&store, key(number).as_bytes(), Quota::per_minute(60), 61));
    }
    assert!(store.is_empty());
}

#[test]
#[should_panic(expected = "a store of 0 entries limits nothing: the capacity must be at least 1")]
fn a_store_of_no_entries_is_refused() {
    let _ = MemoryStore::builder().capacity(0);
}
