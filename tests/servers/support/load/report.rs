//! What the callers saw.

use std::{collections::BTreeMap, fmt, time::Duration};

/// The outcomes and latencies of all calls, by phase. Displays as a Markdown table.
#[derive(Debug)]
pub(crate) struct Report(Vec<Phase>);

impl Report {
    pub(super) fn new(mut phases: Vec<Phase>) -> Self {
        phases.retain(|phase| phase.total() > 0);
        for phase in &mut phases {
            phase.latencies.sort_unstable();
        }
        Self(phases)
    }

    /// The calls that began in the phase `name`.
    ///
    /// # Panics
    ///
    /// If there was no such call.
    pub(crate) fn phase(&self, name: &str) -> &Phase {
        let found = self.0.iter().find(|phase| phase.name == name);
        found.unwrap_or_else(|| panic!("no call was made in phase `{name}`:\n{self}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| phase | calls | outcomes | p50 | p99 | max |")?;
        writeln!(f, "|---|---:|---|---:|---:|---:|")?;
        self.0.iter().try_for_each(|phase| writeln!(f, "{phase}"))
    }
}

/// The calls that began in one phase. Displays as a row of a Markdown table.
#[derive(Debug)]
pub(crate) struct Phase {
    name: &'static str,
    counts: BTreeMap<&'static str, u64>,
    /// Sorted once the load has ended.
    latencies: Vec<Duration>,
}

impl Phase {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, counts: BTreeMap::new(), latencies: Vec::new() }
    }

    pub(super) fn add(&mut self, label: &'static str, latency: Duration) {
        *self.counts.entry(label).or_default() += 1;
        self.latencies.push(latency);
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// How many calls had the outcome `label`.
    pub(crate) fn count(&self, label: &str) -> u64 {
        self.counts.get(label).copied().unwrap_or(0)
    }

    /// How many calls there were.
    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Half of the calls took no longer.
    pub(crate) fn p50(&self) -> Duration {
        self.percentile(50)
    }

    /// All but one call in a hundred took no longer.
    pub(crate) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    /// The longest that a call took.
    pub(crate) fn max(&self) -> Duration {
        self.percentile(100)
    }

    /// The nearest rank: the shortest latency that `percent` of all calls do not exceed.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.latencies.len() * percent).div_ceil(100);
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes: Vec<_> =
            self.counts.iter().map(|(label, count)| format!("{label} {count}")).collect();
        write!(
            f,
            "| {} | {} | {} | {:.1?} | {:.1?} | {:.1?} |",
            self.name,
            self.total(),
            outcomes.join(", "),
            self.p50(),
            self.p99(),
            self.max()
        )
    }
}
