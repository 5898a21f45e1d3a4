//! Numbers of nodes. Each may have a breaker, of which there is no end of room: nodes that come and go under
//! new addresses have those of nodes that left long ago.

use std::{collections::HashMap, hash::Hash, time::Duration};

/// A number is not given to another before. By then, nobody waits for the node that had it, and its breaker
/// is forgotten.
const REST: Duration = Duration::from_secs(120);

pub(super) struct Numbers<A> {
    given: HashMap<A, Given>,
}

struct Given {
    /// From 1.
    number: u32,
    /// When the node was found to be gone, if it is.
    left: Option<Duration>,
}

impl<A> Default for Numbers<A> {
    fn default() -> Self {
        Self { given: HashMap::new() }
    }
}

impl<A: Clone + Eq + Hash> Numbers<A> {
    /// The number of the node at this address: the one that it has or had, or else that of a node which left
    /// before all others and long ago, or else a new one.
    pub(super) fn of(&mut self, address: &A, now: Duration) -> u32 {
        if let Some(given) = self.given.get_mut(address) {
            given.left = None;
            return given.number;
        }
        let left = |(other, given): (&A, &Given)| Some((given.left?, other.clone()));
        let longest = self.given.iter().filter_map(left).min_by_key(|(left, _)| *left);
        let rested = longest.filter(|(left, _)| now.saturating_sub(*left) >= REST);
        let freed = rested.and_then(|(_, other)| self.given.remove(&other));
        let next = u32::try_from(self.given.len() + 1).unwrap_or(u32::MAX);
        let number = freed.map_or(next, |freed| freed.number);
        self.given.insert(address.clone(), Given { number, left: None });
        number
    }

    /// Takes note of who is still there.
    pub(super) fn stay(&mut self, is_there: impl Fn(&A) -> bool, now: Duration) {
        for (address, given) in &mut self.given {
            given.left = if is_there(address) { None } else { given.left.or(Some(now)) };
        }
    }
}
