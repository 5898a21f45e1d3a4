use crate::{
    algorithm::Meter,
    store::{Hit, StoreError, redis::wire::Request},
};

/// A hit that outlives its caller.
pub(super) struct Owned {
    key: Box<[u8]>,
    pub(super) meter: Meter,
    pub(super) cost: u64,
    pub(super) shadow: bool,
    /// Its place in the request.
    pub(super) at: usize,
}

/// The hits of one request that lie in one slot, and are charged in one call.
pub(super) struct Group {
    pub(super) slot: u16,
    pub(super) hits: Vec<Owned>,
}

/// The groups of a request.
pub(super) struct Plan {
    /// Those that decide, in the order in which they are charged.
    pub(super) enforced: Vec<Group>,
    /// Those that only watch, which are charged once all others have been.
    pub(super) shadows: Vec<Group>,
    /// How many hits there are.
    pub(super) len: usize,
}

impl Plan {
    /// Groups hits by their slots. Shadows that lie where the last group is charged go with it.
    pub(super) fn new(hits: &[Hit<'_>], slot: impl Fn(&[u8]) -> u16) -> Result<Self, StoreError> {
        let (mut enforced, mut shadows): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
        let mut guarded: Option<(u16, bool)> = None;
        for (at, hit) in hits.iter().enumerate() {
            let own = slot(hit.key);
            // A lock stays with the hit that it guards.
            let (slot, shadow) = match guarded {
                Some(guarded) if hit.meter.guards() && guarded.0 == own => guarded,
                Some(_) if hit.meter.guards() => return Err(super::parted()),
                // What a lock guards that denies requests is charged with it.
                _ => {
                    let mut locks = hits[at + 1..].iter().take_while(|hit| hit.meter.guards());
                    (own, hit.shadow && locks.all(|lock| lock.shadow))
                }
            };
            guarded = Some((slot, shadow));
            let groups = if shadow { &mut shadows } else { &mut enforced };
            let Hit { key, meter, cost, shadow, .. } = *hit;
            let owned = Owned { key: key.into(), meter, cost, shadow, at };
            match groups.iter_mut().find(|group| group.slot == slot) {
                Some(group) => group.hits.push(owned),
                None => groups.push(Group { slot, hits: vec![owned] }),
            }
        }
        if let Some(last) = enforced.last_mut()
            && let Some(at) = shadows.iter().position(|group| group.slot == last.slot)
        {
            last.hits.extend(shadows.remove(at).hits);
            last.hits.sort_by_key(|hit| hit.at);
        }
        Ok(Self { enforced, shadows, len: hits.len() })
    }
}

impl Owned {
    pub(super) fn hit(&self) -> Hit<'_> {
        Hit { shadow: self.shadow, ..Hit::new(&self.key, self.meter, self.cost) }
    }
}

impl Group {
    /// Charges the hits, if they all fit.
    pub(super) fn charge(&self, prefix: &str) -> Request {
        let hits: Vec<Hit<'_>> = self.hits.iter().map(Owned::hit).collect();
        let mut request = Request::new(prefix, &hits);
        request.tells = true;
        request
    }

    /// Finds what the hits would find in a request that another limit denies: what does not fit is counted
    /// by its lock, and nothing is charged, as the first hit, once more with a cost that never fits, does not
    /// let it.
    pub(super) fn look(&self, prefix: &str) -> Request {
        let bar =
            self.hits.first().map(|first| Hit { cost: u64::MAX, shadow: false, ..first.hit() });
        let hits: Vec<Hit<'_>> = bar.into_iter().chain(self.hits.iter().map(Owned::hit)).collect();
        let mut request = Request::new(prefix, &hits);
        request.barred = true;
        request
    }
}
