use std::{borrow::Cow, fmt, pin::Pin, sync::Arc, time::Duration};

use super::Monitor;
use crate::store::{Hit, Refund, Reply, Store, StoreError, StoreErrorKind, Tickets, Watch};

/// A store behind a breaker: while that is open, the store is not asked.
pub(crate) struct Guard {
    store: Arc<dyn Store>,
    monitor: Arc<Monitor>,
}

impl Guard {
    pub(crate) const fn new(store: Arc<dyn Store>, monitor: Arc<Monitor>) -> Self {
        Self { store, monitor }
    }

    fn call<'k, T>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        call: impl FnOnce(&dyn Store) -> Reply<T>,
    ) -> Reply<T> {
        let Some(tickets) = self.monitor.enter(keys) else { return Reply::now(Err(open())) };
        // Until the reply is watched, this is what leaves if the call panics.
        let entered = Entered { monitor: &self.monitor, tickets: Some(tickets) };
        let reply = call(&*self.store);
        entered.watch(reply)
    }
}

/// A call that was let in.
struct Entered<'a> {
    monitor: &'a Arc<Monitor>,
    tickets: Option<Tickets>,
}

impl Entered<'_> {
    fn watch<T>(mut self, reply: Reply<T>) -> Reply<T> {
        let Some(tickets) = self.tickets.take() else { return reply };
        match reply.try_now() {
            Ok(answer) => {
                self.monitor.at_once(&tickets, answer.as_ref().map(drop));
                Reply::now(answer)
            }
            Err(reply) => reply.watched(|| Arc::<Monitor>::clone(self.monitor), tickets),
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if let Some(tickets) = &self.tickets {
            self.monitor.heard(tickets, None);
        }
    }
}

fn open() -> StoreError {
    StoreError::new(
        StoreErrorKind::BreakerOpen,
        "the store failed or was slow a moment ago, and is not asked for now",
    )
}

impl Store for Guard {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        self.call(hits.iter().map(|hit| hit.key), |store| store.acquire(hits))
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.call(refunds.iter().map(|refund| refund.key), |store| store.refund(refunds))
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.call(keys.iter().copied(), |store| store.reset(keys))
    }

    fn is_local(&self) -> bool {
        self.store.is_local()
    }

    fn identity(&self) -> Option<usize> {
        self.store.identity()
    }

    fn shard(&self, key: &[u8]) -> u32 {
        self.store.shard(key)
    }

    fn shard_name(&self, shard: u32) -> Option<Cow<'_, str>> {
        self.store.shard_name(shard)
    }

    fn lateness(&self) -> Duration {
        self.store.lateness()
    }

    fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.store.shutdown()
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}
