use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use deadpool_redis::redis::{Cmd, RedisResult, Value, aio::MultiplexedConnection};
use tokio::sync::Notify;

use crate::{
    store::{StoreError, StoreErrorKind},
    time::{MonotonicClock, micros},
};

/// Timeouts in a row after which a connection is taken for dead.
const STRIKES: u32 = 3;
/// Microseconds without an answer after which a connection is asked whether it is still there. Servers
/// and what stands before them close connections that nobody uses.
const IDLE: u64 = 100_000;
/// Microseconds without an answer after which a connection may be dead also if this process is late.
const DEAD: u64 = 1_000_000;
/// Microseconds by which attempts to connect may be late.
const OVERDUE: u64 = 50_000;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The place of one connection: callers clone what is in it, and it is filled anew when it breaks.
pub(super) struct Slot {
    state: ArcSwap<State>,
    changed: Notify,
    /// Held to change the state, so that one task at most fills the slot.
    filling: Mutex<bool>,
    /// Timeouts since the last answer.
    strikes: AtomicU32,
    /// Failures since the last answer: they set the pause before the next attempt.
    failures: AtomicU32,
    clock: MonotonicClock,
    /// When the last answer came, in microseconds of the clock.
    answered_at: AtomicU64,
    /// When the next attempt to connect should begin, or the present one end, by the clock.
    attempt_due: AtomicU64,
    /// Which of the servers that were primaries one after another the connection leads to.
    pub(super) generation: AtomicU64,
}

/// What is in a slot.
pub(super) enum State {
    /// Nothing yet, and nobody is connecting.
    Empty,
    /// A connection is being made, and it is worth waiting for it.
    Connecting,
    /// With the address that it leads to, if that is known.
    Ready(MultiplexedConnection, Option<Arc<str>>),
    /// The last attempt failed, or the connection did; attempts go on in the background.
    Down(StoreError),
}

/// A connection as one request used it. Clones of a connection cannot be told apart, states can.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) slot: usize,
    pub(super) state: Arc<State>,
    /// Whether nothing came from the server for a while, so that the connection may be gone.
    pub(super) idle: bool,
    pub(super) connection: MultiplexedConnection,
}

impl Link {
    /// The server's answer. An error inside an array, which the script never makes, stays there.
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self.connection.send_packed_command(command).await? {
            Value::ServerError(error) => Err(error.into()),
            value => Ok(value),
        }
    }

    /// The same error, about the server that it leads to.
    pub(super) fn named(&self, error: StoreError) -> StoreError {
        match &*self.state {
            State::Ready(_, place) => error.about(place.as_ref()),
            _ => error,
        }
    }
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: ArcSwap::from_pointee(State::Empty),
            changed: Notify::new(),
            filling: Mutex::new(false),
            strikes: AtomicU32::new(0),
            failures: AtomicU32::new(0),
            clock: MonotonicClock::new(),
            answered_at: AtomicU64::new(0),
            attempt_due: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        }
    }

    /// The connection, if there is one.
    pub(super) fn ready(&self, slot: usize) -> Option<Link> {
        let state = self.state.load();
        let State::Ready(connection, _) = &**state else { return None };
        let connection = connection.clone();
        let idle = self.now().saturating_sub(self.answered_at.load(Ordering::Relaxed)) > IDLE;
        Some(Link { slot, state: Arc::clone(&state), idle, connection })
    }

    /// The connection, or the reason why there is none; waits while one is being made.
    pub(super) async fn wait(&self, slot: usize) -> Result<Link, StoreError> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(link) = self.ready(slot) {
                return Ok(link);
            }
            if let State::Down(error) = &**self.state.load()
                && !self.is_overdue()
            {
                return Err(error.clone());
            }
            changed.await;
        }
    }

    pub(super) fn is_down(&self) -> bool {
        matches!(**self.state.load(), State::Down(_))
    }

    /// Whether nobody tries to connect when it is time to: on a runtime that runs only while somebody
    /// waits, somebody has to.
    fn is_overdue(&self) -> bool {
        self.now() > self.attempt_due.load(Ordering::Relaxed).saturating_add(OVERDUE)
    }

    /// An attempt to connect is due after this time, or should end within it.
    pub(super) fn expect_attempt(&self, within: Duration) {
        let due = self.now().saturating_add(micros(within));
        self.attempt_due.store(due, Ordering::Relaxed);
    }

    /// An answer came: what went wrong before is over.
    pub(super) fn answered(&self) {
        self.answered_at.store(self.now(), Ordering::Relaxed);
        for count in [&self.strikes, &self.failures] {
            if count.load(Ordering::Relaxed) != 0 {
                count.store(0, Ordering::Relaxed);
            }
        }
    }

    /// No answer to so many requests came in time. Whether the connection is now to be given up.
    pub(super) fn struck(&self, requests: usize, late: bool) -> bool {
        let silent = self.now().saturating_sub(self.answered_at.load(Ordering::Relaxed));
        if late && silent < DEAD {
            return false;
        }
        let strikes = u32::try_from(requests).unwrap_or(STRIKES).min(STRIKES);
        self.strikes.fetch_add(strikes, Ordering::Relaxed) + strikes >= STRIKES
    }

    /// Takes the duty to fill an empty slot; false if somebody has it, or it is not empty.
    pub(super) fn begin(&self) -> bool {
        self.take_over(|state| matches!(state, State::Empty), State::Connecting)
    }

    /// Takes the duty to replace the connection that `used` had; false if somebody has it already.
    /// Callers wait for the next connection if it is `near`, and else fail with `error` meanwhile.
    pub(super) fn retire(&self, used: &Arc<State>, error: &StoreError, near: bool) -> bool {
        let near = near && self.failures.load(Ordering::Relaxed) == 0;
        let next = if near { State::Connecting } else { State::Down(error.clone()) };
        self.expect_attempt(Duration::ZERO);
        let taken = self.take_over(|state| std::ptr::eq(state, Arc::as_ptr(used)), next);
        if taken && !near {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    fn take_over(&self, from: impl Fn(&State) -> bool, to: State) -> bool {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        if *filling || !from(&self.state.load()) {
            return false;
        }
        *filling = true;
        self.set(to);
        true
    }

    /// Ends the duty with a state that lasts.
    pub(super) fn filled(&self, state: State) {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        *filling = false;
        self.strikes.store(0, Ordering::Relaxed);
        self.answered_at.store(self.now(), Ordering::Relaxed);
        self.set(state);
    }

    /// An attempt failed; the duty goes on.
    pub(super) fn attempt_failed(&self, error: StoreError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.set(State::Down(error));
    }

    /// Empties the slot for good.
    pub(super) fn close(&self) {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody takes the duty any more.
        *filling = true;
        self.attempt_due.store(u64::MAX, Ordering::Relaxed);
        self.set(State::Down(StoreError::new(
            StoreErrorKind::Unreachable,
            "the store was shut down",
        )));
    }

    fn now(&self) -> u64 {
        micros(self.clock.elapsed())
    }

    fn set(&self, state: State) {
        self.state.store(Arc::new(state));
        self.changed.notify_waiters();
    }

    /// How long to wait before the next attempt: nothing after an answer, then 10 ms, doubled with each
    /// failure up to half a second, less a random part so that instances do not come in step.
    pub(super) fn pause(&self) -> Duration {
        match self.failures.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            failures => {
                let longest = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(10));
                longest.min(LONGEST_PAUSE).mul_f64(0.5 + 0.5 * fastrand::f64())
            }
        }
    }
}
