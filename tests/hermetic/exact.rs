//! The memory store grants exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/mod.rs"]
mod conformance;

use tollgate::{
    ManualClock, MemoryStore, Stamp, Standing, Store as _, Timestamp,
    algorithm::Meter,
    store::{Hit, Refund},
};

use self::conformance::{Backend, calendar, exact, latest, lock, lock_name, oracle, refund, waits};

struct Memory {
    store: MemoryStore,
    clock: ManualClock,
    tally: crate::tally::Tally,
}

impl Memory {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        Self { store, clock, tally: crate::tally::Tally::of("memory") }
    }
}

impl Backend for Memory {
    fn together(&mut self, micros: u64, hits: &[Hit<'_>]) -> Vec<Standing> {
        self.tally.request(hits.iter().map(|hit| hit.meter));
        self.clock.set(Timestamp::from_micros(micros));
        self.store.acquire(hits).try_now().unwrap().unwrap().standings.to_vec()
    }

    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        self.clock.set(now);
        asks.iter().for_each(|_| self.tally.request([meter]));
        let ask = |&(key, cost): &(&str, u64)| {
            let reply = self.store.acquire(&[Hit {
                key: key.as_bytes(),
                meter,
                cost,
                shadow: false,
                lease: 0,
            }]);
            reply.try_now().unwrap().unwrap().standings[0]
        };
        asks.iter().map(ask).collect()
    }

    fn guarded(&mut self, meters: [Meter; 2], micros: u64, key: &str, cost: u64) -> [Standing; 2] {
        self.clock.set(Timestamp::from_micros(micros));
        let names = [key.to_owned(), lock_name(key)];
        let hits = [0, 1].map(|at| Hit {
            key: names[at].as_bytes(),
            meter: meters[at],
            cost,
            shadow: false,
            lease: 0,
        });
        let answer = self.store.acquire(&hits).try_now().unwrap().unwrap();
        answer.standings.into_inner().unwrap()
    }

    fn refund(&mut self, meter: Meter, micros: u64, key: &str, units: u64, stamp: Stamp) {
        self.clock.set(Timestamp::from_micros(micros));
        let refund = Refund { key: key.as_bytes(), meter, units, stamp };
        self.store.refund(&[refund]).try_now().unwrap().unwrap();
    }

    fn reset(&mut self, key: &str) {
        self.store.reset(&[key.as_bytes()]).try_now().unwrap().unwrap();
    }
}

#[test]
fn a_request_charges_all_of_its_limits_or_none() {
    conformance::all_or_none::a_request_charges_all_of_its_limits_or_none(&mut Memory::new());
}

#[test]
fn all_units_and_no_more() {
    exact::all_units_and_no_more(&mut Memory::new());
}

#[test]
fn waits_to_the_microsecond() {
    exact::waits_to_the_microsecond(&mut Memory::new());
}

#[test]
fn patient_callers_get_the_rate() {
    exact::patient_callers_get_the_rate(&mut Memory::new());
}

#[test]
fn hasty_callers_get_the_rate() {
    exact::hasty_callers_get_the_rate(&mut Memory::new());
}

#[test]
fn waits_of_windows_to_the_microsecond() {
    waits::waits_of_windows_to_the_microsecond(&mut Memory::new());
}

#[test]
fn windows_hold_all_units_and_no_more() {
    waits::windows_hold_all_units_and_no_more(&mut Memory::new());
}

#[test]
fn looks_take_nothing() {
    waits::looks_take_nothing(&mut Memory::new());
}

#[test]
fn windows_answer_as_an_oracle_does() {
    oracle::windows_answer_as_an_oracle_does(&mut Memory::new());
}

#[test]
fn units_begin_and_end_by_the_table() {
    calendar::units_begin_and_end_by_the_table(&mut Memory::new());
}

#[test]
fn units_of_the_calendar_begin_and_end_by_the_table() {
    for (unit, at, first, next) in calendar::table() {
        let (from, to) = unit.around(Timestamp::from_micros(at));
        assert_eq!((from.as_micros(), to.as_micros()), (first, next), "{unit:?} at {at}");
    }
}

#[test]
fn no_step_back_locks_for_longer_than_a_refill() {
    exact::no_step_back_locks_for_longer_than_a_refill(&mut Memory::new());
}

#[test]
fn windows_with_refunds_answer_as_an_oracle_does() {
    oracle::windows_with_refunds_answer_as_an_oracle_does(&mut Memory::new());
}

#[test]
fn all_comes_back_at_once_in_whole_or_in_parts() {
    refund::all_comes_back_at_once_in_whole_or_in_parts(&mut Memory::new());
}

#[test]
fn what_another_charge_took_stays_taken() {
    refund::what_another_charge_took_stays_taken(&mut Memory::new());
}

#[test]
fn a_bucket_gives_back_no_more_than_the_charge_has_left() {
    refund::a_bucket_gives_back_no_more_than_the_charge_has_left(&mut Memory::new());
}

#[test]
fn a_charge_that_counts_no_longer_gives_back_nothing() {
    refund::a_charge_that_counts_no_longer_gives_back_nothing(&mut Memory::new());
}

#[test]
fn a_log_gives_back_to_the_last_microsecond() {
    refund::a_log_gives_back_to_the_last_microsecond(&mut Memory::new());
}

#[test]
fn windows_give_back_until_they_end() {
    refund::windows_give_back_until_they_end(&mut Memory::new());
}

#[test]
fn a_log_gives_back_what_a_step_of_the_clock_brought_here() {
    refund::a_log_gives_back_what_a_step_of_the_clock_brought_here(&mut Memory::new());
}

#[test]
fn a_refund_from_after_now_leaves_no_more_than_the_limit() {
    refund::a_refund_from_after_now_leaves_no_more_than_the_limit(&mut Memory::new());
}

#[test]
fn nothing_comes_back_to_a_key_that_is_not_there() {
    refund::nothing_comes_back_to_a_key_that_is_not_there(&mut Memory::new());
}

#[test]
fn a_key_that_is_forgotten_begins_anew() {
    refund::a_key_that_is_forgotten_begins_anew(&mut Memory::new());
}

#[test]
fn a_bucket_with_refunds_keeps_its_bound() {
    refund::a_bucket_with_refunds_keeps_its_bound(&mut Memory::new());
}

#[test]
fn the_denial_of_the_number_locks() {
    lock::the_denial_of_the_number_locks(&mut Memory::new());
}

#[test]
fn a_lock_ends_to_the_microsecond() {
    lock::a_lock_ends_to_the_microsecond(&mut Memory::new());
}

#[test]
fn asking_does_not_prolong_a_lock() {
    lock::asking_does_not_prolong_a_lock(&mut Memory::new());
}

#[test]
fn denials_are_forgotten_a_refill_after_the_first() {
    lock::denials_are_forgotten_a_refill_after_the_first(&mut Memory::new());
}

#[test]
fn no_step_of_the_clock_locks_for_longer() {
    lock::no_step_of_the_clock_locks_for_longer(&mut Memory::new());
}

#[test]
fn a_changed_length_only_shortens_what_is_locked() {
    lock::a_changed_length_only_shortens_what_is_locked(&mut Memory::new());
}

#[test]
fn a_lock_that_is_forgotten_is_lifted() {
    lock::a_lock_that_is_forgotten_is_lifted(&mut Memory::new());
}

#[test]
fn so_many_units_come_back_and_no_more() {
    latest::so_many_units_come_back_and_no_more(&mut Memory::new());
}

#[test]
fn what_was_taken_before_stays_taken() {
    latest::what_was_taken_before_stays_taken(&mut Memory::new());
}

#[test]
fn a_bucket_gets_the_time_of_its_units() {
    latest::a_bucket_gets_the_time_of_its_units(&mut Memory::new());
}

#[test]
fn a_log_loses_its_latest_units() {
    latest::a_log_loses_its_latest_units(&mut Memory::new());
}

#[test]
fn a_large_log_loses_just_so_many() {
    latest::a_large_log_loses_just_so_many(&mut Memory::new());
}

#[test]
fn a_counter_loses_those_of_its_window_first() {
    latest::a_counter_loses_those_of_its_window_first(&mut Memory::new());
}

#[test]
fn a_window_loses_those_of_the_present_one() {
    latest::a_window_loses_those_of_the_present_one(&mut Memory::new());
}

#[test]
fn what_lies_ahead_is_brought_back_first() {
    latest::what_lies_ahead_is_brought_back_first(&mut Memory::new());
}

#[test]
fn nothing_comes_back_where_nothing_was_taken() {
    latest::nothing_comes_back_where_nothing_was_taken(&mut Memory::new());
}
