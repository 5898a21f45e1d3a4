use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tollgate::{
    Clock as _, ManualClock, Source, Store, StoreError, StoreErrorKind, Timestamp,
    algorithm::{Reading, State},
    store::{Answer, Hit, Refund, Reply},
};

/// A store that could stand elsewhere: it is not local, says what it found when it denies, counts how
/// often it is asked, may be slow, and may be down. Clones are one store.
#[derive(Clone, Debug)]
pub(crate) struct Remote(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    states: HashMap<Vec<u8>, State>,
    clock: ManualClock,
    /// How far its clock is ahead of that of the process.
    ahead: Duration,
    /// How long a request travels, and its answer.
    travels: [Duration; 2],
    asked: u64,
    down: bool,
}

impl Remote {
    /// One whose time passes as that of `clock`, though it shows another.
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            states: HashMap::new(),
            clock,
            ahead: Duration::from_secs(1_000_000),
            travels: [Duration::ZERO; 2],
            asked: 0,
            down: false,
        })))
    }

    /// How often it was asked since this was called last.
    pub(crate) fn asked(&self) -> u64 {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    /// How long the clock runs on until a request is there, and until its answer is here.
    pub(crate) fn travel(&self, there_and_back: [Duration; 2]) {
        self.0.lock().unwrap().travels = there_and_back;
    }

    pub(crate) fn down(&self, down: bool) {
        self.0.lock().unwrap().down = down;
    }

    /// Does something, if it is up, and takes the time that it takes.
    fn answer<T>(&self, answer: impl FnOnce(&mut Inner, Timestamp) -> T) -> Result<T, StoreError> {
        let mut inner = self.0.lock().unwrap();
        inner.asked += 1;
        if inner.down {
            return Err(StoreError::new(StoreErrorKind::Unreachable, "it is down"));
        }
        inner.clock.advance(inner.travels[0]);
        let now = inner.clock.now().saturating_add(inner.ahead);
        let answer = answer(&mut inner, now);
        inner.clock.advance(inner.travels[1]);
        Ok(answer)
    }
}

impl Inner {
    fn decide(&mut self, hits: &[Hit<'_>], now: Timestamp) -> Answer {
        let mut readings: Vec<Reading> = Vec::new();
        let (mut admitted, mut fits) = (true, true);
        for hit in hits {
            let state = self.states.get_mut(hit.key);
            if let Some(state) = state {
                hit.meter.settle(state, now);
            }
            let mut reading = hit.meter.read(self.states.get(hit.key), now);
            if hit.meter.guards() && !fits {
                let state = self.states.entry(hit.key.into()).or_insert_with(|| hit.meter.empty());
                hit.meter.deny(state, &mut reading, now);
            }
            fits = hit.meter.fits(reading, hit.cost, now);
            admitted &= hit.shadow || fits;
            readings.push(reading);
        }
        let mut standings = Vec::new();
        for (hit, reading) in hits.iter().zip(&mut readings) {
            let charged = admitted && hit.meter.fits(*reading, hit.cost, now);
            *reading =
                hit.meter.foresee(*reading, self.states.get(hit.key), hit.cost, charged, now);
            if charged && hit.cost > 0 && !hit.meter.guards() {
                let state = self.states.entry(hit.key.into()).or_insert_with(|| hit.meter.empty());
                hit.meter.charge(state, *reading, hit.cost, now);
            }
            standings.push(hit.meter.standing(*reading, hit.cost, charged, now));
        }
        let found = if admitted { Vec::new() } else { readings };
        let standings = standings.into_iter().collect();
        Answer { now, source: Source::Other, standings, found }
    }
}

impl Store for Remote {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        Reply::now(self.answer(|inner, now| inner.decide(hits, now)))
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        Reply::now(self.answer(|inner, now| {
            for Refund { key, meter, units, stamp } in refunds {
                if let Some(state) = inner.states.get_mut(*key) {
                    meter.settle(state, now);
                    meter.refund(state, *units, *stamp, now);
                }
            }
        }))
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        Reply::now(self.answer(|inner, _| {
            keys.iter().for_each(|key| drop(inner.states.remove(*key)));
        }))
    }
}
