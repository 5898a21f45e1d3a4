//! Rounds, medians and the table.

use std::time::Duration;

/// What one contender did in one round.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) cpu: f64,
}

impl Round {
    /// From how long each check took, and the processor time of one in microseconds.
    pub(crate) fn new(mut taken: Vec<Duration>, over: Duration, cpu: f64) -> Self {
        let rate = taken.len() as f64 / over.as_secs_f64();
        taken.sort_unstable();
        let quantile = |share: f64| {
            let at = (taken.len() as f64 * share) as usize;
            taken.get(at).map_or(f64::NAN, |taken| taken.as_secs_f64() * 1e6)
        };
        Self { rate, p50: quantile(0.5), p99: quantile(0.99), cpu }
    }
}

/// All rounds of one contender with so many callers.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) callers: usize,
    pub(crate) rounds: Vec<Round>,
}

impl Series {
    fn median(&self, of: fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of).collect())
    }

    /// A figure of this series by that of another: the ratio of the medians, and the least and the
    /// greatest ratio within one round.
    fn by(&self, other: &Self, of: fn(&Round) -> f64) -> Ratio {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let ratios = || pairs.clone().map(|(mine, theirs)| of(mine) / of(theirs));
        Ratio {
            medians: self.median(of) / other.median(of),
            least: ratios().fold(f64::INFINITY, f64::min),
            greatest: ratios().fold(0.0, f64::max),
        }
    }
}

struct Ratio {
    medians: f64,
    least: f64,
    greatest: f64,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.medians, self.least, self.greatest)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// Prints medians, and the ratios of the first series with so many callers to the others.
pub(crate) fn print(series: &[Series]) {
    println!("| callers | contender | checks/s | p50 µs | p99 µs | CPU µs per check |");
    println!("|---:|---|---:|---:|---:|---:|");
    for one in series {
        println!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.1} |",
            one.callers,
            one.name,
            one.median(|round| round.rate),
            one.median(|round| round.p50),
            one.median(|round| round.p99),
            one.median(|round| round.cpu),
        );
    }
    println!("\n| callers | tollgate by | checks/s | p50 | CPU per check |");
    println!("|---:|---|---:|---:|---:|");
    for one in series {
        let first = series.iter().find(|other| other.callers == one.callers);
        let Some(first) = first.filter(|first| !std::ptr::eq(*first, one)) else { continue };
        println!(
            "| {} | {} | {} | {} | {} |",
            one.callers,
            one.name,
            first.by(one, |round| round.rate),
            first.by(one, |round| round.p50),
            first.by(one, |round| round.cpu),
        );
    }
}
