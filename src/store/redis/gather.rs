//! Requests that come while others are under way gather, and go out together.
//!
//! The first request goes out at once, on its caller's task. Those that come before its answer wait
//! for a driver, a task that sends all that wait as one batch, and again, until nobody waits. So
//! batches are as large as the load makes them, and nobody waits for others to come.

use std::{
    collections::VecDeque,
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use deadpool_redis::redis::Value;
use tokio::{sync::oneshot, time::timeout};

use super::{
    Inner,
    call::Call,
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
/// Requests whose deadlines lie so close together are given up at once.
const SLACK: Duration = Duration::from_millis(1);

pub(super) struct Gathering {
    state: Mutex<State>,
    clock: MonotonicClock,
    drivers: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Whether a request is under way on its caller's task. Nobody depends on that task.
    alone: bool,
    drivers: usize,
    /// When the last batch was taken, by the clock.
    taken_at: Duration,
}

/// A request that waits to be sent, or for its answer.
struct Waiting {
    request: Request,
    /// Its deadline, by the clock.
    until: Duration,
    /// Taken when it is answered.
    answer: Option<oneshot::Sender<Result<Answer, StoreError>>>,
}

/// What becomes of a request.
pub(super) enum Entry {
    /// It goes out on its caller's task.
    Alone(Request),
    /// The answer will come. With `true`, the caller has to spawn a driver.
    Waits(oneshot::Receiver<Result<Answer, StoreError>>, bool),
    /// Too many wait.
    Full,
}

impl Gathering {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            state: Mutex::default(),
            clock: MonotonicClock::new(),
            drivers: connections.max(DRIVERS),
        }
    }

    pub(super) fn enter(&self, request: Request, deadline: Duration) -> Entry {
        let now = self.clock.elapsed();
        let mut state = self.lock();
        if !state.alone && state.drivers == 0 && state.waiting.is_empty() {
            state.alone = true;
            return Entry::Alone(request);
        }
        if state.waiting.len() >= MAX_WAITING {
            return Entry::Full;
        }
        let (answer, receiver) = oneshot::channel();
        let until = now + deadline;
        state.waiting.push_back(Waiting { request, until, answer: Some(answer) });
        let slow = now.saturating_sub(state.taken_at) > SLOW;
        let drive = state.drivers < if slow { self.drivers } else { DRIVERS };
        state.drivers += usize::from(drive);
        Entry::Waits(receiver, drive)
    }

    /// The request that went out alone has ended.
    pub(super) fn leave(&self) {
        self.lock().alone = false;
    }

    /// What waits, up to the size of a batch. None, if nobody does: then the driver has ended.
    fn take(&self) -> Option<Vec<Waiting>> {
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
            if next.answer.as_ref().is_none_or(oneshot::Sender::is_closed) {
                hits -= next.request.hits().len();
                gone.push(next);
            } else {
                batch.push(next);
            }
        }
        if batch.is_empty() {
            state.drivers -= 1;
            return None;
        }
        state.taken_at = now;
        Some(batch)
    }

    /// A driver went away before its end, with its runtime. Without another one, those that wait would
    /// wait for ever.
    fn abandon(&self) {
        let mut state = self.lock();
        state.drivers -= 1;
        let waiting =
            if state.drivers == 0 { mem::take(&mut state.waiting) } else { VecDeque::new() };
        drop(state);
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends batches until nobody waits.
pub(super) async fn drive(inner: Arc<Inner>) {
    let mut driving = Driving { gathering: &inner.gathering, ended: false };
    while let Some(batch) = inner.gathering.take() {
        inner.ask_for(batch).await;
    }
    driving.ended = true;
}

struct Driving<'a> {
    gathering: &'a Gathering,
    ended: bool,
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.gathering.abandon();
        }
    }
}

impl Inner {
    /// Sends one batch, and gives everybody in it an answer, by their deadlines.
    async fn ask_for(&self, mut batch: Vec<Waiting>) {
        let call = Call::acquire(batch.iter().map(|waiting| &waiting.request));
        let mut used = None;
        let outcome = {
            let mut asking = pin!(self.ask(&call, &mut used));
            loop {
                let now = self.gathering.clock.elapsed();
                let next = batch.iter().find(|waiting| waiting.answer.is_some());
                let Some(next) = next.map(|waiting| waiting.until) else { break None };
                let left = next.saturating_sub(now) + SLACK;
                match timeout(left, asking.as_mut()).await {
                    Ok(outcome) => break Some(outcome),
                    Err(_elapsed) => self.expire(&mut batch),
                }
            }
        };
        match outcome {
            Some(outcome) => distribute(batch, outcome),
            None => {
                if let Some(link) = used {
                    self.slots.timed_out(&link, &self.timeout(), batch.len());
                }
            }
        }
    }

    fn expire(&self, batch: &mut [Waiting]) {
        let now = self.gathering.clock.elapsed();
        for waiting in batch.iter_mut().filter(|waiting| waiting.until <= now) {
            waiting.answer(Err(self.timeout()));
        }
    }
}

impl Waiting {
    /// Nobody need be there any more to hear it.
    fn answer(&mut self, answer: Result<Answer, StoreError>) {
        if let Some(sender) = self.answer.take() {
            let _ = sender.send(answer);
        }
    }
}

fn distribute(mut batch: Vec<Waiting>, outcome: Result<Value, StoreError>) {
    let hits = batch.iter().map(|waiting| waiting.request.hits().len()).sum();
    let outcome = outcome.and_then(|value| {
        let (now, mut values) = wire::answers(&value, hits)?;
        for waiting in &mut batch {
            let (own, rest) = values.split_at(waiting.request.hits().len());
            values = rest;
            let answer = waiting.request.answer(now, own);
            waiting.answer(answer);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        batch.iter_mut().for_each(|waiting| waiting.answer(Err(error.clone())));
    }
}

/// An error for those whose driver went away.
pub(super) fn abandoned() -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, "the runtime that asked Redis has ended")
}
