use std::{
    num::NonZeroU64,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

use super::{Breaker, BreakerState, pauses::Pauses, window::Window};
use crate::{
    store::{Moment, Ticket},
    time::micros,
};

/// Failures in a row must go on for so many microseconds: a connection that breaks fails a whole batch
/// at once, and the next one may do.
const LASTING: u64 = 10_000;
/// After so many microseconds, somebody else may ask: the caller that was to find out may never poll
/// its future again.
const PATIENCE: u64 = 5_000_000;
/// For so many microseconds after its pause nobody asks a part of a store only if it serves nothing: any
/// request to it would.
const FORGOTTEN: u64 = 5_000_000;
/// Answers of a store that is not slow, in the time of a slow call, or in `PACE` microseconds: three
/// batches of 64 that travel side by side.
const ROUND: u64 = 192;
const PACE: u64 = 20_000;
/// A store that answered nobody for so many microseconds fails, also if this process is late: those not
/// counted for which it was.
const SILENCE: u64 = 100_000;

const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const HALF_OPEN: u8 = 2;

/// The state of a breaker. While it is closed, a call that is answered costs an addition and a few
/// loads; all else happens under a lock.
#[derive(Debug)]
pub(crate) struct Circuit {
    state: AtomicU8,
    /// While it is not closed: when a call may ask again.
    due: AtomicU64,
    /// Calls that were answered, so far.
    answers: AtomicU64,
    /// Failures since the last answer.
    in_a_row: AtomicU32,
    /// When the window's next slice begins.
    turn: AtomicU64,
    failures: u32,
    slower_than: u64,
    /// No pause is longer.
    longest: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    window: Window,
    pauses: Pauses,
    /// When it was closed last. What was asked before that says nothing about now.
    closed: u64,
    /// When the first of the failures in a row was asked.
    failing: u64,
    /// The number of the call that asks, or did last.
    probe: u64,
    /// Whether the last one that asked was answered, but late.
    was_slow: bool,
    /// The first of the calls that nobody answered while this process was late, and its fellows.
    unanswered: Option<Ticket>,
}

/// What a call has heard from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Answer,
    Timeout,
    Failure,
    /// Nothing that tells how the store does.
    Nothing,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flip {
    /// Why, and for how many microseconds.
    Opened(&'static str, u64),
    Probing,
    StillOpen,
    Closed,
}

impl Circuit {
    pub(crate) fn new(settings: Breaker, now: u64) -> Self {
        let pauses = Pauses::new(&settings);
        Self {
            state: AtomicU8::new(CLOSED),
            due: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
            turn: AtomicU64::new(0),
            failures: settings.failures,
            slower_than: micros(settings.slower_than),
            longest: pauses.longest().max(PATIENCE),
            inner: Mutex::new(Inner {
                window: Window::new(&settings, now),
                pauses,
                closed: 0,
                failing: 0,
                probe: 0,
                was_slow: false,
                unanswered: None,
            }),
        }
    }

    pub(crate) fn state(&self) -> BreakerState {
        match self.state.load(Relaxed) {
            CLOSED => BreakerState::Closed,
            HALF_OPEN => BreakerState::HalfOpen,
            _ => BreakerState::Open,
        }
    }

    /// Whether nobody has asked for long, though the time for that had come. So it is with a part of a store
    /// that has nothing to serve any more: its breaker would stay open for ever.
    pub(super) fn is_forgotten(&self, now: u64) -> bool {
        !self.is_closed() && now.saturating_sub(self.due.load(Relaxed)) > FORGOTTEN
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Relaxed) == CLOSED
    }

    /// Lets a call to the store in, or not.
    pub(crate) fn enter(&self, asked: Moment) -> Option<Ticket> {
        let answers = self.answers.load(Relaxed);
        let call = Ticket { shard: 0, asked, answers, probe: None };
        let now = asked.time;
        if self.is_closed() {
            return Some(call);
        }
        if !self.is_due(now) {
            return None;
        }
        let mut inner = self.lock();
        if self.is_closed() {
            return Some(call);
        }
        if !self.is_due(now) {
            return None;
        }
        inner.probe += 1;
        self.due.store(now.saturating_add(PATIENCE), Relaxed);
        self.state.store(HALF_OPEN, Relaxed);
        Some(Ticket { probe: NonZeroU64::new(inner.probe), ..call })
    }

    /// A call that was let in has ended.
    pub(crate) fn leave(&self, ticket: Ticket, at: Moment, heard: Heard) -> Option<Flip> {
        let now = at.time;
        if ticket.probe.is_some() {
            return self.probed(ticket, at, heard);
        }
        match heard {
            Heard::Nothing => None,
            Heard::Answer => self.answered(ticket, at),
            Heard::Timeout if !self.is_slow(ticket, now) => None,
            Heard::Timeout if was_late(ticket, at) && !self.is_silent(ticket, at) => None,
            Heard::Timeout | Heard::Failure => self.failed(ticket, now),
        }
    }

    fn answered(&self, ticket: Ticket, at: Moment) -> Option<Flip> {
        let now = at.time;
        self.answers.fetch_add(1, Relaxed);
        if self.in_a_row.load(Relaxed) != 0 {
            self.in_a_row.store(0, Relaxed);
        }
        let slow = taken(ticket, at) > self.slower_than && self.is_slow(ticket, now);
        if !slow && now < self.turn.load(Relaxed) {
            return None;
        }
        let mut inner = self.lock();
        if !self.counts(&inner, ticket) {
            return None;
        }
        let answers = self.turn(&mut inner, now);
        if !slow {
            return None;
        }
        inner.window.slow();
        inner.window.is_bad(answers).then(|| self.open(&mut inner, now, "it is slow"))
    }

    fn failed(&self, ticket: Ticket, now: u64) -> Option<Flip> {
        let mut inner = self.lock();
        if !self.counts(&inner, ticket) {
            return None;
        }
        let in_a_row = self.in_a_row.fetch_add(1, Relaxed).saturating_add(1);
        let asked = ticket.asked.time;
        let first = if in_a_row == 1 { asked } else { inner.failing.min(asked) };
        inner.failing = first;
        let answers = self.turn(&mut inner, now);
        inner.window.failed();
        if in_a_row >= self.failures && now.saturating_sub(first) >= LASTING {
            return Some(self.open(&mut inner, now, "it failed several times in a row"));
        }
        inner.window.is_bad(answers).then(|| self.open(&mut inner, now, "it fails too often"))
    }

    fn probed(&self, ticket: Ticket, at: Moment, heard: Heard) -> Option<Flip> {
        let now = at.time;
        let mut inner = self.lock();
        if self.state.load(Relaxed) != HALF_OPEN || ticket.probe != NonZeroU64::new(inner.probe) {
            return None;
        }
        let slow = heard == Heard::Answer && taken(ticket, at) > self.slower_than;
        let again = match heard {
            Heard::Nothing => true,
            // The first one may have had to see to its connection first, with a round trip of its own.
            Heard::Answer => slow && !inner.was_slow,
            Heard::Timeout => was_late(ticket, at),
            Heard::Failure => false,
        };
        inner.was_slow = slow;
        if again {
            self.due.store(now, Relaxed);
            self.state.store(OPEN, Relaxed);
            return Some(Flip::StillOpen);
        }
        if slow || heard != Heard::Answer {
            let pause = inner.pauses.next(None);
            self.due.store(now.saturating_add(pause), Relaxed);
            self.state.store(OPEN, Relaxed);
            return Some(Flip::StillOpen);
        }
        inner.closed = now;
        inner.unanswered = None;
        let answers = self.answers.load(Relaxed);
        inner.window.clear(now, answers);
        self.turn(&mut inner, now);
        self.in_a_row.store(0, Relaxed);
        self.state.store(CLOSED, Relaxed);
        Some(Flip::Closed)
    }

    fn open(&self, inner: &mut Inner, now: u64, why: &'static str) -> Flip {
        let pause = inner.pauses.next(Some(now.saturating_sub(inner.closed)));
        inner.was_slow = false;
        self.due.store(now.saturating_add(pause), Relaxed);
        self.state.store(OPEN, Relaxed);
        Flip::Opened(why, pause)
    }

    /// Whether the store took too long, or too long for what it answered to others meanwhile.
    fn is_slow(&self, ticket: Ticket, now: u64) -> bool {
        let meanwhile = self.answers.load(Relaxed).saturating_sub(ticket.answers);
        let taken = now.saturating_sub(ticket.asked.time);
        // A wait for others of this process, if they were answered at a good rate.
        meanwhile.saturating_mul(self.slower_than.min(PACE)) < taken.max(1).saturating_mul(ROUND)
    }

    /// Whether the store answered nobody since the first of the calls that went unanswered while this
    /// process was late, and for too long to lay it to that.
    fn is_silent(&self, ticket: Ticket, at: Moment) -> bool {
        let answers = self.answers.load(Relaxed);
        let mut inner = self.lock();
        let first = inner.unanswered.filter(|first| first.answers == answers);
        let first = *inner.unanswered.insert(first.unwrap_or(ticket));
        first.answers == answers && taken(first, at) > SILENCE
    }

    /// Whether a call was asked since the breaker was closed, and it still is.
    fn counts(&self, inner: &Inner, ticket: Ticket) -> bool {
        self.is_closed() && ticket.asked.time >= inner.closed
    }

    /// Begins the slices that have come. The number of answers so far.
    fn turn(&self, inner: &mut Inner, now: u64) -> u64 {
        let answers = self.answers.load(Relaxed);
        self.turn.store(inner.window.turn(now, answers), Relaxed);
        answers
    }

    /// Whether somebody may ask. A clock that stepped back delays that by no more than a pause.
    fn is_due(&self, now: u64) -> bool {
        let left = self.due.load(Relaxed).saturating_sub(now);
        left == 0 || left > self.longest
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call took, but for the time for which this process was late.
const fn taken(ticket: Ticket, at: Moment) -> u64 {
    at.time.saturating_sub(ticket.asked.time).saturating_sub(lateness(ticket, at))
}

/// Whether this process was late for at least half of the time of a call.
const fn was_late(ticket: Ticket, at: Moment) -> bool {
    let late = lateness(ticket, at);
    late > 0 && late >= taken(ticket, at)
}

/// For how long this process was late in the time of a call.
const fn lateness(ticket: Ticket, at: Moment) -> u64 {
    at.lateness.saturating_sub(ticket.asked.lateness)
}
