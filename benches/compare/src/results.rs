//! What was measured, by workload.

use crate::{series::Series, tool};

/// What contenders are called.
pub(crate) mod names {
    pub(crate) const TOLLGATE: &str = "tollgate";
    pub(crate) const FORGETFUL: &str = "tollgate, no denial remembered";
    pub(crate) const LEASE: &str = "tollgate, lease of 500";
    pub(crate) const MEMORY: &str = "tollgate, in memory";
    pub(crate) const CHECKOUT: &str = "pool checkout per request";
    pub(crate) const RAW: &str = "four raw connections";
    pub(crate) const RAW_ONE: &str = "one raw connection";
    pub(crate) const LAYER: &str = "tollgate layer";
    pub(crate) const LAYER_FORGETFUL: &str = "tollgate layer, no denial remembered";
    pub(crate) const LAYER_LEASE: &str = "tollgate layer, lease of 500";
    pub(crate) const PEER: &str = "tower-rate-limit-redis";
    pub(crate) const GOVERNOR: &str = "tower_governor, in memory, with headers";
    pub(crate) const GOVERNOR_PLAIN: &str = "tower_governor, in memory";
    pub(crate) const GOVERNOR_DENIED: &str = "tower_governor, with headers, denied";
    pub(crate) const BARE: &str = "the bare service";
    pub(crate) const NO_FIELDS: &str = "tollgate layer, no headers";
    pub(crate) const X_FIELDS: &str = "tollgate layer, X-RateLimit";
    pub(crate) const ALL_FIELDS: &str = "tollgate layer, all headers";
    pub(crate) const X_DENIED: &str = "tollgate layer, X-RateLimit, denied";
    pub(crate) const K1: &str = "1,000 keys";
    pub(crate) const K100: &str = "100,000 keys";
    pub(crate) const M1: &str = "1,000,000 keys";
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Load {
    Many,
    Hot,
    Flood,
    Memory,
    Sizes,
}

/// Contenders that took turns.
pub(crate) struct Group {
    pub(crate) load: Load,
    pub(crate) callers: usize,
    pub(crate) series: Vec<Series>,
    /// The share of the machine that others had meanwhile.
    pub(crate) others: f64,
}

impl Group {
    pub(crate) fn find(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// The server's tool in its best way.
    pub(crate) fn best_tool(&self) -> Option<&Series> {
        let ways = self.series.iter().filter(|series| series.name.starts_with(tool::NAME));
        ways.max_by(|a, b| a.median(|round| round.rate).total_cmp(&b.median(|round| round.rate)))
    }
}

/// The group of a workload with so many callers.
pub(crate) fn group(groups: &[Group], load: Load, callers: usize) -> Option<&Group> {
    groups.iter().find(|group| group.load == load && group.callers == callers)
}
