//! The scripts grant exactly what a quota says.

#![cfg(test)]

#[path = "../conformance/mod.rs"]
mod conformance;

use tollgate::{Algorithm, Calendar, Quota, Standing, Timestamp, algorithm::Meter, store::Hit};

use self::conformance::{Backend, calendar, exact, oracle, waits};
use crate::{
    script::{Joined, Kept, Request},
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
            .map(|(key, cost)| vec![Hit { key: key.as_bytes(), meter, cost: *cost, shadow: false }])
            .collect();
        let (found, _) = self.acquire(&batch, now);
        batch.iter().zip(found).map(|(request, found)| found.standing(&request[0], now)).collect()
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
async fn units_of_the_calendar_begin_and_end_by_the_table() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let meter =
        |unit: Calendar| Algorithm::Calendar(unit).meter(Quota::new(9, unit.nominal()).unwrap());
    // A double holds whole microseconds until the year 2255.
    let mut table = calendar::table();
    table.retain(|row| row.1 < 1 << 53);
    for moments in table.chunk_by(|a, b| a.1 == b.1) {
        let names: Vec<String> =
            moments.iter().map(|(unit, at, ..)| format!("{at}:{unit:?}")).collect();
        let hits = names.iter().zip(moments).map(|(name, row)| Hit {
            key: name.as_bytes(),
            meter: meter(row.0),
            cost: 1,
            shadow: false,
        });
        let (_, written) = lua.acquire(&[hits.collect()], Timestamp::from_micros(moments[0].1));
        assert_eq!(written.len(), moments.len());
        for ((unit, at, first, next), write) in moments.iter().zip(written) {
            assert_eq!(write.kept, Kept::Text(format!("{first} 1")), "{unit:?} at {at}");
            assert_eq!(write.ttl, (next - at).div_ceil(1_000) + 1, "{unit:?} at {at}");
        }
    }
}

#[tokio::test]
async fn no_step_back_locks_for_longer_than_a_refill() {
    let server = RedisServer::start().await;
    exact::no_step_back_locks_for_longer_than_a_refill(&mut Joined::load(&server));
}
