use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use deadpool_redis::{Connection, Pool, redis};
use tokio::time::{sleep, timeout};

use super::{
    error,
    greeting::greet,
    slot::{Link, Slot, State},
    url::{Transport, Way},
    worker::Worker,
};
use crate::store::{StoreError, StoreErrorKind};

/// A few connections that all callers share, made by a pool and detached from it.
///
/// The stock way, a checkout for each request, costs a second round trip and keeps others waiting.
#[derive(Clone)]
pub(super) struct Slots(Arc<Shared>);

struct Shared {
    slots: Box<[Slot]>,
    next: AtomicUsize,
    closed: AtomicBool,
    pool: Pool,
    way: Way,
    connect_timeout: Duration,
    worker: Worker,
}

impl Slots {
    pub(super) fn new(
        pool: Pool,
        way: Way,
        count: usize,
        connect_timeout: Duration,
        worker: Worker,
    ) -> Self {
        Self(Arc::new(Shared {
            slots: std::iter::repeat_with(Slot::new).take(count).collect(),
            next: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            pool,
            way,
            connect_timeout,
            worker,
        }))
    }

    pub(super) fn len(&self) -> usize {
        self.0.slots.len()
    }

    /// Fills all slots, or fails with the first error.
    pub(super) async fn connect(&self) -> Result<(), StoreError> {
        for (at, slot) in self.0.slots.iter().enumerate() {
            if slot.begin() {
                let duty = Duty::new(&self.0, at);
                let shared = Arc::clone(&self.0);
                let opened = self.0.worker.run(async move { shared.open().await }).await;
                duty.end(State::Ready(opened.unwrap_or_else(|| Err(ended()))?));
            }
        }
        Ok(())
    }

    /// A connection that is ready: the next in turn, if it is.
    pub(super) fn ready(&self) -> Option<Link> {
        self.in_turn().find_map(|at| self.0.slots[at].ready(at))
    }

    /// A connection, or the next that there will be.
    pub(super) async fn wait(&self) -> Result<Link, StoreError> {
        for (at, slot) in self.0.slots.iter().enumerate() {
            if slot.begin() {
                self.fill(at);
            }
        }
        let mut in_turn = self.in_turn().peekable();
        let first = in_turn.peek().copied().unwrap_or_default();
        let at = in_turn.find(|at| !self.0.slots[*at].is_down()).unwrap_or(first);
        self.0.slots[at].wait(at).await
    }

    /// All slots, with another one first each time.
    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let count = self.len();
        let first = self.0.next.fetch_add(1, Ordering::Relaxed) % count;
        (first..count).chain(0..first)
    }

    pub(super) fn answered(&self, link: &Link) {
        self.0.slots[link.slot].answered();
    }

    /// So many requests got no answer in time, maybe for this process was late.
    pub(super) fn timed_out(&self, link: &Link, error: &StoreError, requests: usize, late: bool) {
        if self.0.slots[link.slot].struck(requests, late) {
            self.broken(link, error, false);
        }
    }

    /// Replaces the connection that `link` used. If it was `dropped`, the next may be a moment away.
    pub(super) fn broken(&self, link: &Link, error: &StoreError, dropped: bool) {
        if self.0.slots[link.slot].retire(&link.state, error, dropped) {
            self.fill(link.slot);
        }
    }

    /// No more connections are made, and those that are there go when their requests are answered.
    pub(super) fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        for slot in &self.0.slots {
            slot.close();
        }
    }

    /// Connects in the background until it succeeds.
    fn fill(&self, at: usize) {
        let duty = Duty::new(&self.0, at);
        self.0.worker.spawn(duty.fulfil());
    }
}

impl Shared {
    async fn open(&self) -> Result<redis::aio::MultiplexedConnection, StoreError> {
        let open = async {
            let pooled = self.pool.get().await;
            let pooled = pooled.map_err(|cause| error::connecting(cause, &self.way))?;
            let mut connection = Connection::take(pooled);
            greet(&mut connection).await?;
            Ok(connection)
        };
        timeout(self.connect_timeout, open).await.unwrap_or_else(|_elapsed| {
            // A server without TLS waits for the end of what it takes for a command.
            let Way { transport, place } = &self.way;
            let hint = if *transport == Transport::Tls { "; is TLS spoken there?" } else { "" };
            Err(StoreError::new(
                StoreErrorKind::Timeout,
                format!("no connection to Redis{place} within {:?}{hint}", self.connect_timeout),
            ))
        })
    }
}

fn ended() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "the thread of the connections has ended")
}

/// The duty to fill a slot. If it ends unfulfilled, because its runtime went away or its caller did,
/// the slot is empty again, and the next request takes the duty.
struct Duty {
    /// Weak, so that attempts end when nobody is left to connect for.
    shared: Weak<Shared>,
    at: usize,
    ended: bool,
}

impl Duty {
    fn new(shared: &Arc<Shared>, at: usize) -> Self {
        Self { shared: Arc::downgrade(shared), at, ended: false }
    }

    async fn fulfil(self) {
        while let Some(pause) = self.slot(Slot::pause) {
            self.slot(|slot| slot.expect_attempt(pause));
            sleep(pause).await;
            let Some(shared) = self.shared.upgrade() else { return };
            shared.slots[self.at].expect_attempt(shared.connect_timeout);
            match shared.open().await {
                Ok(connection) => return self.end(State::Ready(connection)),
                Err(error) => shared.slots[self.at].attempt_failed(error),
            }
            if shared.closed.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    fn end(mut self, state: State) {
        self.ended = true;
        self.finish(state);
    }

    fn finish(&self, state: State) {
        let Some(shared) = self.shared.upgrade() else { return };
        if shared.closed.load(Ordering::SeqCst) {
            shared.slots[self.at].close();
        } else {
            shared.slots[self.at].filled(state);
        }
    }

    fn slot<T>(&self, look: impl FnOnce(&Slot) -> T) -> Option<T> {
        self.shared.upgrade().map(|shared| look(&shared.slots[self.at]))
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if !self.ended {
            self.finish(State::Empty);
        }
    }
}
