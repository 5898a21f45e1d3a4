use super::Breaker;
use crate::time::micros;

/// How long a breaker stays open, in microseconds: longer each time, until it has been closed for a while.
#[derive(Debug)]
pub(super) struct Pauses {
    shortest: u64,
    longest: u64,
    /// How long it must have been closed to begin with the shortest again.
    forget: u64,
    next: u64,
}

impl Pauses {
    pub(super) fn new(settings: &Breaker) -> Self {
        let (shortest, longest) = settings.pauses;
        let shortest = micros(shortest);
        Self { shortest, longest: micros(longest), forget: micros(settings.window), next: shortest }
    }

    /// The next one, after the store had answered for `well` microseconds, if it had.
    pub(super) fn next(&mut self, well: Option<u64>) -> u64 {
        if well.is_some_and(|well| well >= self.forget) {
            self.next = self.shortest;
        }
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        pause - fastrand::u64(0..=pause / 2)
    }

    pub(super) const fn longest(&self) -> u64 {
        self.longest
    }
}
