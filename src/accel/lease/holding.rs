use smallvec::SmallVec;

use crate::{algorithm::Meter, decision::Standing, time::Timestamp};

/// A lease that was used up in less is doubled; one that lasted longer than the other is halved.
const SHORT: u64 = 50_000;
const LONG: u64 = 500_000;

/// What one key has on lease.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) key: Box<[u8]>,
    pub(super) meter: Meter,
    /// Units to ask for at a time.
    size: u64,
    /// When units were asked for last, and used last, by this process's clock.
    asked: u64,
    used: u64,
    /// Whether somebody is asking for more.
    renewing: bool,
    /// The older ones first. There are two only while one is being used up.
    leases: SmallVec<[Lease; 2]>,
}

/// Units that one charge took ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    /// Which charge it was.
    pub(super) charge: u64,
    pub(super) units: u64,
    /// Where the key stood after the charge.
    pub(super) after: Standing,
    /// When that was, by the store's clock.
    pub(super) then: Timestamp,
    /// When the store was asked, by this process's clock. From then on time counts, so that nothing is
    /// used later than it may be.
    pub(super) asked: u64,
}

/// Units that were used.
#[derive(Debug)]
pub(super) struct Taken {
    /// Of which charges, and how many of each.
    charges: SmallVec<[(u64, u64); 2]>,
    /// The time by the store's clock, at most.
    pub(super) now: Timestamp,
    pub(super) standing: Standing,
}

impl Lease {
    fn now(&self, now: u64) -> Timestamp {
        let passed = now.saturating_sub(self.asked);
        Timestamp::from_micros(self.then.as_micros().saturating_add(passed))
    }
}

impl Holding {
    pub(super) fn new(key: &[u8], meter: Meter, now: u64) -> Self {
        Self {
            key: key.into(),
            meter,
            size: 1,
            // Of how long one unit lasts, nothing is known yet.
            asked: now.saturating_sub(SHORT),
            used: now,
            renewing: false,
            leases: SmallVec::new(),
        }
    }

    /// Units that may be used at `now`. What lapsed is let go.
    pub(super) fn left(&mut self, now: u64) -> u64 {
        for lease in &mut self.leases {
            lease.units = self.meter.usable(lease.units, lease.after, lease.now(now));
        }
        self.leases.retain(|lease| lease.units > 0);
        self.leases.iter().map(|lease| lease.units).sum()
    }

    /// Uses `cost` units at `now`, if they are there.
    pub(super) fn take(&mut self, cost: u64, now: u64) -> Option<Taken> {
        let held = self.left(now);
        if held < cost {
            return None;
        }
        self.used = now;
        let last = *self.leases.last()?;
        let (mut charges, mut missing, mut stamp) = (SmallVec::new(), cost, None);
        for lease in self.leases.iter_mut().filter(|lease| lease.units > 0) {
            let units = lease.units.min(missing);
            lease.units -= units;
            missing -= units;
            charges.push((lease.charge, units));
            // The units that come back first are used first; these are known by when they are back.
            stamp.get_or_insert_with(|| self.meter.rest(lease.after.stamp, lease.units));
            if missing == 0 {
                break;
            }
        }
        let now = last.now(now);
        let standing = self.meter.standing_of_held(last.after, held, cost, now);
        let stamp = stamp.unwrap_or(standing.stamp);
        Some(Taken { charges, now, standing: Standing { stamp, ..standing } })
    }

    /// Puts units back that were taken, as far as their leases are still there.
    pub(super) fn put_back(&mut self, taken: &Taken) {
        for (charge, units) in &taken.charges {
            if let Some(lease) = self.leases.iter_mut().find(|lease| lease.charge == *charge) {
                lease.units += units;
            }
        }
    }

    /// Takes units in.
    pub(super) fn keep(&mut self, lease: Lease) {
        if lease.units > 0 {
            self.leases.push(lease);
        }
    }

    /// Whether it is time to ask for more, while there still is some.
    pub(super) fn runs_low(&self) -> bool {
        let left: u64 = self.leases.iter().map(|lease| lease.units).sum();
        !self.renewing && self.leases.len() < 2 && self.size > 1 && left <= self.size / 2
    }

    /// Units to ask for at `now` when `cost` are wanted, so that no more than `most` are held. As much
    /// as the last times suggest.
    pub(super) fn ask(&mut self, cost: u64, most: u64, now: u64) -> u64 {
        let lasted = now.saturating_sub(self.asked);
        if lasted < SHORT {
            self.size = self.size.saturating_mul(2);
        } else if lasted > LONG {
            self.size /= 2;
        }
        self.size = self.size.clamp(1, most.max(1));
        self.asked = now;
        self.used = now;
        let left: u64 = self.leases.iter().map(|lease| lease.units).sum();
        // What is used at once is not held.
        cost.saturating_add(self.size.min(most.saturating_sub(left)).saturating_sub(cost))
    }

    /// The store had less than was asked for.
    pub(super) fn shrink(&mut self) {
        self.size = (self.size / 2).max(1);
    }

    pub(super) fn renewing(&mut self, renewing: bool) {
        self.renewing = renewing;
    }

    pub(super) const fn is_renewing(&self) -> bool {
        self.renewing
    }

    pub(super) fn is_idle(&self, now: u64, after: u64) -> bool {
        !self.renewing && now.saturating_sub(self.used) >= after
    }

    /// All leases that are left.
    pub(super) fn into_leases(self) -> impl Iterator<Item = Lease> {
        self.leases.into_iter()
    }
}
