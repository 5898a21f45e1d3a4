//! The scripts, joined from their parts.

macro_rules! join {
    ($(before $first:literal,)? $last:literal) => {
        concat!(
            include_str!("../../../lua/lib/clock.lua"),
            include_str!("../../../lua/lib/put.lua"),
            include_str!("../../../lua/lib/bucket.lua"),
            $(include_str!($first),)?
            include_str!("../../../lua/algorithm/token_bucket.lua"),
            include_str!("../../../lua/algorithm/fixed_window.lua"),
            include_str!("../../../lua/algorithm/sliding_counter.lua"),
            include_str!("../../../lua/algorithm/sliding_log.lua"),
            include_str!("../../../lua/algorithm/lock.lua"),
            include_str!($last),
        )
    };
}

/// Decides a batch of requests. What most of them need comes first, before the rest is made.
pub(super) const ACQUIRE: &str =
    join!(before "../../../lua/buckets.lua", "../../../lua/acquire.lua");

/// Gives back what was charged.
pub(super) const REFUND: &str = join!("../../../lua/refund.lua");
