use std::time::Duration;

const MAX_FAILURES: u32 = 10_000;
const MAX_CALLS: u32 = 1_000_000;
const SHORTEST_WINDOW: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);

/// When a limiter stops asking a store that fails or is slow, and for how long.
///
/// While the breaker is *open*, a request meets the [failure policy](crate::OnFailure) at once, without
/// waiting for anything. After a pause it is *half open*: one request, and no other at the same time,
/// goes to the store. If that is answered, the breaker is *closed* again; if not, the pause doubles.
///
/// It opens when any of these holds:
///
/// - [`failures`](Self::failures) calls in a row have failed, over at least 10 ms;
/// - of the calls of the last [`window`](Self::window), at least [`calls`](Self::calls), the share
///   [`share`](Self::share) failed or were slow, and not all in one moment.
///
/// A failure is a timeout, an unreachable store, and one that is busy, read-only or out of memory. What
/// says nothing about the store as a whole is none: a queue of this process that is full, a key of
/// another type, a missing right.
///
/// The time of a call counts from when it was handed to the store. Where it waited for others of its own
/// process, which the store answered meanwhile at a good rate (9,600 per second; more, if less than 20 ms
/// counts as slow), it is not the store that is slow: such a wait, and a timeout after it, do not count.
/// Nor does the time for which this process was [late](crate::Store::lateness), nor a timeout for which it
/// was at least half of the time; unless the store then answers nobody for 100 ms besides.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Breaker, BreakerState, Limiter, MemoryStore};
///
/// # let store = MemoryStore::new();
/// let limiter = Limiter::builder(store)
///     .breaker(Breaker::default().slower_than(Duration::from_millis(50)).failures(10))
///     .build();
/// assert_eq!(limiter.health().breaker(), BreakerState::Closed);
/// ```
///
/// Each limiter has its own, so share one limiter between layers. All settings panic where they are out
/// of their bounds, as literals do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Breaker {
    pub(super) failures: u32,
    pub(super) share: f64,
    pub(super) calls: u32,
    pub(super) window: Duration,
    pub(super) slower_than: Duration,
    pub(super) pauses: (Duration, Duration),
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            share: 0.5,
            calls: 20,
            window: Duration::from_secs(2),
            slower_than: Duration::from_millis(20),
            pauses: (Duration::from_millis(100), Duration::from_millis(500)),
        }
    }
}

impl Breaker {
    /// So many failures in a row open it, 1 to 10,000. Default: 5.
    ///
    /// A connection that breaks fails all that were under way on it at once, so they must also lie
    /// 10 ms apart, counted from when the first of them was asked.
    ///
    /// # Panics
    ///
    /// If `failures` is 0 or above 10,000.
    pub fn failures(mut self, failures: u32) -> Self {
        assert!(
            (1..=MAX_FAILURES).contains(&failures),
            "a breaker that opens after {failures} failures: there must be 1 to {MAX_FAILURES}"
        );
        self.failures = failures;
        self
    }

    /// The share of failed and slow calls that opens it, more than 0, at most 1. Default: 0.5.
    ///
    /// # Panics
    ///
    /// If `share` is out of these bounds.
    pub fn share(mut self, share: f64) -> Self {
        assert!(
            share > 0.0 && share <= 1.0,
            "a share of {share} of calls that opens a breaker: it must be more than 0 and at most 1"
        );
        self.share = share;
        self
    }

    /// Of fewer calls than this within the window, the share does not matter; 1 to 1,000,000.
    /// Default: 20.
    ///
    /// # Panics
    ///
    /// If `calls` is 0 or above 1,000,000.
    pub fn calls(mut self, calls: u32) -> Self {
        assert!(
            (1..=MAX_CALLS).contains(&calls),
            "a breaker that judges by {calls} calls: there must be 1 to {MAX_CALLS}"
        );
        self.calls = calls;
        self
    }

    /// The time whose calls count for the share, 100 ms to 60 s. Default: 2 s. Its tenths tell whether
    /// bad calls came in one moment: they must be found in three of them.
    ///
    /// # Panics
    ///
    /// If `window` is out of these bounds.
    pub fn window(mut self, window: Duration) -> Self {
        assert!(
            (SHORTEST_WINDOW..=LONGEST).contains(&window),
            "a breaker's window of {window:?}: it must be {SHORTEST_WINDOW:?} to {LONGEST:?}"
        );
        self.window = window;
        self
    }

    /// A call that takes longer is slow, also if it is answered; more than 0, at most 60 s, with which
    /// nothing is slow that the store's own deadline lets pass. Default: 20 ms.
    ///
    /// # Panics
    ///
    /// If `longest` is out of these bounds.
    pub fn slower_than(mut self, longest: Duration) -> Self {
        assert!(
            longest >= Duration::from_micros(1) && longest <= LONGEST,
            "a breaker for calls that take longer than {longest:?}: it must be 1µs to {LONGEST:?}"
        );
        self.slower_than = longest;
        self
    }

    /// How long it stays open before a request may find out whether the store answers again: first
    /// `shortest`, then doubled each time, up to `longest`; 1 ms to 60 s. Default: 100 ms to 500 ms. Each
    /// time is cut by a random part of up to a half, so that the instances of a service do not ask all
    /// at once.
    ///
    /// # Panics
    ///
    /// If they are out of these bounds, or `shortest` is above `longest`.
    pub fn open_for(mut self, shortest: Duration, longest: Duration) -> Self {
        assert!(
            shortest >= Duration::from_millis(1) && shortest <= longest && longest <= LONGEST,
            "a breaker that is open for {shortest:?} to {longest:?}: it must be 1ms to {LONGEST:?}, \
             the shorter time first"
        );
        self.pauses = (shortest, longest);
        self
    }
}
