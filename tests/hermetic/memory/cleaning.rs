//! Entries that are full again go by themselves, as others come: no timer that somebody must start.

use std::time::Duration;

use tollgate::{ManualClock, MemoryStore, Quota};

use super::take;
use crate::support::{memory, secs};

const PER_SECOND: Quota = Quota::per_second(1);

fn fill(store: &MemoryStore, name: &str, count: usize) {
    for number in 0..count {
        take(store, format!("{name}:{number}").as_bytes(), PER_SECOND, 1);
    }
}

#[test]
fn keys_that_come_and_go_are_not_kept() {
    let (store, clock) = memory();
    let mut most = 0;
    // Each key is full again after a second, so a hundred thousand of them are in use at a time.
    for second in 0..40 {
        for part in 0..10 {
            fill(&store, &format!("{second}:{part}"), 1_000);
            clock.advance(Duration::from_millis(100));
        }
        most = most.max(store.len());
    }
    assert!(most <= 3 * 10_000, "{most} entries where 10,000 are in use");
}

#[test]
fn an_old_crowd_is_gone_after_as_many_new_keys_as_it_had() {
    let (store, clock) = memory();
    fill(&store, "old", 50_000);
    assert_eq!(store.len(), 50_000);
    clock.advance(secs(2));
    fill(&store, "new", 50_000);
    assert!(store.len() <= 52_000, "{}", store.len());
}

#[test]
fn where_there_is_room_only_what_is_full_again_is_cleaned_up() {
    let clock = ManualClock::new();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    for number in 0..2_000 {
        let quota = if number % 2 == 0 { PER_SECOND } else { Quota::per_hour(1) };
        take(&store, format!("old:{number}").as_bytes(), quota, 1);
    }
    clock.advance(secs(2));
    fill(&store, "new", 5_000);
    for number in (1..2_000).step_by(2) {
        let answer = take(&store, format!("old:{number}").as_bytes(), Quota::per_hour(1), 1);
        assert!(!answer.standings[0].fits(), "{number} was forgotten");
    }
    assert_eq!(store.len(), 6_000);
}

#[test]
fn a_key_that_is_used_again_is_one_entry() {
    let (store, clock) = memory();
    for _ in 0..1_000 {
        take(&store, b"same", PER_SECOND, 1);
        clock.advance(Duration::from_millis(700));
    }
    assert_eq!(store.len(), 1);
}
