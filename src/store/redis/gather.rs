//! Requests that come while others are under way gather, and go out together.
//!
//! The first request goes out at once, on its caller's task. Those that come before its answer wait
//! for a driver, a task that sends all that wait as one batch, and again, until nobody waits. So
//! batches are as large as the load makes them, and nobody waits for others to come.

use std::{
    collections::VecDeque,
    iter, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use deadpool_redis::redis::Value;
use smallvec::SmallVec;
use tokio::{sync::oneshot, task::yield_now};

use super::{
    call::Call,
    node::Node,
    wire::{self, Request},
};
use crate::{
    store::{Answer, StoreError, StoreErrorKind},
    time::MonotonicClock,
};

/// The most requests of one batch, and their hits: a script holds up everybody else on the server.
const MAX_REQUESTS: usize = 64;
const MAX_HITS: usize = crate::store::MAX_HITS;
/// The most requests that wait. More would not be answered before their deadline.
const MAX_WAITING: usize = 16_384;
/// Batches that are under way at a time: one is decided while the other travels.
const DRIVERS: usize = 2;
/// A batch that takes longer holds up others no more: there may be one for each connection.
const SLOW: Duration = Duration::from_millis(2);
/// A driver that took nothing for so many deadlines is held up, maybe for ever, by others on its
/// runtime: it does not count any more.
const STUCK: u32 = 2;

pub(super) struct Gathering {
    state: Mutex<State>,
    clock: MonotonicClock,
    deadline: Duration,
    drivers: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Whether a request is under way on its caller's task. Nobody depends on that task.
    alone: bool,
    /// Each driver's number, and when it took its last batch, by the clock.
    drivers: SmallVec<[(u64, Duration); 4]>,
    /// Drivers so far.
    number: u64,
    /// When the last batch was taken, by the clock.
    taken_at: Duration,
}

/// A request that waits to be sent, or for its answer.
pub(super) struct Waiting {
    pub(super) request: Request,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// What becomes of a request.
pub(super) enum Entry {
    /// It goes out on its caller's task.
    Alone(Request),
    /// The answer will come, by the driver of this number, if there is one, whom the caller has to
    /// spawn.
    Waits(oneshot::Receiver<Result<Answer, StoreError>>, Option<u64>),
    /// Too many wait.
    Full,
}

impl Gathering {
    pub(super) fn new(connections: usize, deadline: Duration) -> Self {
        Self {
            state: Mutex::default(),
            clock: MonotonicClock::new(),
            deadline,
            drivers: connections.max(DRIVERS),
        }
    }

    pub(super) fn enter(&self, request: Request) -> Entry {
        let now = self.clock.elapsed();
        let stuck = self.deadline * STUCK;
        let mut state = self.lock();
        state.drivers.retain(|(_, seen)| now.saturating_sub(*seen) < stuck);
        if !state.alone && state.drivers.is_empty() && state.waiting.is_empty() {
            state.alone = true;
            return Entry::Alone(request);
        }
        if state.waiting.len() >= MAX_WAITING {
            return Entry::Full;
        }
        let (answer, receiver) = oneshot::channel();
        state.waiting.push_back(Waiting { request, answer });
        let slow = now.saturating_sub(state.taken_at) > SLOW;
        let drive = state.drivers.len() < if slow { self.drivers } else { DRIVERS };
        let number = drive.then(|| {
            state.number += 1;
            let number = state.number;
            state.drivers.push((number, now));
            number
        });
        Entry::Waits(receiver, number)
    }

    /// Whether requests are under way.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.alone || !state.drivers.is_empty()
    }

    /// The request that went out alone has ended.
    pub(super) fn leave(&self) {
        self.lock().alone = false;
    }

    /// What waits, up to the size of a batch, for the driver of this number. None, if nobody does: then
    /// the driver has ended.
    fn take(&self, driver: u64) -> Option<Vec<Waiting>> {
        let now = self.clock.elapsed();
        let mut gone = Vec::new();
        let mut batch = Vec::new();
        let mut state = self.lock();
        let mut hits = 0;
        while let Some(next) = state.waiting.front() {
            hits += next.request.hits().len();
            if batch.len() == MAX_REQUESTS || (hits > MAX_HITS && !batch.is_empty()) {
                break;
            }
            let Some(next) = state.waiting.pop_front() else { break };
            if next.answer.is_closed() {
                hits -= next.request.hits().len();
                gone.push(next);
            } else {
                batch.push(next);
            }
        }
        state.drivers.retain(|(number, _)| *number != driver);
        if batch.is_empty() {
            return None;
        }
        state.drivers.push((driver, now));
        state.taken_at = now;
        Some(batch)
    }

    /// A driver went away before its end, with its runtime. Without another one, those that wait would
    /// wait in vain.
    fn abandon(&self, driver: u64) {
        let mut state = self.lock();
        state.drivers.retain(|(number, _)| *number != driver);
        let alone = state.drivers.is_empty();
        let waiting = if alone { mem::take(&mut state.waiting) } else { VecDeque::new() };
        drop(state);
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where requests gather, and who sends them.
pub(super) trait Gate: Clone + Send + Sync + 'static {
    /// The server that the requests are for.
    fn node(&self) -> &Node;

    /// The same error, of the part of the store that this is.
    fn blame(&self, error: StoreError) -> StoreError {
        error
    }

    /// The same error, about who has answered this request in a form that cannot be.
    fn misread(&self, _request: &Request, error: StoreError) -> StoreError {
        self.node().named(error)
    }

    /// What is answered to the request that goes out alone.
    fn ask(&self, request: &Request) -> impl Future<Output = Result<Value, StoreError>> + Send;

    /// Sends one batch, and gives everybody in it an answer. When it has ended, the driver takes the next.
    fn ask_for(&self, batch: Vec<Waiting>) -> impl Future<Output = ()> + Send;
}

/// Sends batches until nobody waits. It has its place from when its number is given, so that it also
/// leaves it if its task never runs.
pub(super) struct Driver<G: Gate> {
    gate: G,
    number: u64,
    ended: bool,
}

impl<G: Gate> Driver<G> {
    pub(super) const fn new(gate: G, number: u64) -> Self {
        Self { gate, number, ended: false }
    }

    pub(super) async fn drive(mut self) {
        while let Some(batch) = self.gate.node().gathering.take(self.number) {
            self.gate.ask_for(batch).await;
            // Those that were answered come back first, and go out with the next batch.
            yield_now().await;
        }
        self.ended = true;
    }
}

impl<G: Gate> Drop for Driver<G> {
    fn drop(&mut self) {
        if !self.ended {
            self.gate.node().gathering.abandon(self.number);
        }
    }
}

/// A request on its caller's task, which may go away at any time.
pub(super) struct Alone<G: Gate>(pub(super) G);

impl<G: Gate> Alone<G> {
    pub(super) async fn ask(&self, request: &Request) -> Result<Answer, StoreError> {
        let answer = request.read(&self.0.ask(request).await?);
        answer.map_err(|error| self.0.misread(request, error))
    }
}

impl<G: Gate> Drop for Alone<G> {
    fn drop(&mut self) {
        self.0.node().gathering.leave();
    }
}

impl Gate for Arc<Node> {
    fn node(&self) -> &Node {
        self
    }

    async fn ask(&self, request: &Request) -> Result<Value, StoreError> {
        self.call(&Call::acquire(iter::once(request)), 1).await
    }

    async fn ask_for(&self, batch: Vec<Waiting>) {
        let call = Call::acquire(batch.iter().map(|waiting| &waiting.request));
        let outcome = self.call(&call, batch.len()).await;
        distribute(self, batch, outcome);
    }
}

impl Waiting {
    /// Nobody need be there any more to hear it.
    pub(super) fn answer(self, answer: Result<Answer, StoreError>) {
        let _ = self.answer.send(answer);
    }
}

pub(super) fn distribute(
    gate: &impl Gate,
    batch: Vec<Waiting>,
    outcome: Result<Value, StoreError>,
) {
    let hits = batch.iter().map(|waiting| waiting.request.hits().len()).sum();
    let answers = match &outcome {
        Ok(value) => wire::answers(value, hits).map_err(|error| match batch.first() {
            Some(first) => gate.misread(&first.request, error),
            None => error,
        }),
        Err(error) => Err(error.clone()),
    };
    match answers {
        Ok((now, mut values)) => {
            for waiting in batch {
                let (own, rest) = values.split_at(waiting.request.hits().len());
                values = rest;
                let answer = waiting.request.answer(now, own);
                let answer = answer.map_err(|error| gate.misread(&waiting.request, error));
                waiting.answer(answer);
            }
        }
        Err(error) => batch.into_iter().for_each(|waiting| waiting.answer(Err(error.clone()))),
    }
}

/// An error for those whose driver went away.
pub(super) fn abandoned() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "the runtime that asked Redis has ended")
}
