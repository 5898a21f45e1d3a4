use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderValue, StatusCode};

use crate::quota::Quota;

/// Where a key stands with one limit, after a request was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub(crate) fits: bool,
    pub(crate) remaining: u64,
    /// Microseconds until a request of the same cost passes; none if it never does.
    pub(crate) wait: Option<u64>,
    /// Microseconds until nothing is taken.
    pub(crate) reset: u64,
    pub(crate) stamp: Stamp,
}

/// By what a charge is known when it is to be given back: of a token bucket, the moment at which it is
/// full again after the charge; of other algorithms, the moment of the charge. Units that have come
/// back by themselves since then are not there to be given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    micros: u64,
    picos: u32,
}

impl Stamp {
    /// No stamp of one charge, but of whichever were the latest: what is given back by it are the last
    /// units that were taken, each as far as it has not come back by itself.
    pub const LATEST: Self = Self { micros: u64::MAX, picos: u32::MAX };

    /// The moment `micros` microseconds and `picos` picoseconds, fewer than a million, after the Unix
    /// epoch.
    #[must_use]
    pub const fn new(micros: u64, picos: u32) -> Self {
        Self { micros, picos }
    }

    /// Whole microseconds since the Unix epoch, and the picoseconds above them.
    #[must_use]
    pub const fn parts(self) -> (u64, u32) {
        (self.micros, self.picos)
    }
}

impl Standing {
    /// Whether this limit alone would have admitted the request.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.fits
    }

    /// Units that are left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// How long until this limit admits a further request of the same cost (of cost 1, after
    /// a request of cost 0): zero if it would now, `None` if the cost is above what the limit can
    /// ever grant.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.wait.map(Duration::from_micros)
    }

    /// How long until all units are back.
    #[must_use]
    pub const fn reset(&self) -> Duration {
        Duration::from_micros(self.reset)
    }

    /// By what the charge is known, if there was one.
    #[must_use]
    pub const fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// A key that its limit has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locked {
    /// Microseconds until it ends.
    pub(crate) left: u64,
    pub(crate) status: StatusCode,
}

/// What a limit says, shared by all its verdicts.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The name of the policy that it belongs to.
    pub(crate) policy: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) quota: Quota,
    /// What header fields say of it.
    pub(crate) fields: OnceLock<RuleFields>,
}

/// The parts of header fields that are the same for all answers of a limit.
#[derive(Clone, Debug)]
pub(crate) struct RuleFields {
    /// Its item of `RateLimit-Policy`.
    pub(crate) policy: HeaderValue,
    pub(crate) burst: HeaderValue,
}

impl Rule {
    pub(crate) fn new(policy: &Arc<str>, name: &Arc<str>, quota: Quota) -> Self {
        let (policy, name) = (Arc::clone(policy), Arc::clone(name));
        Self { policy, name, quota, fields: OnceLock::new() }
    }
}

/// The answer of one limit for one key.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub(crate) rule: Arc<Rule>,
    /// The place of the key among those that the request has for this limit.
    pub(crate) key: usize,
    pub(crate) cost: u64,
    pub(crate) shadow: bool,
    pub(crate) standing: Standing,
    pub(crate) locked: Option<Locked>,
}

impl Verdict {
    /// The name of the limit.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.rule.name
    }

    /// The quota that was enforced.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.rule.quota
    }

    /// Which of the request's keys it is about, where the limit counts several: 0 for the first that
    /// the extractor drew. One that it drew twice has the place of the first.
    #[must_use]
    pub const fn key_index(&self) -> usize {
        self.key
    }

    /// Units that the request asked for.
    #[must_use]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether the limit only watches: that it does not fit denies nothing.
    #[must_use]
    pub const fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Whether the limit denied the request.
    #[must_use]
    pub const fn denies(&self) -> bool {
        !self.shadow && !self.standing.fits
    }

    /// Where the key stands now.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// How long the key is locked yet, by a [`Lockout`](crate::Lockout). `None` if it is not.
    #[must_use]
    pub fn locked(&self) -> Option<Duration> {
        self.locked.map(|locked| Duration::from_micros(locked.left))
    }

    /// Microseconds until the moment that clients are told: when all units are back if some are
    /// left, otherwise when a request like this one passes.
    pub(crate) fn reset_micros(&self, allowed: bool) -> Option<u64> {
        if allowed && self.standing.remaining > 0 {
            return Some(self.standing.reset);
        }
        self.standing.wait
    }

    /// Orders the limits of an admitted request by what they leave for more of its kind.
    pub(super) fn scarcity(&self) -> (u64, std::cmp::Reverse<Option<u64>>) {
        let further = self.standing.remaining / self.cost.max(1);
        (further, std::cmp::Reverse(self.reset_micros(true)))
    }
}
