//! Ways to ask whether a key may take one unit.

mod peers;
mod service;
mod shared;

use std::time::Duration;

pub(crate) use peers::{governor, governor_with_headers, tower_rate_limit_redis};
pub(crate) use service::{Layered, bare, layer};
pub(crate) use shared::{Checkout, Raw, Tollgate, redis, script_sha};
use tollgate::Quota;

/// Benchmarks run on machines that are busy; a deadline that passes is not what is measured.
const PATIENCE: Duration = Duration::from_secs(10);

/// One caller's way to ask.
pub(crate) trait Contender: Clone + Send + 'static {
    /// What caller number `at` uses.
    fn caller(&self, at: usize) -> Self {
        let _ = at;
        self.clone()
    }

    /// Takes one unit for key number `key`, and says whether that was admitted.
    fn check(&mut self, key: usize) -> impl Future<Output = bool> + Send;
}

/// One unit every so often, and as many as `burst` at once.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) every: Duration,
    pub(crate) burst: u64,
}

/// For many keys: ten per second, and wide enough that all pass.
pub(crate) const WIDE: Room = Room { every: Duration::from_millis(100), burst: 60_000 };
/// The same with so slow a refill that states stay.
pub(crate) const SLOW: Room = Room { every: Duration::from_secs(3_600), burst: 60_000 };
/// For one key.
pub(crate) const HOT: Room = Room { every: Duration::from_secs(1), burst: 300_000_000 };
/// Exhausted by the first request of each key.
pub(crate) const NARROW: Room = Room { every: Duration::from_secs(86_400), burst: 1 };

impl Room {
    pub(crate) fn quota(self) -> Quota {
        let quota = Quota::new(1, self.every).expect("a valid quota");
        quota.burst(self.burst)
    }

    /// The parameters of the script, in microseconds: of one unit, and of the burst.
    pub(crate) fn parameters(self) -> String {
        let unit = self.every.as_micros() as u64;
        format!("{unit} {}", unit * self.burst)
    }
}
