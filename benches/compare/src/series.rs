//! Rounds, medians, and what they come to beside each other.

use std::{fmt, time::Duration};

/// What one contender did in one round. What was not measured is not a number.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    /// Checks per second.
    pub(crate) rate: f64,
    /// Microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) cpu: Cpu,
}

/// Processor time per check, in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) client: f64,
    pub(crate) server: f64,
}

impl Cpu {
    pub(crate) const fn whole(self) -> f64 {
        self.client + self.server
    }
}

impl Round {
    /// From how many checks were counted, and how long each took if that was measured.
    pub(crate) fn new(count: usize, mut taken: Vec<Duration>, over: Duration, cpu: Cpu) -> Self {
        taken.sort_unstable();
        let quantile = |share: f64| {
            let at = (taken.len() as f64 * share) as usize;
            taken.get(at).map_or(f64::NAN, |taken| taken.as_secs_f64() * 1e6)
        };
        let rate = count as f64 / over.as_secs_f64();
        Self { rate, p50: quantile(0.5), p99: quantile(0.99), cpu }
    }

    /// Nanoseconds of one check, where one thread makes them all and never waits: of processor time,
    /// which leaves out the turns of others, or by the clock where that is not known.
    pub(crate) fn nanos(&self) -> f64 {
        if self.cpu.client > 0.0 { self.cpu.client * 1e3 } else { 1e9 / self.rate }
    }
}

/// All rounds of one contender in one workload.
pub(crate) struct Series {
    pub(crate) name: String,
    /// The name of the series that it is held against.
    pub(crate) beside: &'static str,
    pub(crate) rounds: Vec<Round>,
}

impl Series {
    pub(crate) fn median(&self, of: fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of).collect())
    }

    /// A figure of this series by that of another: the ratio of the medians, and the least and the
    /// greatest ratio within one round.
    pub(crate) fn by(&self, other: &Self, of: fn(&Round) -> f64) -> Figure {
        let medians = self.median(of) / other.median(of);
        Figure::over(medians, self.pairs(other).map(|(mine, theirs)| of(mine) / of(theirs)))
    }

    /// How much more of it than the other has.
    pub(crate) fn less(&self, other: &Self, of: fn(&Round) -> f64) -> Figure {
        let medians = self.median(of) - other.median(of);
        Figure::over(medians, self.pairs(other).map(|(mine, theirs)| of(mine) - of(theirs)))
    }

    fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Round, &'a Round)> {
        self.rounds.iter().zip(&other.rounds)
    }
}

/// A figure of the medians, and its range over the rounds.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) medians: f64,
    least: f64,
    greatest: f64,
}

impl Figure {
    fn over(medians: f64, rounds: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for figure in rounds {
            (least, greatest) = (least.min(figure), greatest.max(figure));
        }
        Self { medians, least, greatest }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { medians, least, greatest } = self;
        let places = match medians.abs() {
            ..0.1 => 3,
            ..100.0 => 2,
            _ => 0,
        };
        write!(f, "{medians:.places$} ({least:.places$} to {greatest:.places$})")
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}
