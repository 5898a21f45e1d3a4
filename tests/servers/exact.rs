//! The scripts grant exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/mod.rs"]
pub(crate) mod conformance;

use tollgate::{
    Algorithm, Calendar, Quota, Stamp, Standing, Timestamp,
    algorithm::Meter,
    store::{Hit, Refund},
};

use self::conformance::{Backend, calendar, exact, latest, lock, lock_name, oracle, refund, waits};
use crate::{
    script::{Found, Joined, Kept, Request},
    support::RedisServer,
};

impl Backend for Joined {
    fn together(&mut self, micros: u64, hits: &[Hit<'_>]) -> Vec<Standing> {
        let now = Timestamp::from_micros(micros);
        let (found, _) = self.acquire(&[hits.to_vec()], now);
        hits.iter().zip(found).map(|(hit, found)| found.standing(hit, now)).collect()
    }

    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        let batch: Vec<Request<'_>> = asks
            .iter()
            .map(|(key, cost)| {
                vec![Hit { key: key.as_bytes(), meter, cost: *cost, shadow: false, lease: 0 }]
            })
            .collect();
        let (found, _) = self.acquire(&batch, now);
        batch.iter().zip(found).map(|(request, found)| found.standing(&request[0], now)).collect()
    }

    fn guarded(&mut self, meters: [Meter; 2], micros: u64, key: &str, cost: u64) -> [Standing; 2] {
        let (names, now) = ([key.to_owned(), lock_name(key)], Timestamp::from_micros(micros));
        let hits = [0, 1].map(|at| Hit {
            key: names[at].as_bytes(),
            meter: meters[at],
            cost,
            shadow: false,
            lease: 0,
        });
        let (found, _) = self.acquire(&[hits.to_vec()], now);
        let standings = [0, 1].map(|at| found[at].standing(&hits[at], now));
        // The script charges by what it says, and callers see what follows from that.
        let admitted = |found: &Found| matches!(found, Found::Read { admitted: true, .. });
        assert_eq!(found.iter().all(admitted), standings.iter().all(Standing::fits), "{key}");
        standings
    }

    fn refund(&mut self, meter: Meter, micros: u64, key: &str, units: u64, stamp: Stamp) {
        let refund = Refund { key: key.as_bytes(), meter, units, stamp };
        self.refund(&[refund], Timestamp::from_micros(micros));
    }

    fn reset(&mut self, key: &str) {
        self.server().command(&["DEL", key]);
    }
}

#[tokio::test]
async fn a_request_charges_all_of_its_limits_or_none() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    conformance::all_or_none::a_request_charges_all_of_its_limits_or_none(&mut lua);
}

#[tokio::test]
async fn all_units_and_no_more() {
    let server = RedisServer::start().await;
    exact::all_units_and_no_more(&mut Joined::load(&server));
}

#[tokio::test]
async fn waits_to_the_microsecond() {
    let server = RedisServer::start().await;
    exact::waits_to_the_microsecond(&mut Joined::load(&server));
}

#[tokio::test]
async fn patient_callers_get_the_rate() {
    let server = RedisServer::start().await;
    exact::patient_callers_get_the_rate(&mut Joined::load(&server));
}

#[tokio::test]
async fn hasty_callers_get_the_rate() {
    let server = RedisServer::start().await;
    exact::hasty_callers_get_the_rate(&mut Joined::load(&server));
}

#[tokio::test]
async fn waits_of_windows_to_the_microsecond() {
    let server = RedisServer::start().await;
    waits::waits_of_windows_to_the_microsecond(&mut Joined::load(&server));
}

#[tokio::test]
async fn windows_hold_all_units_and_no_more() {
    let server = RedisServer::start().await;
    waits::windows_hold_all_units_and_no_more(&mut Joined::load(&server));
}

#[tokio::test]
async fn looks_take_nothing() {
    let server = RedisServer::start().await;
    waits::looks_take_nothing(&mut Joined::load(&server));
}

#[tokio::test]
async fn windows_answer_as_an_oracle_does() {
    let server = RedisServer::start().await;
    oracle::windows_answer_as_an_oracle_does(&mut Joined::load(&server));
}

#[tokio::test]
async fn units_begin_and_end_by_the_table() {
    let server = RedisServer::start().await;
    calendar::units_begin_and_end_by_the_table(&mut Joined::load(&server));
}

#[tokio::test]
async fn states_of_the_calendar_are_kept_by_the_table() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let meter =
        |unit: Calendar| Algorithm::Calendar(unit).meter(Quota::new(9, unit.nominal()).unwrap());
    let mut table = calendar::table();
    table.retain(|row| row.1 < calendar::EXACT);
    for moments in table.chunk_by(|a, b| a.1 == b.1) {
        let names: Vec<String> =
            moments.iter().map(|(unit, at, ..)| format!("{at}:{unit:?}")).collect();
        let hits = names.iter().zip(moments).map(|(name, row)| Hit {
            key: name.as_bytes(),
            meter: meter(row.0),
            cost: 1,
            shadow: false,
            lease: 0,
        });
        let (_, written) = lua.acquire(&[hits.collect()], Timestamp::from_micros(moments[0].1));
        assert_eq!(written.len(), moments.len());
        for ((unit, at, first, next), name) in moments.iter().zip(&names) {
            let write = written.iter().find(|write| write.key == *name).expect("it was written");
            assert_eq!(write.kept, Kept::Text(format!("{first} 1")), "{unit:?} at {at}");
            assert_eq!(write.until, next / 1_000_000 + 1, "{unit:?} at {at}");
        }
    }
}

#[tokio::test]
async fn no_step_back_locks_for_longer_than_a_refill() {
    let server = RedisServer::start().await;
    exact::no_step_back_locks_for_longer_than_a_refill(&mut Joined::load(&server));
}

#[tokio::test]
async fn windows_with_refunds_answer_as_an_oracle_does() {
    let server = RedisServer::start().await;
    oracle::windows_with_refunds_answer_as_an_oracle_does(&mut Joined::load(&server));
}

#[tokio::test]
async fn all_comes_back_at_once_in_whole_or_in_parts() {
    let server = RedisServer::start().await;
    refund::all_comes_back_at_once_in_whole_or_in_parts(&mut Joined::load(&server));
}

#[tokio::test]
async fn what_another_charge_took_stays_taken() {
    let server = RedisServer::start().await;
    refund::what_another_charge_took_stays_taken(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_bucket_gives_back_no_more_than_the_charge_has_left() {
    let server = RedisServer::start().await;
    refund::a_bucket_gives_back_no_more_than_the_charge_has_left(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_charge_that_counts_no_longer_gives_back_nothing() {
    let server = RedisServer::start().await;
    refund::a_charge_that_counts_no_longer_gives_back_nothing(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_log_gives_back_to_the_last_microsecond() {
    let server = RedisServer::start().await;
    refund::a_log_gives_back_to_the_last_microsecond(&mut Joined::load(&server));
}

#[tokio::test]
async fn windows_give_back_until_they_end() {
    let server = RedisServer::start().await;
    refund::windows_give_back_until_they_end(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_log_gives_back_what_a_step_of_the_clock_brought_here() {
    let server = RedisServer::start().await;
    refund::a_log_gives_back_what_a_step_of_the_clock_brought_here(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_refund_from_after_now_leaves_no_more_than_the_limit() {
    let server = RedisServer::start().await;
    refund::a_refund_from_after_now_leaves_no_more_than_the_limit(&mut Joined::load(&server));
}

#[tokio::test]
async fn nothing_comes_back_to_a_key_that_is_not_there() {
    let server = RedisServer::start().await;
    refund::nothing_comes_back_to_a_key_that_is_not_there(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_key_that_is_forgotten_begins_anew() {
    let server = RedisServer::start().await;
    refund::a_key_that_is_forgotten_begins_anew(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_bucket_with_refunds_keeps_its_bound() {
    let server = RedisServer::start().await;
    refund::a_bucket_with_refunds_keeps_its_bound(&mut Joined::load(&server));
}

#[tokio::test]
async fn the_denial_of_the_number_locks() {
    let server = RedisServer::start().await;
    lock::the_denial_of_the_number_locks(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_lock_ends_to_the_microsecond() {
    let server = RedisServer::start().await;
    lock::a_lock_ends_to_the_microsecond(&mut Joined::load(&server));
}

#[tokio::test]
async fn asking_does_not_prolong_a_lock() {
    let server = RedisServer::start().await;
    lock::asking_does_not_prolong_a_lock(&mut Joined::load(&server));
}

#[tokio::test]
async fn denials_are_forgotten_a_refill_after_the_first() {
    let server = RedisServer::start().await;
    lock::denials_are_forgotten_a_refill_after_the_first(&mut Joined::load(&server));
}

#[tokio::test]
async fn no_step_of_the_clock_locks_for_longer() {
    let server = RedisServer::start().await;
    lock::no_step_of_the_clock_locks_for_longer(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_changed_length_only_shortens_what_is_locked() {
    let server = RedisServer::start().await;
    lock::a_changed_length_only_shortens_what_is_locked(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_lock_that_is_forgotten_is_lifted() {
    let server = RedisServer::start().await;
    lock::a_lock_that_is_forgotten_is_lifted(&mut Joined::load(&server));
}

#[tokio::test]
async fn so_many_units_come_back_and_no_more() {
    let server = RedisServer::start().await;
    latest::so_many_units_come_back_and_no_more(&mut Joined::load(&server));
}

#[tokio::test]
async fn what_was_taken_before_stays_taken() {
    let server = RedisServer::start().await;
    latest::what_was_taken_before_stays_taken(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_bucket_gets_the_time_of_its_units() {
    let server = RedisServer::start().await;
    latest::a_bucket_gets_the_time_of_its_units(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_log_loses_its_latest_units() {
    let server = RedisServer::start().await;
    latest::a_log_loses_its_latest_units(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_large_log_loses_just_so_many() {
    let server = RedisServer::start().await;
    latest::a_large_log_loses_just_so_many(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_counter_loses_those_of_its_window_first() {
    let server = RedisServer::start().await;
    latest::a_counter_loses_those_of_its_window_first(&mut Joined::load(&server));
}

#[tokio::test]
async fn a_window_loses_those_of_the_present_one() {
    let server = RedisServer::start().await;
    latest::a_window_loses_those_of_the_present_one(&mut Joined::load(&server));
}

#[tokio::test]
async fn what_lies_ahead_is_brought_back_first() {
    let server = RedisServer::start().await;
    latest::what_lies_ahead_is_brought_back_first(&mut Joined::load(&server));
}

#[tokio::test]
async fn nothing_comes_back_where_nothing_was_taken() {
    let server = RedisServer::start().await;
    latest::nothing_comes_back_where_nothing_was_taken(&mut Joined::load(&server));
}
