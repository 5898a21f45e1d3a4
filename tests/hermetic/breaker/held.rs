use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;
use tollgate::{
    Store,
    store::{Hit, Refund, Reply},
};

use crate::support::Flaky;

/// A store that keeps its callers waiting, while it is told to, until it is told to answer some. What it
/// answers is what it would have at once. Clones are one store.
#[derive(Clone, Debug)]
pub(super) struct Held {
    store: Flaky,
    holds: Arc<AtomicBool>,
    gate: Arc<Semaphore>,
    /// Microseconds.
    lateness: Arc<AtomicU64>,
}

impl Held {
    pub(super) fn new(store: Flaky) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        Self { store, holds: Arc::default(), gate, lateness: Arc::default() }
    }

    pub(super) fn hold(&self, hold: bool) {
        self.holds.store(hold, Ordering::SeqCst);
    }

    /// Answers so many, those who came first.
    pub(super) fn answer(&self, callers: usize) {
        self.gate.add_permits(callers);
    }

    /// The process was late for so long again.
    pub(super) fn late(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap();
        self.lateness.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Store for Held {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let reply = self.store.acquire(hits);
        if !self.holds.load(Ordering::SeqCst) {
            return reply;
        }
        let gate = Arc::clone(&self.gate);
        Reply::later(async move {
            gate.acquire().await.unwrap().forget();
            reply.await
        })
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.store.refund(refunds)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.store.reset(keys)
    }

    fn lateness(&self) -> Duration {
        Duration::from_micros(self.lateness.load(Ordering::SeqCst))
    }
}
