use super::Meter;
use crate::{algorithm::FullAt, decision::Standing, time::Timestamp};

impl Meter {
    /// Whether units may be charged ahead and used later.
    #[must_use]
    pub const fn leases(&self) -> bool {
        matches!(self, Self::TokenBucket(_) | Self::FixedWindow(_))
    }

    /// How many of `units`, charged ahead by the charge that led to `after`, may still be used at `now`.
    ///
    /// A bucket refills meanwhile, and grants others what comes back; so no more may be used than its
    /// charge has not got back yet. Of a window, all may be, while it lasts.
    #[must_use]
    pub(crate) fn usable(&self, units: u64, after: Standing, now: Timestamp) -> u64 {
        match self {
            Self::TokenBucket(bucket) => {
                let (backlog, _) = bucket.backlog(Some(FullAt::from(after.stamp)), now);
                units.min(bucket.units_in(backlog))
            }
            Self::FixedWindow(window) => {
                let charged = Timestamp::from_micros(after.stamp.parts().0);
                if window.around(charged).0 == window.around(now).0 { units } else { 0 }
            }
            _ => 0,
        }
    }

    /// Where a key stands that has `held` units charged ahead, and uses `cost` of them at `now`.
    #[must_use]
    pub(crate) fn standing_of_held(
        &self,
        after: Standing,
        held: u64,
        cost: u64,
        now: Timestamp,
    ) -> Standing {
        let standing = match self {
            Self::TokenBucket(bucket) => {
                let (backlog, _) = bucket.backlog(Some(FullAt::from(after.stamp)), now);
                bucket.standing(bucket.without(backlog, held), cost, true, now)
            }
            Self::FixedWindow(window) => {
                let used = window.limit().saturating_sub(after.remaining);
                window.standing(used.saturating_sub(held), cost, true, now)
            }
            _ => after,
        };
        Standing { stamp: after.stamp, ..standing }
    }
}
