//! All that every backend must do alike.

use super::Clocked;
use crate::exact::conformance::{
    all_or_none, calendar, exact, latest, lock, oracle, refund, waits,
};

/// One part of the suite.
pub(crate) type Part = fn(&mut Clocked);

/// All parts.
pub(crate) const SUITE: &[Part] = &[
    all_or_none::a_request_charges_all_of_its_limits_or_none,
    calendar::units_begin_and_end_by_the_table,
    exact::all_units_and_no_more,
    exact::waits_to_the_microsecond,
    exact::no_step_back_locks_for_longer_than_a_refill,
    exact::patient_callers_get_the_rate,
    exact::hasty_callers_get_the_rate,
    latest::so_many_units_come_back_and_no_more,
    latest::what_was_taken_before_stays_taken,
    latest::a_bucket_gets_the_time_of_its_units,
    latest::a_log_loses_its_latest_units,
    latest::a_large_log_loses_just_so_many,
    latest::a_counter_loses_those_of_its_window_first,
    latest::a_window_loses_those_of_the_present_one,
    latest::what_lies_ahead_is_brought_back_first,
    latest::nothing_comes_back_where_nothing_was_taken,
    lock::the_denial_of_the_number_locks,
    lock::a_lock_ends_to_the_microsecond,
    lock::asking_does_not_prolong_a_lock,
    lock::denials_are_forgotten_a_refill_after_the_first,
    lock::no_step_of_the_clock_locks_for_longer,
    lock::a_changed_length_only_shortens_what_is_locked,
    lock::a_lock_that_is_forgotten_is_lifted,
    oracle::windows_answer_as_an_oracle_does,
    oracle::windows_with_refunds_answer_as_an_oracle_does,
    refund::all_comes_back_at_once_in_whole_or_in_parts,
    refund::what_another_charge_took_stays_taken,
    refund::a_bucket_gives_back_no_more_than_the_charge_has_left,
    refund::a_charge_that_counts_no_longer_gives_back_nothing,
    refund::a_log_gives_back_to_the_last_microsecond,
    refund::windows_give_back_until_they_end,
    refund::a_log_gives_back_what_a_step_of_the_clock_brought_here,
    refund::a_refund_from_after_now_leaves_no_more_than_the_limit,
    refund::nothing_comes_back_to_a_key_that_is_not_there,
    refund::a_key_that_is_forgotten_begins_anew,
    refund::a_bucket_with_refunds_keeps_its_bound,
    waits::waits_of_windows_to_the_microsecond,
    waits::windows_hold_all_units_and_no_more,
    waits::looks_take_nothing,
];

#[test]
fn the_suite_has_all_that_there_is() {
    let sources = [
        include_str!("../../conformance/all_or_none.rs"),
        include_str!("../../conformance/calendar.rs"),
        include_str!("../../conformance/exact.rs"),
        include_str!("../../conformance/latest.rs"),
        include_str!("../../conformance/lock.rs"),
        include_str!("../../conformance/oracle.rs"),
        include_str!("../../conformance/refund.rs"),
        include_str!("../../conformance/waits.rs"),
    ];
    let lines = sources.iter().flat_map(|source| source.lines());
    let parts = lines
        .filter(|line| line.starts_with("pub(crate) fn ") && line.contains("&mut impl Backend)"));
    assert_eq!(SUITE.len(), parts.count());
}

/// Runs all of it.
pub(crate) fn suite(clocked: &mut Clocked) {
    for part in SUITE {
        clocked.renew();
        part(clocked);
    }
}
