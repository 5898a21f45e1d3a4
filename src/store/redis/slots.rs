use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{
    greeting::greet,
    origin::{Opened, Origin},
    slot::{Link, Slot, State},
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
    origin: Origin,
    connect_timeout: Duration,
    worker: Worker,
}

impl Slots {
    pub(super) fn new(
        origin: Origin,
        count: usize,
        connect_timeout: Duration,
        worker: Worker,
    ) -> Self {
        Self(Arc::new(Shared {
            slots: std::iter::repeat_with(Slot::new).take(count).collect(),
            next: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            origin,
            connect_timeout,
            worker,
        }))
    }

    pub(super) fn len(&self) -> usize {
        self.0.slots.len()
    }

    /// Where the server is, if that is known.
    pub(super) fn place(&self) -> Option<Arc<str>> {
        self.0.origin.place()
    }

    /// Fills all slots, or fails with the first error.
    pub(super) async fn connect(&self) -> Result<(), StoreError> {
        for (at, slot) in self.0.slots.iter().enumerate() {
            if slot.begin() {
                let duty = Duty::new(&self.0, at);
                let shared = Arc::clone(&self.0);
                let opened = self.0.worker.run(async move { shared.open().await }).await;
                duty.succeed(opened.unwrap_or_else(|| Err(ended()))?);
            }
        }
        Ok(())
    }

    /// A connection that is ready: the next in turn, if it is.
    pub(super) fn ready(&self) -> Option<Link> {
        let link = self.in_turn().find_map(|at| self.0.slots[at].ready(at))?;
        if let Origin::Sentinels(sentinels) = &self.0.origin
            && sentinels.is_due()
        {
            self.look();
        }
        Some(link)
    }

    /// Asks the sentinels in the background, and leaves a primary that is none any more.
    fn look(&self) {
        let shared = Arc::downgrade(&self.0);
        self.0.worker.spawn(async move {
            let Some(shared) = shared.upgrade() else { return };
            if let Origin::Sentinels(sentinels) = &shared.origin {
                sentinels.look().await;
            }
            Self(shared).renew();
        });
    }

    /// Replaces the connections to servers that were the primary once.
    fn renew(&self) {
        let Origin::Sentinels(sentinels) = &self.0.origin else { return };
        let present = sentinels.generation();
        for (at, slot) in self.0.slots.iter().enumerate() {
            if let Some(link) = slot.ready(at)
                && slot.generation.load(Ordering::SeqCst) != present
            {
                self.broken(&link, &moved(), true);
            }
        }
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
        self.0.origin.close();
    }

    /// Connects in the background until it succeeds.
    fn fill(&self, at: usize) {
        let duty = Duty::new(&self.0, at);
        self.0.worker.spawn(duty.fulfil());
    }
}

impl Shared {
    async fn open(&self) -> Result<Opened, StoreError> {
        let open = async {
            let mut opened = self.origin.connect().await?;
            let greeted = greet(&mut opened.connection, &opened.way).await;
            greeted.map_err(|error| error.about(opened.way.place.as_ref()))?;
            Ok(opened)
        };
        let opened = timeout(self.connect_timeout, open).await;
        opened.unwrap_or_else(|_elapsed| Err(self.origin.late(self.connect_timeout)))
    }
}

fn moved() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "the sentinels name another primary")
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
                Ok(opened) => return self.succeed(opened),
                Err(error) => shared.slots[self.at].attempt_failed(error),
            }
            if shared.closed.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    fn succeed(mut self, Opened { connection, generation, way }: Opened) {
        self.ended = true;
        let Some(shared) = self.shared.upgrade() else { return };
        shared.slots[self.at].generation.store(generation, Ordering::SeqCst);
        self.finish(State::Ready(connection, way.place));
        // It was made before the primary changed, or the others were.
        Slots(shared).renew();
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
