//! Random batches, at times that hurt.

use fastrand::Rng;
use tollgate::{
    Standing, Timestamp,
    algorithm::Meter,
    store::{Hit, MAX_HITS},
};

use super::{Kind, calendar, meters, quotas};
use crate::{script::Request, tally};

const MAX_REQUESTS: usize = 64;
const MAX_BATCH_HITS: usize = 128;
const KEYS: usize = 24;
const HOUR: u64 = 3_600_000_000;
/// From 2001 to 2096: all have 16 digits.
const TIMES: std::ops::Range<u64> = 1_000_000_000_000_000..4_000_000_000_000_000;

/// Keys, and the limits of an epoch: each key has one, and sometimes meets others.
pub(crate) struct Pool(Vec<(String, Vec<Meter>)>);

pub(crate) struct Trace {
    rng: Rng,
    kind: Kind,
    now: u64,
    /// Waits that were answered, to come back at their end.
    waits: Vec<u64>,
    tally: Tally,
}

/// What a run has tried.
#[derive(Debug, Default)]
struct Tally {
    admitted: usize,
    denied: usize,
    back: usize,
    looks: usize,
    excessive: usize,
}

impl Trace {
    pub(crate) fn new(seed: u64, kind: Kind) -> Self {
        let mut rng = Rng::with_seed(seed);
        let now = rng.u64(TIMES);
        Self { rng, kind, now, waits: Vec::new(), tally: Tally::default() }
    }

    pub(crate) fn pool(&mut self) -> Pool {
        let key = |at| (format!("{{key:{at}}}"), meters::any(&mut self.rng, self.kind));
        Pool((0..KEYS).map(key).collect())
    }

    /// The next requests, and when they come.
    pub(crate) fn batch<'a>(&mut self, pool: &'a Pool) -> (Vec<Request<'a>>, Timestamp) {
        self.step();
        let rng = &mut self.rng;
        // Few keys in most batches, so that they repeat.
        let hot = if rng.u8(..4) == 0 { KEYS } else { rng.usize(1..=6) };
        let most = rng.usize(1..=MAX_REQUESTS);
        let (mut requests, mut hits) = (Vec::new(), 0);
        while requests.len() < most {
            let limits = if rng.bool() { 1 } else { rng.usize(1..=MAX_HITS.min(hot)) };
            if hits + limits > MAX_BATCH_HITS {
                break;
            }
            hits += limits;
            let mut keys: Vec<usize> = (0..hot).collect();
            rng.shuffle(&mut keys);
            requests.push(keys[..limits].iter().map(|key| hit(rng, pool, *key)).collect());
        }
        (requests, Timestamp::from_micros(self.now))
    }

    /// Moves the clock.
    fn step(&mut self) {
        let rng = &mut self.rng;
        let wait = self.waits.get(rng.usize(..self.waits.len().max(1))).copied().unwrap_or(1);
        let before = self.now;
        self.now = match rng.u8(..100) {
            0..25 => before,
            25..40 => before + rng.u64(1..4),
            40..60 => before + wait,
            60..70 => before + wait.saturating_sub(1),
            70..85 => before + quotas::up_to(rng, HOUR),
            85..88 => before + quotas::up_to(rng, 1_000 * 24 * HOUR),
            88..90 => calendar::boundary(rng) + rng.u64(..5) - 2,
            90..99 => before - quotas::up_to(rng, HOUR),
            _ => rng.u64(TIMES),
        };
        if !TIMES.contains(&self.now) {
            self.now = rng.u64(TIMES);
        }
        self.tally.back += usize::from(self.now < before);
    }

    /// The column of the record that a batch counts in.
    pub(crate) fn column(&self, batch: &[Request<'_>]) -> &'static str {
        if self.kind == Kind::Mixed { tally::MIXED } else { tally::column(batch[0][0].meter) }
    }

    /// Takes note of what came out.
    pub(super) fn learn(&mut self, batch: &[Request<'_>], standings: &[Standing]) {
        self.waits.clear();
        let mut standings = standings.iter();
        for request in batch {
            let mut fit = true;
            for (hit, standing) in request.iter().zip(standings.by_ref()) {
                let wait = standing.wait().map_or(0, |wait| wait.as_micros());
                self.waits.extend(u64::try_from(wait).ok().filter(|wait| *wait > 0));
                self.tally.looks += usize::from(hit.cost == 0);
                self.tally.excessive += usize::from(standing.wait().is_none());
                fit &= hit.shadow || standing.fits();
            }
            self.tally.admitted += usize::from(fit);
            self.tally.denied += usize::from(!fit);
        }
    }

    /// A run that mostly denies, or never goes back in time, would prove little.
    pub(super) fn assert_thorough(&self, steps: usize) {
        let Tally { admitted, denied, back, looks, excessive } = self.tally;
        // Large costs of small limits are denied more often than not.
        let few = if self.kind == Kind::TokenBucket { 4 } else { 16 };
        for count in [admitted * few, denied * few, looks * 20, excessive * 20, back * 1_000] {
            assert!(count > steps, "too little of something: {:?} of {steps}", self.tally);
        }
    }
}

fn hit<'a>(rng: &mut Rng, pool: &'a Pool, key: usize) -> Hit<'a> {
    let (name, limits) = &pool.0[key];
    let meter = limits[if rng.u8(..16) == 0 { rng.usize(..limits.len()) } else { 0 }];
    let burst = meters::limit(&meter);
    let cost = match rng.u8(..32) {
        0..4 => 0,
        4..16 => 1,
        16..26 => quotas::up_to(rng, burst),
        26..29 => burst,
        29 => burst + 1,
        30 => quotas::up_to(rng, u64::MAX),
        _ => u64::MAX,
    };
    let shadow = rng.u8(..8) == 0;
    Hit { key: name.as_bytes(), meter, cost, shadow }
}
