use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Semaphore;
use tollgate::{
    MemoryStore, Store, StoreError, StoreErrorKind,
    store::{Hit, Refund, Reply},
};

/// A store whose answers come later.
#[derive(Debug)]
pub(crate) struct Later(pub(crate) MemoryStore);

impl Store for Later {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        later(self.0.acquire(hits))
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        later(self.0.refund(refunds))
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        later(self.0.reset(keys))
    }
}

fn later<T: Unpin + Send + 'static>(reply: Reply<T>) -> Reply<T> {
    Reply::later(async {
        tokio::task::yield_now().await;
        reply.await
    })
}

/// A store that answers when it is let.
#[derive(Clone, Debug)]
pub(crate) struct Gated {
    store: MemoryStore,
    gate: Arc<Semaphore>,
}

impl Gated {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, gate: Arc::new(Semaphore::new(0)) }
    }

    /// Lets one answer go.
    pub(crate) fn open(&self) {
        self.gate.add_permits(1);
    }
}

impl Store for Gated {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let (reply, gate) = (self.store.acquire(hits), Arc::clone(&self.gate));
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
}

/// What is wrong with a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Broken {
    /// It errs at once.
    Now(StoreErrorKind),
    /// It errs after a while.
    Later(StoreErrorKind),
    /// It hangs, and its deadline of 100 ms ends that.
    Hangs,
    /// It answers for so many limits, whatever it was asked.
    Miscounts(usize),
}

/// A store that can be broken, and mended. Clones are one store.
#[derive(Clone, Debug)]
pub(crate) struct Flaky(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: MemoryStore,
    broken: Mutex<Option<Broken>>,
    asked: AtomicUsize,
}

impl Flaky {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self(Arc::new(Inner { store, broken: Mutex::new(None), asked: AtomicUsize::new(0) }))
    }

    pub(crate) fn broken(store: MemoryStore, how: Broken) -> Self {
        let flaky = Self::new(store);
        flaky.break_(how);
        flaky
    }

    pub(crate) fn break_(&self, how: Broken) {
        *self.0.broken.lock().unwrap() = Some(how);
    }

    pub(crate) fn mend(&self) {
        *self.0.broken.lock().unwrap() = None;
    }

    fn failure(&self) -> Option<StoreErrorKind> {
        match (*self.0.broken.lock().unwrap())? {
            Broken::Now(kind) | Broken::Later(kind) => Some(kind),
            Broken::Hangs => Some(StoreErrorKind::Timeout),
            Broken::Miscounts(_) => None,
        }
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }
}

impl Store for Flaky {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let broken = *self.0.broken.lock().unwrap();
        let error = |kind| Err(StoreError::new(kind, "broken on demand"));
        match broken {
            None => self.0.store.acquire(hits),
            Some(Broken::Now(kind)) => Reply::now(error(kind)),
            Some(Broken::Later(kind)) => Reply::later(async move {
                tokio::task::yield_now().await;
                error(kind)
            }),
            Some(Broken::Hangs) => Reply::later(async move {
                let hang = pending::<()>();
                match tokio::time::timeout(Duration::from_millis(100), hang).await {
                    Ok(()) => error(StoreErrorKind::Unexpected),
                    Err(_) => error(StoreErrorKind::Timeout),
                }
            }),
            Some(Broken::Miscounts(count)) => {
                Reply::now(self.0.store.acquire(hits).try_now().unwrap().map(|mut answer| {
                    let standing = answer.standings[0];
                    answer.standings.resize(count, standing);
                    answer
                }))
            }
        }
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        match self.failure() {
            Some(kind) => Reply::now(Err(StoreError::new(kind, "broken on demand"))),
            None => self.0.store.refund(refunds),
        }
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        match self.failure() {
            Some(kind) => Reply::now(Err(StoreError::new(kind, "broken on demand"))),
            None => self.0.store.reset(keys),
        }
    }
}
