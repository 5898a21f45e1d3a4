//! How late this process is. Whatever its runtime does late, answers of the server are heard late, and
//! that is not the server's fault.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};

use crate::time::{MonotonicClock, micros};

/// From one beat to the next, while calls are under way. Timers tick in milliseconds.
const BEAT: Duration = Duration::from_millis(1);
/// Microseconds by which a beat may be late, as timers are.
const TOLERANCE: u64 = 2_000;
/// Microseconds by which a beat is so late that others beat in its place: its runtime may stand still for
/// ever, while that of the next caller does not.
const LOST: u64 = 1_000_000;
/// So many times as long as it should may something take for which this process is late.
const MOST: u32 = 10;
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
    /// Of the one who beats; those before it have no say any more.
    number: AtomicU64,
    /// Whether there was a call since the last beat.
    used: AtomicBool,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self {
            clock: MonotonicClock::new(),
            late: AtomicU64::new(0),
            due: AtomicU64::new(NEVER),
            number: AtomicU64::new(0),
            used: AtomicBool::new(false),
        }
    }

    /// A call begins. The number of the beats that somebody has to spawn, if nobody beats.
    fn rouse(&self) -> Option<u64> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        let (due, now) = (self.due.load(Ordering::Relaxed), self.now());
        if now.saturating_sub(due) < LOST && due != NEVER {
            return None;
        }
        let next = now + micros(BEAT);
        self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        if due != NEVER {
            self.late.fetch_add(now - due, Ordering::Relaxed);
        }
        Some(self.number.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// How late the process was so far, what it is late by now included.
    pub(super) fn lateness(&self) -> Duration {
        self.mark().lateness
    }

    /// What `future` comes to within `span`, not counted the time for which this process is late: up to
    /// ten times as long. Otherwise, whether it was late for at least half of it.
    pub(super) async fn within<F: Future>(
        &self,
        span: Duration,
        future: F,
    ) -> Result<F::Output, WasLate> {
        let begin = self.mark();
        let mut future = pin!(future);
        let mut left = span;
        loop {
            if let Ok(output) = timeout(left, &mut future).await {
                return Ok(output);
            }
            let (taken, late) = self.since(&begin);
            let own = taken - late;
            if own >= span || taken >= span * MOST {
                return Err(WasLate(!late.is_zero() && late >= own));
            }
            left = (span - own).max(BEAT);
        }
    }

    /// How long ago that was, and for how much of it this process was late.
    pub(super) fn since(&self, begin: &Mark) -> (Duration, Duration) {
        let now = self.mark();
        let taken = Duration::from_micros(now.time - begin.time);
        (taken, now.lateness.saturating_sub(begin.lateness).min(taken))
    }

    pub(super) fn mark(&self) -> Mark {
        let (due, now) = (self.due.load(Ordering::Relaxed), self.now());
        let late = self.late.load(Ordering::Relaxed).saturating_add(late(due, now));
        Mark { time: now, lateness: Duration::from_micros(late) }
    }

    fn beat(&self) {
        let due = self.due.load(Ordering::Relaxed);
        self.late.fetch_add(late(due, self.now()), Ordering::Relaxed);
        self.due.store(self.next(), Ordering::Relaxed);
    }

    fn next(&self) -> u64 {
        self.now() + micros(BEAT)
    }

    fn now(&self) -> u64 {
        micros(self.clock.elapsed())
    }
}

/// Whether this process was late for at least half of the time in which nothing came.
pub(super) struct WasLate(pub(super) bool);

/// A moment, and how late the process had been by then.
pub(super) struct Mark {
    /// Microseconds of the clock.
    time: u64,
    lateness: Duration,
}

const fn late(due: u64, now: u64) -> u64 {
    let late = now.saturating_sub(due);
    if late > TOLERANCE { late } else { 0 }
}

/// Whose pulse it is.
pub(super) trait Beating: Send + Sync + 'static {
    fn pulse(&self) -> &Pulse;

    /// Whether requests are under way.
    fn is_busy(&self) -> bool;
}

/// The beats, until no calls are under way. The pulse also stops with the runtime that it is in.
pub(super) struct Beats<B: Beating> {
    of: Arc<B>,
    number: u64,
}

/// A call begins, on a runtime.
pub(super) fn rouse<B: Beating>(of: &Arc<B>) {
    if let Some(number) = of.pulse().rouse() {
        tokio::spawn(Beats { of: Arc::clone(of), number }.run());
    }
}

impl<B: Beating> Beats<B> {
    async fn run(self) {
        let pulse = self.of.pulse();
        let mut rest = 0;
        while rest < REST {
            sleep(BEAT).await;
            if !self.counts() {
                break;
            }
            pulse.beat();
            let used = pulse.used.swap(false, Ordering::Relaxed);
            rest = if used || self.of.is_busy() { 0 } else { rest + 1 };
        }
    }

    /// Whether no other beats have taken the place of these.
    fn counts(&self) -> bool {
        self.of.pulse().number.load(Ordering::Relaxed) == self.number
    }
}

impl<B: Beating> Drop for Beats<B> {
    fn drop(&mut self) {
        if self.counts() {
            self.of.pulse().due.store(NEVER, Ordering::Relaxed);
        }
    }
}
