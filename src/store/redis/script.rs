use std::sync::LazyLock;

use deadpool_redis::redis::Script;

/// The script that decides a batch of requests.
pub(super) const SOURCE: &str = concat!(
    include_str!("../../../lua/lib/clock.lua"),
    include_str!("../../../lua/lib/put.lua"),
    include_str!("../../../lua/algorithm/token_bucket.lua"),
    include_str!("../../../lua/algorithm/fixed_window.lua"),
    include_str!("../../../lua/algorithm/sliding_counter.lua"),
    include_str!("../../../lua/algorithm/sliding_log.lua"),
    include_str!("../../../lua/acquire.lua"),
);

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));

/// The name by which a server knows the script once it was loaded: its SHA-1.
pub(super) fn sha() -> &'static str {
    SCRIPT.get_hash()
}
