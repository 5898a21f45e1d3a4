//! Random batches, at times that hurt.

use std::time::Duration;

use fastrand::Rng;
use tollgate::{Lockout, Quota, Stamp, Standing, Timestamp, algorithm::Meter, store::Hit};

use super::{Kind, calendar, meters, quotas};
use crate::script::Request;

const MAX_REQUESTS: usize = 64;
const MAX_BATCH_HITS: usize = 128;
const KEYS: usize = 24;
const HOUR: u64 = 3_600_000_000;
/// From 2001 to 2096: all have 16 digits.
const TIMES: std::ops::Range<u64> = 1_000_000_000_000_000..4_000_000_000_000_000;

/// The most limits of one request.
const MAX_LIMITS: usize = 8;

/// Keys, and the limits of an epoch: each key has one, and sometimes meets others.
pub(crate) struct Pool(Vec<Counted>);

struct Counted {
    key: String,
    limits: Vec<Meter>,
    /// The name of its lock, and what locks it.
    lock: (String, Vec<Meter>),
}

/// Units that were taken, by which they may be given back.
#[derive(Clone, Debug)]
pub(crate) struct Charged {
    pub(crate) key: Vec<u8>,
    pub(crate) meter: Meter,
    pub(crate) units: u64,
    pub(crate) stamp: Stamp,
}

pub(crate) struct Trace {
    rng: Rng,
    kind: Kind,
    now: u64,
    place: Place,
    /// Waits that were answered, to come back at their end.
    waits: Vec<u64>,
    charged: Vec<Charged>,
    tally: Tally,
}

/// Where the keys of a pool lie.
#[allow(dead_code, reason = "only clusters have slots")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    OneServer,
    /// Another one for each pool.
    OneSlot,
    /// What was charged in one and given back, as another denied, leaves the time of the charge behind: so
    /// time only goes forward.
    SeveralSlots,
}

/// What a run has tried.
#[derive(Debug, Default)]
struct Tally {
    admitted: usize,
    denied: usize,
    back: usize,
    looks: usize,
    excessive: usize,
    given_back: usize,
    locked: usize,
    /// Requests of batches in which each has one limit and nothing else.
    plain: usize,
    /// Those of them that are as the one before them, but for the key.
    alike: usize,
}

impl Trace {
    pub(crate) fn new(seed: u64, kind: Kind) -> Self {
        Self::on(Place::OneServer, seed, kind)
    }

    pub(crate) fn on(place: Place, seed: u64, kind: Kind) -> Self {
        let mut rng = Rng::with_seed(seed);
        let now = rng.u64(TIMES);
        let (waits, charged, tally) = (Vec::new(), Vec::new(), Tally::default());
        Self { rng, kind, now, place, waits, charged, tally }
    }

    pub(crate) fn pool(&mut self) -> Pool {
        self.charged.clear();
        let rng = &mut self.rng;
        let kind = self.kind;
        // Often as behind one policy, so that requests are alike but for their keys.
        let of_all = rng.bool().then(|| meters::any(rng, kind));
        let (place, tag) = (self.place, rng.u32(..));
        if place == Place::SeveralSlots {
            self.now = rng.u64(TIMES);
        }
        let counted = |at| {
            let key = match place {
                Place::OneSlot => format!("{{{tag:x}}}key:{at}"),
                _ => format!("{{key:{at}}}"),
            };
            Counted {
                limits: of_all.clone().unwrap_or_else(|| meters::any(rng, kind)),
                lock: (format!("{key}:lk"), (0..2).map(|_| lock(rng)).collect()),
                key,
            }
        };
        Pool((0..KEYS).map(counted).collect())
    }

    /// Charges to be given back, of different keys; sometimes a part, sometimes for a second time.
    pub(crate) fn refunds(&mut self) -> Vec<Charged> {
        let mut refunds: Vec<Charged> = Vec::new();
        for _ in 0..self.rng.usize(..=4) {
            // Often one of this very moment.
            let old = if self.rng.bool() { self.charged.len().saturating_sub(8) } else { 0 };
            let Some(charged) = self.rng.choice(&self.charged[old..]) else { break };
            let units = self.rng.u64(1..=charged.units);
            let units = if self.rng.bool() { charged.units } else { units };
            // Sometimes of whichever were the latest, and then also more than that.
            let latest = self.rng.u8(..4) == 0;
            let stamp = if latest { Stamp::LATEST } else { charged.stamp };
            let units = match self.rng.u8(..8) {
                0 if latest => quotas::up_to(&mut self.rng, u64::MAX).max(1),
                1 if latest => units.saturating_mul(2),
                _ => units,
            };
            if refunds.iter().all(|other| other.key != charged.key) {
                refunds.push(Charged { units, stamp, ..charged.clone() });
            }
        }
        self.tally.given_back += refunds.len();
        refunds
    }

    /// A key to be forgotten.
    pub(crate) fn reset<'a>(&mut self, pool: &'a Pool) -> &'a str {
        let counted = &pool.0[self.rng.usize(..KEYS)];
        if self.rng.bool() { &counted.key } else { &counted.lock.0 }
    }

    /// Whether now, once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.rng.usize(..times) == 0
    }

    /// The next requests, and when they come.
    pub(crate) fn batch<'a>(&mut self, pool: &'a Pool) -> (Vec<Request<'a>>, Timestamp) {
        self.step();
        let rng = &mut self.rng;
        // Few keys in most batches, so that they repeat.
        let hot = if rng.u8(..4) == 0 { KEYS } else { rng.usize(1..=6) };
        let most = rng.usize(1..=MAX_REQUESTS);
        // Often of requests with one limit and nothing else.
        let plain = rng.u8(..3) == 0;
        let (mut requests, mut hits) = (Vec::new(), 0);
        while requests.len() < most {
            let one = plain || rng.bool();
            let limits = if one { 1 } else { rng.usize(1..=MAX_LIMITS.min(hot)) };
            let mut keys: Vec<usize> = (0..hot).collect();
            rng.shuffle(&mut keys);
            let locks = self.kind == Kind::Mixed && !plain;
            let mut request: Request<'_> =
                keys[..limits].iter().flat_map(|key| guarded(rng, &pool.0[*key], locks)).collect();
            if plain {
                request[0].shadow = false;
            }
            hits += request.len();
            if hits > MAX_BATCH_HITS {
                break;
            }
            requests.push(request);
        }
        if plain {
            self.tally.plain += requests.len();
            let alike = |pair: &[Request<'_>]| {
                let [one, next] = [&pair[0][0], &pair[1][0]];
                one.meter == next.meter && one.cost == next.cost
            };
            self.tally.alike += requests.windows(2).filter(|pair| alike(pair)).count();
        }
        (requests, Timestamp::from_micros(self.now))
    }

    /// A further moment.
    pub(crate) fn tick(&mut self) -> Timestamp {
        self.step();
        Timestamp::from_micros(self.now)
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
        if self.place == Place::SeveralSlots {
            self.now = self.now.max(before);
        }
        self.tally.back += usize::from(self.now < before);
    }

    /// Takes note of what came out.
    pub(crate) fn learn(&mut self, batch: &[Request<'_>], standings: &[Standing]) {
        self.waits.clear();
        let mut standings = standings.iter();
        for request in batch {
            let mut fit = true;
            let mut charged = Vec::new();
            for (hit, standing) in request.iter().zip(standings.by_ref()) {
                if hit.meter.guards() {
                    self.tally.locked += usize::from(!standing.fits());
                    fit &= standing.fits();
                    continue;
                }
                let wait = standing.wait().map_or(0, |wait| wait.as_micros());
                self.waits.extend(u64::try_from(wait).ok().filter(|wait| *wait > 0));
                self.tally.looks += usize::from(hit.cost == 0);
                self.tally.excessive += usize::from(standing.wait().is_none());
                fit &= hit.shadow || standing.fits();
                if standing.fits() && hit.cost > 0 {
                    let (key, meter) = (hit.key.to_vec(), hit.meter);
                    charged.push(Charged { key, meter, units: hit.cost, stamp: standing.stamp() });
                }
            }
            if fit {
                self.charged.extend(charged);
            }
            self.tally.admitted += usize::from(fit);
            self.tally.denied += usize::from(!fit);
        }
    }

    /// A run that mostly denies, or never goes back in time, would prove little.
    pub(crate) fn assert_thorough(&self, steps: usize) {
        let Tally { admitted, denied, back, looks, excessive, given_back, locked, .. } = self.tally;
        // Large costs of small limits are denied more often than not.
        let few = if self.kind == Kind::TokenBucket { 4 } else { 16 };
        for count in [admitted * few, denied * few, looks * 20, excessive * 20] {
            assert!(count > steps, "too little of something: {:?} of {steps}", self.tally);
        }
        let went_back = back * 1_000 > steps;
        assert_eq!(went_back, self.place != Place::SeveralSlots, "{:?} of {steps}", self.tally);
        assert!(given_back * 500 > steps, "little was given back: {:?} of {steps}", self.tally);
        let Tally { plain, alike, .. } = self.tally;
        assert!(plain * 5 > steps && alike * 50 > steps, "{:?} of {steps}", self.tally);
        let locks = self.kind == Kind::Mixed;
        assert_eq!(locked * 100 > steps, locks, "locks: {:?} of {steps}", self.tally);
    }
}

/// A lock, which a limit sets after so many denials.
fn lock(rng: &mut Rng) -> Meter {
    let memory = Duration::from_micros(quotas::up_to(rng, HOUR).max(1_000));
    let length = memory + Duration::from_micros(quotas::up_to(rng, HOUR));
    let quota = Quota::new(1, memory).unwrap();
    Meter::Lock(Lockout::new(length).after(rng.u64(1..=4)).lock(quota))
}

/// A hit, and sometimes a lock that guards it.
fn guarded<'a>(rng: &mut Rng, counted: &'a Counted, locks: bool) -> Vec<Hit<'a>> {
    let hit = hit(rng, counted);
    if !locks || hit.shadow || rng.u8(..4) > 0 {
        return vec![hit];
    }
    let (name, locks) = &counted.lock;
    let meter = locks[usize::from(rng.u8(..16) == 0)];
    let lock = Hit { key: name.as_bytes(), meter, cost: hit.cost, shadow: false, lease: 0 };
    vec![hit, lock]
}

fn hit<'a>(rng: &mut Rng, Counted { key, limits, .. }: &'a Counted) -> Hit<'a> {
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
    Hit { key: key.as_bytes(), meter, cost, shadow, lease: 0 }
}
