//! What a bucket grants is exact to the unit, and its waits to the microsecond, on every backend.

use std::time::Duration;

use tollgate::{Quota, Standing, Timestamp};

use super::{Backend, START};

const PERIODS: [u64; 7] = [1, 7, 10, 60, 3_600, 86_400, 30 * 86_400];
const PICOS_PER_SEC: u128 = 1_000_000_000_000;
const PICOS_PER_MICRO: u128 = 1_000_000;

/// Rates of 1 to 600 over periods of a second to a month, each with a name.
fn table() -> impl Iterator<Item = (String, Quota)> {
    PERIODS.into_iter().flat_map(|secs| {
        (1..=600).map(move |quantity| {
            let quota = Quota::new(quantity, Duration::from_secs(secs)).unwrap();
            (quota.to_string(), quota)
        })
    })
}

/// Picoseconds until a unit comes back.
fn unit(quota: Quota) -> u128 {
    (quota.period().as_nanos() * 1_000).div_ceil(u128::from(quota.quantity()))
}

fn after(span: u128) -> Timestamp {
    Timestamp::from_micros(START + u64::try_from(span).unwrap())
}

/// The first request leaves all units but its own, and each of them can be taken, but not one more.
pub(crate) fn all_units_and_no_more(buckets: &mut impl Backend) {
    for (name, quota) in table().step_by(buckets.in_part() as usize) {
        let whole = quota.quantity();
        let mut left = whole;
        while left > 0 {
            let some = left.min(64);
            let asks = vec![(name.as_str(), 1); usize::try_from(some).unwrap()];
            for standing in buckets.ask(quota, after(0), &asks) {
                left -= 1;
                assert!(standing.fits(), "{name}: {left} of {whole} left");
                assert_eq!(standing.remaining(), left, "{name}");
            }
        }
        let more = buckets.ask(quota, after(0), &[(&name, 1)])[0];
        assert!(!more.fits(), "{name}: more than all");
        assert_eq!(more.remaining(), 0, "{name}");
    }
}

/// Who is denied is told when the same request passes: not a microsecond later than it does, nor
/// one earlier.
pub(crate) fn waits_to_the_microsecond(buckets: &mut impl Backend) {
    for (name, quota) in table().step_by(buckets.in_part() as usize) {
        let whole = quota.quantity();
        for (at, cost) in [1, whole / 2 + 1, whole].into_iter().enumerate() {
            let key = format!("{name}:{at}");
            let wait = (u128::from(cost) * unit(quota)).div_ceil(PICOS_PER_MICRO);
            let told = |standing: &Standing| standing.wait().map(|wait| wait.as_micros());

            let asks = [(key.as_str(), whole), (key.as_str(), cost)];
            let denied = buckets.ask(quota, after(0), &asks)[1];
            assert_eq!((denied.fits(), told(&denied)), (false, Some(wait)), "{cost} of {name}");

            let early = buckets.ask(quota, after(wait - 1), &[(&key, cost)])[0];
            assert_eq!((early.fits(), told(&early)), (false, Some(1)), "{cost} of {name}, early");

            let punctual = buckets.ask(quota, after(wait), &[(&key, cost)])[0];
            assert!(punctual.fits(), "{cost} of {name}, after the wait");
        }
    }
}

/// A clock that steps back makes a key wait for no longer than one full refill, however often it is
/// asked for meanwhile, and gives nothing away.
pub(crate) fn no_step_back_locks_for_longer_than_a_refill(buckets: &mut impl Backend) {
    let quota = Quota::per_minute(60).burst(10);
    let at = |secs: u64| Timestamp::from_micros(START - secs * 1_000_000);
    for step in [1, 11, 60, 86_400, 20 * 365 * 86_400] {
        let key = step.to_string();
        assert!(buckets.ask(quota, at(0), &[(&key, 10)])[0].fits());
        assert!(!buckets.ask(quota, at(step), &[(&key, 1)])[0].fits(), "{step} s back");
        // One unit has come back a second later, two of them have not.
        let asks = [(key.as_str(), 2), (key.as_str(), 1)];
        let fits: Vec<_> =
            buckets.ask(quota, at(step - 1), &asks).iter().map(Standing::fits).collect();
        assert_eq!(fits, [false, true], "{step} s back");
    }
}

/// Rates whose units come back within less than the clock shows, or not in whole steps of it.
fn rates() -> [Quota; 9] {
    [
        Quota::per_second(1_500),
        Quota::per_second(1_001),
        Quota::per_second(3),
        Quota::per_minute(7),
        Quota::per_day(1),
        Quota::per_second(10_000_000),
        Quota::per_second(333_333),
        Quota::per_second(1_000_000_000),
        Quota::per_day(1 << 40),
    ]
}

/// Over a long time, who takes what there is as soon as he is told to gets the whole rate, and
/// never more.
pub(crate) fn patient_callers_get_the_rate(buckets: &mut impl Backend) {
    for quota in rates() {
        drain(buckets, quota, "patient", 2_000, |standing| standing.wait().unwrap().as_micros());
    }
}

/// So does who asks far more often than a unit comes back: what has come back in part is not lost.
pub(crate) fn hasty_callers_get_the_rate(buckets: &mut impl Backend) {
    for quota in rates().into_iter().filter(|quota| quota.capacity() > 1) {
        let gap = (unit(quota) / PICOS_PER_MICRO / 7).max(1);
        drain(buckets, quota, "hasty", 10_000, |_| gap);
    }
}

/// Takes everything there is, again and again.
fn drain(
    buckets: &mut impl Backend,
    quota: Quota,
    who: &str,
    rounds: u32,
    gap: impl Fn(Standing) -> u128,
) {
    let key = format!("{who}:{quota}");
    let all = [(key.as_str(), quota.capacity()), (key.as_str(), 0)];
    let mut empty = buckets.ask(quota, after(0), &all)[1];
    let (mut elapsed, mut taken) = (0, 0);
    for _ in 0..rounds / buckets.in_part() {
        elapsed += gap(empty);
        empty = buckets.ask(quota, after(elapsed), &[(&key, 0)])[0];
        let back = empty.remaining();
        if back > 0 {
            let take = [(key.as_str(), back), (key.as_str(), 0)];
            let [took, look] = buckets.ask(quota, after(elapsed), &take)[..] else { panic!() };
            assert!(took.fits(), "{key}: what is left can be taken");
            taken += u128::from(back);
            empty = look;
        }
        assert_eq!(empty.remaining(), 0, "{key}");
    }
    let elapsed = elapsed * PICOS_PER_MICRO;
    assert_eq!(taken, elapsed / unit(quota), "{key}: every unit that came back");
    // The same in terms of the quota: units times the time of one, against the time that passed.
    let earned = taken * quota.period().as_nanos() * 1_000;
    let due = elapsed * u128::from(quota.quantity());
    assert!(earned <= due, "{key}: more than the rate");
    // The unit that has not come back in full yet is not lost.
    let lost = due - earned - (due - earned).min(quota.period().as_nanos() * 1_000);
    assert!(lost * 1_000 <= due, "{key}: {taken} units in {} s", elapsed / PICOS_PER_SEC);
}
