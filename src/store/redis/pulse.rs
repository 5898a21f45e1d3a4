//! How late this process is. Whatever its runtime does late, answers of the server are heard late, and
//! that is not the server's fault.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

use super::Inner;
use crate::time::{MonotonicClock, micros};

/// From one beat to the next, while calls are under way. Timers tick in milliseconds.
const BEAT: Duration = Duration::from_millis(1);
/// Microseconds by which a beat may be late, as timers are.
const TOLERANCE: u64 = 2_000;
/// The pulse stops after so many beats without a call.
const REST: u32 = 3;
/// The pulse stands still.
const NEVER: u64 = u64::MAX;

pub(super) struct Pulse {
    clock: MonotonicClock,
    /// Microseconds by which beats were late, so far.
    late: AtomicU64,
    /// When the next beat is due, in microseconds of the clock.
    due: AtomicU64,
    /// Whether there was a call since the last beat.
    used: AtomicBool,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self {
            clock: MonotonicClock::new(),
            late: AtomicU64::new(0),
            due: AtomicU64::new(NEVER),
            used: AtomicBool::new(false),
        }
    }

    /// A call begins. Whether somebody has to spawn the beats.
    pub(super) fn rouse(&self) -> bool {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        self.due.load(Ordering::Relaxed) == NEVER && {
            let due = self.next();
            self.due.compare_exchange(NEVER, due, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        }
    }

    /// How late the process was so far, what it is late by now included.
    pub(super) fn lateness(&self) -> Duration {
        let due = self.due.load(Ordering::Relaxed);
        let now = if due == NEVER { 0 } else { late(due, self.now()) };
        Duration::from_micros(self.late.load(Ordering::Relaxed).saturating_add(now))
    }

    fn beat(&self) {
        let now = late(self.due.load(Ordering::Relaxed), self.now());
        self.late.fetch_add(now, Ordering::Relaxed);
        self.due.store(self.next(), Ordering::Relaxed);
    }

    fn next(&self) -> u64 {
        self.now() + micros(BEAT)
    }

    fn now(&self) -> u64 {
        micros(self.clock.elapsed())
    }
}

const fn late(due: u64, now: u64) -> u64 {
    let late = now.saturating_sub(due);
    if late > TOLERANCE { late } else { 0 }
}

/// The beats, until no calls are under way. The pulse also stops with the runtime that it is in.
pub(super) struct Beats(pub(super) Arc<Inner>);

impl Beats {
    pub(super) async fn run(self) {
        let Inner { pulse, gathering, .. } = &*self.0;
        let mut rest = 0;
        while rest < REST {
            sleep(BEAT).await;
            pulse.beat();
            let used = pulse.used.swap(false, Ordering::Relaxed);
            rest = if used || gathering.is_busy() { 0 } else { rest + 1 };
        }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.0.pulse.due.store(NEVER, Ordering::Relaxed);
    }
}
