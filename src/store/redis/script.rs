use std::sync::LazyLock;

use deadpool_redis::redis::Script as Hashed;

/// A script, and the name by which a server knows it once it was loaded: its SHA-1.
pub(super) struct Script {
    source: &'static str,
    hashed: LazyLock<Hashed>,
}

macro_rules! script {
    ($file:literal) => {{
        const SOURCE: &str = concat!(
            include_str!("../../../lua/lib/clock.lua"),
            include_str!("../../../lua/lib/put.lua"),
            include_str!("../../../lua/algorithm/token_bucket.lua"),
            include_str!("../../../lua/algorithm/fixed_window.lua"),
            include_str!("../../../lua/algorithm/sliding_counter.lua"),
            include_str!("../../../lua/algorithm/sliding_log.lua"),
            include_str!("../../../lua/algorithm/lock.lua"),
            include_str!($file),
        );
        Script { source: SOURCE, hashed: LazyLock::new(|| Hashed::new(SOURCE)) }
    }};
}

/// Decides a batch of requests.
pub(super) static ACQUIRE: Script = script!("../../../lua/acquire.lua");

/// Gives back what was charged.
pub(super) static REFUND: Script = script!("../../../lua/refund.lua");

impl Script {
    pub(super) const fn source(&self) -> &'static str {
        self.source
    }

    pub(super) fn sha(&self) -> &str {
        self.hashed.get_hash()
    }
}
