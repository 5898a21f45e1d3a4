use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use smallvec::SmallVec;

use super::{
    Leases,
    holding::{Lease, Taken},
};
use crate::{
    algorithm::Meter,
    decision::Standing,
    store::{Answer, Hit, StoreError, StoreErrorKind},
};

/// Tells charges apart.
static CHARGES: AtomicU64 = AtomicU64::new(0);

/// A request on its way to the store, with more units than it needs.
pub(super) struct Trip {
    leases: Arc<Leases>,
    hits: Vec<Asked>,
    ended: bool,
}

/// A hit of a trip.
pub(super) struct Asked {
    key: Box<[u8]>,
    meter: Meter,
    /// Units that the request needs.
    cost: u64,
    shadow: bool,
    /// What was used here, so that the store is not asked.
    taken: Option<Taken>,
    /// Units that the store is asked for, if they are more or fewer.
    ask: Option<u64>,
}

impl Asked {
    pub(super) fn new(hit: &Hit<'_>, taken: Option<Taken>, ask: Option<u64>) -> Self {
        let Hit { key, meter, cost, shadow, .. } = *hit;
        Self { key: key.into(), meter, cost, shadow, taken, ask }
    }

    fn hit(&self) -> Hit<'_> {
        Hit { shadow: self.shadow, ..Hit::new(&self.key, self.meter, self.units()) }
    }

    /// What the store is asked for.
    const fn units(&self) -> u64 {
        match self.ask {
            Some(units) => units,
            None => self.cost,
        }
    }
}

impl Trip {
    pub(super) const fn new(leases: Arc<Leases>, hits: Vec<Asked>) -> Self {
        Self { leases, hits, ended: false }
    }

    /// Asks the store, a second time for less if it has less, and keeps what is not needed now.
    pub(super) async fn make(mut self) -> Result<Answer, StoreError> {
        let mut asked = self.leases.now();
        let mut answer = self.ask().await?;
        if self.shrink(&answer) {
            asked = self.leases.now();
            answer = self.ask().await?;
        }
        self.settle(answer, asked)
    }

    async fn ask(&self) -> Result<Answer, StoreError> {
        let reply = {
            let elsewhere = |asked: &&Asked| asked.taken.is_none();
            let hits: SmallVec<[Hit<'_>; 4]> =
                self.hits.iter().filter(elsewhere).map(Asked::hit).collect();
            self.leases.store.acquire(&hits)
        };
        let answer = reply.await?;
        let expected = self.hits.iter().filter(|asked| asked.taken.is_none()).count();
        if answer.standings.len() == expected {
            return Ok(answer);
        }
        Err(StoreError::new(
            StoreErrorKind::Unexpected,
            "the store answered for another number of limits",
        ))
    }

    /// After a denial, asks for what is left, or only for what the request needs. Whether that is less.
    fn shrink(&mut self, answer: &Answer) -> bool {
        let mut standings = answer.standings.iter();
        let mut less = false;
        for asked in self.hits.iter_mut().filter(|asked| asked.taken.is_none()) {
            let Some(standing) = standings.next() else { break };
            if let Some(units) = asked.ask
                && !standing.fits
                && units > asked.cost
            {
                let left = standing.remaining.min(units - 1).max(asked.cost);
                asked.ask = Some(left);
                self.leases.table.shrink(&asked.key);
                less |= left > 0;
            }
        }
        less
    }

    /// Keeps what was charged ahead, and puts back what was used here for a request that was denied.
    fn settle(&mut self, answer: Answer, asked_at: u64) -> Result<Answer, StoreError> {
        self.ended = true;
        let mut standings = answer.standings.iter().copied();
        let mut all: Vec<Standing> = Vec::with_capacity(self.hits.len());
        let mut admitted = true;
        for asked in &self.hits {
            let standing = match &asked.taken {
                Some(taken) => Some(taken.standing),
                None => standings.next(),
            };
            let Some(standing) = standing else { break };
            admitted &= asked.shadow || standing.fits;
            all.push(standing);
        }
        for (asked, standing) in self.hits.iter().zip(&mut all) {
            if let Some(taken) = &asked.taken {
                if !admitted {
                    self.leases.table.put_back(&asked.key, taken);
                }
            } else if let Some(units) = asked.ask {
                self.leases.table.asked(&asked.key);
                if admitted {
                    *standing = self.keep(asked, units, *standing, &answer, asked_at);
                }
            }
        }
        let whole = self.hits.iter().all(|asked| asked.taken.is_none());
        let found = if whole { answer.found } else { Vec::new() };
        Ok(Answer { standings: all.into_iter().collect(), found, ..answer })
    }

    /// Keeps the units that a request does not need now; and where the key then stands.
    fn keep(
        &self,
        asked: &Asked,
        units: u64,
        after: Standing,
        answer: &Answer,
        asked_at: u64,
    ) -> Standing {
        let left = units.saturating_sub(asked.cost);
        let charge = CHARGES.fetch_add(1, Ordering::Relaxed);
        let lease = Lease { charge, units: left, after, then: answer.now, asked: asked_at };
        if left > 0 {
            self.leases.table.keep(&asked.key, lease);
        }
        let standing = asked.meter.standing_of_held(after, units, asked.cost, answer.now);
        Standing { stamp: asked.meter.rest(after.stamp, left), ..standing }
    }
}

/// A trip that failed, or whose runtime ended, leaves everything as it was.
impl Drop for Trip {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        for asked in mem::take(&mut self.hits) {
            if let Some(taken) = asked.taken {
                self.leases.table.put_back(&asked.key, &taken);
            } else if asked.ask.is_some() {
                self.leases.table.asked(&asked.key);
            }
        }
    }
}
