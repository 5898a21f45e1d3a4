//! Units that are charged ahead and used here.
//!
//! A charge of several units is a *lease*: the store has admitted them, so this process admits requests
//! to them without asking again. What the store grants is never exceeded. A bucket refills while units
//! are on lease, and grants others what comes back; so no more of them may be used than the charge
//! has not got back, and the rest lapse. Of a window, all may be used while it lasts.

mod holding;
mod table;
mod trip;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use smallvec::SmallVec;
use tokio::{runtime::Handle, sync::oneshot, time::sleep};

use self::{
    holding::{Lease, Taken},
    table::Table,
    trip::{Asked, Trip},
};
use crate::{
    decision::Source,
    store::{Answer, Hit, Refund, Reply, Store, StoreError, StoreErrorKind},
    time::Clock,
};

/// Microseconds after which units that nobody uses are given back.
const IDLE: u64 = 500_000;
const SWEEP: Duration = Duration::from_millis(250);
/// How often, and how long, the end waits for answers that may bring more.
const LAST_TRIPS: usize = 40;
const LAST_TRIP: Duration = Duration::from_millis(5);

/// What this process has on lease from a store.
pub(crate) struct Leases {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    table: Table,
    /// Whether a task looks after what nobody uses.
    sweeping: AtomicBool,
    /// Whether the process ends, so that nothing is charged ahead any more.
    closed: AtomicBool,
    this: Weak<Self>,
}

impl Leases {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            store,
            clock,
            table: Table::default(),
            sweeping: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            this: this.clone(),
        })
    }

    /// Whether a request is charged to units on lease, in part at least.
    pub(crate) fn serve(hits: &[Hit<'_>]) -> bool {
        hits.iter().any(|hit| hit.lease > 0)
    }

    /// Admits a request to units that are here, if all of them are.
    pub(crate) fn admit(&self, hits: &[Hit<'_>]) -> Option<Answer> {
        if !hits.iter().all(|hit| hit.lease > 0 && hit.cost > 0) {
            return None;
        }
        let now = self.now();
        let mut taken = SmallVec::<[Taken; 2]>::new();
        for hit in hits {
            let Some((units, runs_low)) = self.table.take(hit, now) else {
                self.put_back(hits, &taken);
                return None;
            };
            taken.push(units);
            if runs_low {
                self.renew(hit);
            }
        }
        Some(answer(taken.iter()))
    }

    /// Charges a request to units that are here, and to the store for the others, of which it asks for
    /// more than the request needs. All of them are charged, or none.
    pub(crate) fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let (Some(this), Ok(_)) = (self.this.upgrade(), Handle::try_current()) else {
            return self.store.acquire(hits);
        };
        if self.closed.load(Ordering::Relaxed) {
            return self.store.acquire(hits);
        }
        self.look_after();
        let now = self.now();
        let leased = |hit: &Hit<'_>| hit.lease > 0 && hit.cost > 0;
        let here = |hit| leased(hit).then(|| self.table.take(hit, now)).flatten();
        let taken: SmallVec<[Option<Taken>; 2]> =
            hits.iter().map(|hit| here(hit).map(|(taken, _)| taken)).collect();
        if taken.iter().all(Option::is_some) {
            // Somebody has brought them since they were looked for.
            return Reply::now(Ok(answer(taken.iter().flatten())));
        }
        let asked = hits.iter().zip(taken).map(|(hit, taken)| {
            let more = leased(hit) && taken.is_none();
            let ask = more.then(|| self.table.ask(hit, now)).flatten();
            Asked::new(hit, taken, ask)
        });
        let trip = Trip::new(this, asked.collect());
        // On a task of its own, so that what was charged ahead is not lost with the caller.
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let _ = sender.send(trip.make().await);
        });
        Reply::later(async {
            receiver.await.unwrap_or_else(|_| {
                Err(StoreError::new(
                    StoreErrorKind::Unreachable,
                    "the runtime that asked the store has ended",
                ))
            })
        })
    }

    /// Lets go of a key whose state was reset.
    pub(crate) fn forget(&self, key: &[u8]) {
        drop(self.table.remove(key));
    }

    /// Gives back all that is on lease, and charges nothing ahead any more.
    pub(crate) async fn give_back(&self) {
        self.closed.store(true, Ordering::Relaxed);
        for _ in 0..LAST_TRIPS {
            self.give_back_idle(0).await;
            if self.table.is_empty() {
                return;
            }
            // Somebody is asking for more.
            sleep(LAST_TRIP).await;
        }
    }

    async fn give_back_idle(&self, idle: u64) {
        for holding in self.table.take_idle(self.now(), idle) {
            let (key, meter) = (holding.key.clone(), holding.meter);
            for Lease { units, after, .. } in holding.into_leases() {
                // What cannot be given back comes back by itself.
                let refund = Refund { key: &key, meter, units, stamp: after.stamp };
                let _ = self.store.refund(&[refund]).await;
            }
        }
    }

    /// Asks for more of a key, ahead of need.
    fn renew(&self, hit: &Hit<'_>) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let (Some(this), Ok(_)) = (self.this.upgrade(), Handle::try_current()) else { return };
        let Some(ask) = self.table.ask(&Hit { cost: 0, ..*hit }, self.now()) else { return };
        let trip = Trip::new(this, vec![Asked::new(&Hit { cost: 0, ..*hit }, None, Some(ask))]);
        tokio::spawn(trip.make());
    }

    fn put_back(&self, hits: &[Hit<'_>], taken: &[Taken]) {
        for (hit, taken) in hits.iter().zip(taken) {
            self.table.put_back(hit.key, taken);
        }
    }

    /// Sees to it that what nobody uses is given back.
    fn look_after(&self) {
        if !self.sweeping.swap(true, Ordering::SeqCst) {
            tokio::spawn(Self::sweep(self.this.clone()));
        }
    }

    /// Gives back what nobody uses, as long as there is anything.
    async fn sweep(this: Weak<Self>) {
        loop {
            sleep(SWEEP).await;
            let Some(this) = this.upgrade() else { return };
            this.give_back_idle(IDLE).await;
            if this.table.is_empty() {
                this.sweeping.store(false, Ordering::SeqCst);
                // Somebody may have come since.
                if this.table.is_empty() || this.sweeping.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
        }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }
}

/// The answer to a request whose units are all here.
fn answer<'a>(taken: impl Iterator<Item = &'a Taken> + Clone) -> Answer {
    Answer {
        now: taken.clone().map(|taken| taken.now).max().unwrap_or_default(),
        source: Source::Lease,
        standings: taken.map(|taken| taken.standing).collect(),
        found: Vec::new(),
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("store", &self.store).finish_non_exhaustive()
    }
}
