//! However many processes charge ahead, no more is admitted than the limit says.

use std::time::Duration;

use fastrand::Rng;
use tollgate::{Algorithm, Limit, Limiter, Quota, Timestamp};

use super::{Shared, settle};

const START: u64 = 1_735_800_000_000_007;

/// When how many units were admitted, by several processes, some of which are killed.
async fn admitted(rng: &mut Rng, limit: &Limit, period: u64) -> Vec<(u64, u64)> {
    let shared = Shared::new();
    let mut instances: Vec<Limiter> = (0..3).map(|_| shared.instance()).collect();
    let (mut now, mut admitted) = (START, Vec::new());
    for _ in 0..400 {
        now += match rng.u8(..16) {
            0..10 => 0,
            10..14 => rng.u64(..period / 50),
            14 => rng.u64(..period / 4),
            _ => rng.u64(..period),
        };
        shared.clock.set(Timestamp::from_micros(now));
        let at = rng.usize(..instances.len());
        if rng.u8(..100) == 0 {
            instances[at] = shared.instance();
        }
        if rng.u8(..100) == 0 {
            instances[at].shutdown().await;
            instances[at] = shared.instance();
        }
        let limit = limit.clone().cost(if rng.bool() { 1 } else { rng.u64(1..=3) });
        for _ in 0..rng.u8(1..8) {
            let decision = instances[at].check(&limit, "k").await.unwrap();
            if decision.is_allowed() {
                admitted.push((now, limit.units()));
            }
            if rng.bool() {
                settle().await;
            }
        }
    }
    admitted
}

#[tokio::test]
async fn a_bucket_admits_its_burst_and_rate_and_no_more() {
    let (mut ahead, seed) = (0, fastrand::u64(..));
    let mut rng = Rng::with_seed(seed);
    for round in 0..16 {
        let (units, period) = (rng.u64(5..200), 1_000 * rng.u64(10..10_000));
        let quota = Quota::new(units, Duration::from_micros(period)).unwrap();
        let quota = quota.try_burst(rng.u64(5..=50)).unwrap_or(quota);
        let limit = Limit::new("l", quota).lease(rng.u64(1..=quota.capacity().min(20)));
        let admitted = admitted(&mut rng, &limit, period).await;
        ahead += admitted.len();
        for (first, (start, _)) in admitted.iter().enumerate() {
            let mut taken = 0;
            for (end, cost) in &admitted[first..] {
                taken += cost;
                let span = u128::from(end - start);
                // burst + rate × time, with both sides times the period.
                let most =
                    u128::from(quota.capacity()) * u128::from(period) + span * u128::from(units);
                let taken = u128::from(taken) * u128::from(period);
                assert!(
                    taken <= most,
                    "round {round}, seed {seed}: {quota}, from {start} to {end}"
                );
            }
        }
    }
    assert!(ahead > 2_000, "little was admitted: {ahead}");
}

#[tokio::test]
async fn a_window_admits_its_limit_and_no_more() {
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for round in 0..16 {
        let (units, period) = (rng.u64(5..200), 1_000 * rng.u64(10..10_000));
        let quota = Quota::new(units, Duration::from_micros(period)).unwrap();
        let limit = Limit::new("l", quota).algorithm(Algorithm::FixedWindow);
        let limit = limit.lease(rng.u64(1..=units.min(20)));
        let admitted = admitted(&mut rng, &limit, period).await;
        let (mut window, mut taken) = (0, 0);
        for (at, cost) in admitted {
            if at / period != window {
                (window, taken) = (at / period, 0);
            }
            taken += cost;
            assert!(taken <= units, "round {round}, seed {seed}: {quota}, at {at}");
        }
    }
}
