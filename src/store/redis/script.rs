use std::sync::OnceLock;

use deadpool_redis::redis::Script as Hashed;

use super::source;

/// A script, and the name by which a server knows it once it was loaded: its SHA-1.
pub(super) struct Script {
    source: &'static str,
    hashed: OnceLock<Hashed>,
}

/// Decides a batch of requests.
pub(super) static ACQUIRE: Script = Script::new(source::ACQUIRE);

/// Gives back what was charged.
pub(super) static REFUND: Script = Script::new(source::REFUND);

impl Script {
    const fn new(source: &'static str) -> Self {
        Self { source, hashed: OnceLock::new() }
    }

    pub(super) const fn source(&self) -> &'static str {
        self.source
    }

    pub(super) fn sha(&self) -> &str {
        self.hashed.get_or_init(|| Hashed::new(self.source)).get_hash()
    }
}
