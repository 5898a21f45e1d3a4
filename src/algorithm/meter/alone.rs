use super::{Meter, State};
use crate::{decision::Standing, time::Timestamp};

impl Meter {
    /// All steps of a decision at once, for a request that has no other limit: where the key then
    /// stands, and, if its state changed, the moment from which that says no more than none.
    pub(crate) fn decide(
        &self,
        state: &mut State,
        cost: u64,
        now: Timestamp,
    ) -> (Standing, Option<u64>) {
        if let (Self::TokenBucket(bucket), State::TokenBucket(full_at)) = (self, &mut *state) {
            let (backlog, ahead) = bucket.backlog(Some(*full_at), now);
            let admitted = bucket.fits(backlog, cost);
            let standing = bucket.standing(backlog, cost, admitted, now);
            let changed = ahead || (admitted && cost > 0);
            if changed {
                *full_at = bucket.state(backlog, if admitted { cost } else { 0 }, now);
            }
            let (micros, picos) = standing.stamp.parts();
            let fresh_at = micros.saturating_add(u64::from(picos > 0));
            return (standing, changed.then_some(fresh_at));
        }
        let settled = self.settle(state, now);
        let found = self.read(Some(state), now);
        let admitted = self.fits(found, cost, now);
        let found = self.foresee(found, Some(state), cost, admitted, now);
        let charged = admitted && cost > 0;
        if charged {
            self.charge(state, found, cost, now);
        }
        let standing = self.standing(found, cost, admitted, now);
        (standing, (settled || charged).then(|| self.fresh_at(state)))
    }
}
