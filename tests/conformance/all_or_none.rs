//! Limits of all algorithms in one request: all of them are charged, or none is.

use std::time::Duration;

use tollgate::{Algorithm, Quota, Standing, Timestamp, algorithm::Meter, store::Hit};

use super::{Backend, START, windows};

const WINDOW: u64 = 60_000_000;
const ROUNDS: usize = 30;
const REQUESTS: usize = 60;

/// One limit of a request, and the key that it has for itself.
struct Twin {
    meter: Meter,
    key: String,
    alone: String,
}

/// Each limit of a request answers as it does to requests of its own, which are made where the
/// whole request is admitted, and where it does not fit.
pub(crate) fn a_request_charges_all_of_its_limits_or_none(backend: &mut impl Backend) {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut admitted, mut denied) = (0, 0);
    for round in (0..ROUNDS).step_by(backend.in_part() as usize) {
        let most = rng.u64(4..=40);
        let mut twins = twins(round, most);
        let mut now = START;
        for at in 0..REQUESTS {
            now += if rng.bool() { 0 } else { rng.u64(..WINDOW / 2) };
            rng.shuffle(&mut twins);
            let asked = &twins[..rng.usize(2..=twins.len())];
            let hits: Vec<Hit<'_>> = asked
                .iter()
                .map(|twin| Hit {
                    key: twin.key.as_bytes(),
                    meter: twin.meter,
                    cost: if rng.u8(..16) == 0 { most + 1 } else { rng.u64(..3) },
                    shadow: rng.u8(..8) == 0,
                    lease: 0,
                })
                .collect();
            let context = format!("round {round}, request {at}, seed {seed}: {hits:?} at {now}");

            let left: Vec<u64> = asked
                .iter()
                .map(|twin| backend.one(twin.meter, now, &twin.alone, 0).remaining())
                .collect();
            let fits: Vec<bool> =
                hits.iter().zip(&left).map(|(hit, left)| hit.cost <= *left).collect();
            let admits = hits.iter().zip(&fits).all(|(hit, fits)| hit.shadow || *fits);
            *(if admits { &mut admitted } else { &mut denied }) += 1;

            let standings = backend.together(now, &hits);
            assert_eq!(standings.iter().map(Standing::fits).collect::<Vec<_>>(), fits, "{context}");
            for (((twin, hit), standing), (fits, left)) in
                asked.iter().zip(&hits).zip(&standings).zip(fits.into_iter().zip(left))
            {
                if admits || !fits {
                    let alone = backend.one(twin.meter, now, &twin.alone, hit.cost);
                    assert_eq!(*standing, alone, "{}; {context}", twin.key);
                } else {
                    assert_eq!(standing.remaining(), left, "{}; {context}", twin.key);
                }
            }
            for twin in asked {
                let looks = [(twin.key.as_str(), 0), (twin.alone.as_str(), 0)];
                let after = backend.decide(twin.meter, Timestamp::from_micros(now), &looks);
                assert_eq!(after[0], after[1], "afterwards, {}; {context}", twin.key);
            }
        }
    }
    let few = ROUNDS.div_ceil(backend.in_part() as usize) * REQUESTS / 8;
    assert!(admitted > few && denied > few, "{admitted} admitted, {denied} denied");
}

/// One limit of each algorithm, of so many units.
fn twins(round: usize, units: u64) -> Vec<Twin> {
    let quota = Quota::new(units, Duration::from_micros(WINDOW)).unwrap();
    let mut limits = windows(units, WINDOW);
    limits.push((Algorithm::TokenBucket, Algorithm::TokenBucket.meter(quota)));
    let twin = |(algorithm, meter)| {
        let key = format!("{algorithm:?}:{round}");
        Twin { meter, alone: format!("{key}:alone"), key }
    };
    limits.into_iter().map(twin).collect()
}
