use super::Breaker;
use crate::time::micros;

const SLICES: usize = 10;
/// Bad calls of fewer slices came in one moment.
const LASTING: usize = 3;

/// The calls of the last while, in slices of time. Answers are counted elsewhere, by all threads at
/// once: here is what their number was when each slice began.
#[derive(Debug)]
pub(super) struct Window {
    slices: [Slice; SLICES],
    /// The number of the slice that counts now.
    number: u64,
    /// Microseconds.
    slice: u64,
    share: f64,
    calls: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    answers: u64,
    failed: u64,
    slow: u64,
}

impl Window {
    pub(super) fn new(settings: &Breaker, now: u64) -> Self {
        let slice = (micros(settings.window) / SLICES as u64).max(1);
        let (share, calls) = (settings.share, settings.calls.into());
        Self { slices: Default::default(), number: now / slice, slice, share, calls }
    }

    /// Begins anew.
    pub(super) fn clear(&mut self, now: u64, answers: u64) {
        self.number = now / self.slice;
        self.slices = [Slice { answers, ..Slice::default() }; SLICES];
    }

    /// Begins the slices that have come, and says when the next one does.
    pub(super) fn turn(&mut self, now: u64, answers: u64) -> u64 {
        let number = now / self.slice;
        if number < self.number || number - self.number >= SLICES as u64 {
            self.clear(now, answers);
        }
        while self.number < number {
            self.number += 1;
            *self.current() = Slice { answers, ..Slice::default() };
        }
        (number + 1).saturating_mul(self.slice)
    }

    pub(super) fn failed(&mut self) {
        self.current().failed += 1;
    }

    pub(super) fn slow(&mut self) {
        self.current().slow += 1;
    }

    /// Whether too many calls failed or were slow, and not all in one moment.
    pub(super) fn is_bad(&self, answers: u64) -> bool {
        let oldest = self.slices[((self.number + 1) % SLICES as u64) as usize];
        let bad = |slice: &Slice| slice.failed + slice.slow;
        let failed: u64 = self.slices.iter().map(|slice| slice.failed).sum();
        let calls = answers.saturating_sub(oldest.answers) + failed;
        let all = self.slices.iter().map(bad).sum::<u64>();
        let lasts = self.slices.iter().filter(|slice| bad(slice) > 0).count() >= LASTING;
        lasts && calls >= self.calls && all as f64 >= calls as f64 * self.share
    }

    const fn current(&mut self) -> &mut Slice {
        &mut self.slices[(self.number % SLICES as u64) as usize]
    }
}
