//! Points in time, spans of picoseconds, and the clocks of stores that keep state in this process.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub(crate) const PICOS_PER_MICRO: u128 = 1_000_000;
pub(crate) const PICOS_PER_SEC: u128 = 1_000_000_000_000;
pub(crate) const MICROS_PER_SEC: u64 = 1_000_000;

/// A span in whole microseconds.
pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// A point in time: whole microseconds since the Unix epoch, as the store's clock told it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point that lies `micros` microseconds after the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The point `span` later, with `span` cut to whole microseconds.
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// Seconds since the Unix epoch, rounded up, so that whoever waits for them waits long enough.
    #[must_use]
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(MICROS_PER_SEC)
    }

    pub(crate) const fn as_picos(self) -> u128 {
        self.0 as u128 * PICOS_PER_MICRO
    }
}

/// Tells a store that keeps its state in this process what time it is.
///
/// Stores outside the process, such as Redis, use their own clock: all instances then agree.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now. It should not go backwards; if it does, no caller is locked out for longer
    /// than one full refill.
    fn now(&self) -> Timestamp;
}

/// A monotonic clock that was set to Unix time once, when it was made.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    origin: Instant,
    unix: u64,
}

impl MonotonicClock {
    /// Starts a clock at the system's time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this file reads the system's clocks")]
    pub fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin: Instant::now(), unix: micros(unix) }
    }
}

impl MonotonicClock {
    /// How long this clock has run.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.elapsed();
        let micros = elapsed.as_secs().saturating_mul(MICROS_PER_SEC);
        let micros = micros.saturating_add(elapsed.subsec_micros().into());
        Timestamp(self.unix.saturating_add(micros))
    }
}

/// The system's clock, which follows when the system is set: for times that others have written, such
/// as those in tokens. A store counts better by a [`MonotonicClock`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file reads the system's clocks")]
    fn now(&self) -> Timestamp {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(micros(unix))
    }
}

/// A clock that stands still until it is told to move, for tests of code that uses a limiter.
///
/// Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, Limiter, ManualClock, MemoryStore, Quota};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let clock = ManualClock::new();
/// let limiter = Limiter::new(MemoryStore::builder().clock(clock.clone()).build());
/// let mails = Limit::new("mails", Quota::per_minute(1));
/// assert!(limiter.check(&mails, "user:42").await.unwrap().is_allowed());
/// assert!(!limiter.check(&mails, "user:42").await.unwrap().is_allowed());
/// clock.advance(Duration::from_secs(60));
/// assert!(limiter.check(&mails, "user:42").await.unwrap().is_allowed());
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock at 2025-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Timestamp::from_micros(1_735_689_600 * MICROS_PER_SEC))
    }

    /// A clock at `start`.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(start.as_micros())))
    }

    /// Moves the clock forward by `span`, cut to whole microseconds.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().saturating_add(span));
    }

    /// Sets the clock, also backwards.
    pub fn set(&self, to: Timestamp) {
        self.0.store(to.as_micros(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
