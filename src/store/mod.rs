//! Where the states of limits are kept.

mod error;
mod memory;
#[cfg(feature = "redis")]
pub mod redis;
mod reply;

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc, time::Duration};

use smallvec::SmallVec;

pub(crate) use self::reply::{Moment, Ticket, Tickets, Watch};
pub use self::{
    error::{StoreError, StoreErrorKind},
    memory::{MemoryStore, MemoryStoreBuilder},
    reply::Reply,
};
use crate::{
    algorithm::{Meter, Reading},
    decision::{Source, Stamp, Standing},
    time::Timestamp,
};

/// The most states that one request may be charged to, locks included: eight limits of eight keys
/// each, all with a lock.
pub const MAX_HITS: usize = 128;

/// One limit of one request, as a store sees it.
#[derive(Clone, Copy)]
pub struct Hit<'a> {
    /// The name of the state, unique among the limits of one request.
    pub key: &'a [u8],
    /// How it counts, with its numbers.
    pub meter: Meter,
    /// Units to take; 0 only looks.
    pub cost: u64,
    /// Whether it only watches: it does not count for whether the request is admitted, and is charged
    /// if the others admit the request and it fits itself.
    pub shadow: bool,
    /// Units that this process may charge ahead and hold; 0 for none. Stores need not look at it.
    pub lease: u64,
}

impl<'a> Hit<'a> {
    /// A hit that takes `cost` units of the state of this name.
    #[must_use]
    pub const fn new(key: &'a [u8], meter: Meter, cost: u64) -> Self {
        Self { key, meter, cost, shadow: false, lease: 0 }
    }
}

/// Units of one charge, to be given back.
#[derive(Clone, Copy)]
pub struct Refund<'a> {
    /// The name of the state that was charged.
    pub key: &'a [u8],
    /// How it counts, with its numbers.
    pub meter: Meter,
    /// Units to give back, no more than were charged.
    pub units: u64,
    /// By what the charge is known.
    pub stamp: Stamp,
}

impl fmt::Debug for Refund<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refund").field("units", &self.units).field("stamp", &self.stamp).finish()
    }
}

/// Keys may name people, so they are not shown.
impl fmt::Debug for Hit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hit").field("meter", &self.meter).field("cost", &self.cost).finish()
    }
}

/// What a store answers for one request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The time of the decision, by the store's clock.
    pub now: Timestamp,
    /// Who decided.
    pub source: Source,
    /// Where each hit stands, in the order of the hits. The request was admitted, and its hits
    /// charged, if and only if all that are no shadows fit.
    pub standings: SmallVec<[Standing; 2]>,
    /// What each hit found, if the request was denied, for those who remember denials; may be left
    /// empty.
    pub found: Vec<Reading>,
}

/// Keeps the states of limits, and decides about them atomically.
///
/// Implementations share the arithmetic of [`Meter`], so that all give the same answers.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Charges all `hits` of one request, or none of them.
    ///
    /// A hit whose meter is a [`Lock`](crate::algorithm::Lock) guards the hit before it: it counts what
    /// that one denies, and is never charged.
    ///
    /// The hits are read before this returns; the reply does not borrow them. They number 1 to
    /// [`MAX_HITS`] and have different keys, else the reply is an error of kind
    /// [`Misconfigured`](StoreErrorKind::Misconfigured).
    ///
    /// A reply that is dropped may have charged or not.
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply;

    /// Gives back what was charged to different keys, as [`Meter::refund`] has it; no lock is among
    /// them. A charge is given back once; that is for the caller to see to, so a call is never repeated.
    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()>;

    /// Forgets the states of these names.
    fn reset(&self, keys: &[&[u8]]) -> Reply<()>;

    /// Whether it keeps its states in this process, so that remembering its answers saves nothing.
    fn is_local(&self) -> bool {
        false
    }

    /// What tells this store from others; clones that share states share it. Two layers that charge
    /// one request to the same state of the same store charge it once. Without an identity, that
    /// holds for layers that share a limiter.
    fn identity(&self) -> Option<usize> {
        None
    }

    /// Which part of the store keeps the state of this name. A part fails by itself, and has a breaker of
    /// its own, so that those of others are asked all the same. Numbers are small, and that of one part
    /// stays while there is the part, and for a while longer; the part of a name may change. An error of one part says [which](StoreError::at); another one
    /// counts against all that the call went to. Default: there is one part, of the number 0; several have
    /// numbers from 1.
    fn shard(&self, _key: &[u8]) -> u32 {
        0
    }

    /// What a part is known by to those who run the store, such as the address of its server, for logs. Never
    /// a user, a password or a key. Default: nothing.
    fn shard_name(&self, _shard: u32) -> Option<Cow<'_, str>> {
        None
    }

    /// How late this process was, in all, in what replies wait for: in sending what is asked, and in
    /// hearing what is answered. A [`Breaker`](crate::Breaker) takes it from the time of a call, so that
    /// an overloaded process does not take its store for slow. Zero, where that is not known.
    fn lateness(&self) -> Duration {
        Duration::ZERO
    }

    /// Finishes what is pending, before the process ends.
    fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

macro_rules! delegate {
    ($pointer:ident) => {
        impl<S: Store + ?Sized> Store for $pointer<S> {
            fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
                (**self).acquire(hits)
            }

            fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
                (**self).refund(refunds)
            }

            fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
                (**self).reset(keys)
            }

            fn is_local(&self) -> bool {
                (**self).is_local()
            }

            fn identity(&self) -> Option<usize> {
                (**self).identity()
            }

            fn shard(&self, key: &[u8]) -> u32 {
                (**self).shard(key)
            }

            fn shard_name(&self, shard: u32) -> Option<Cow<'_, str>> {
                (**self).shard_name(shard)
            }

            fn lateness(&self) -> Duration {
                (**self).lateness()
            }

            fn shutdown(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
                (**self).shutdown()
            }
        }
    };
}

delegate!(Arc);
delegate!(Box);

/// Checks what every store asks of refunds.
fn check_refunds(refunds: &[Refund<'_>]) -> Result<(), StoreError> {
    if refunds.iter().any(|refund| refund.meter.guards()) {
        return Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            "a refund to a lock, which is never charged",
        ));
    }
    for (at, refund) in refunds.iter().enumerate().skip(1) {
        if refunds[..at].iter().any(|other| other.key == refund.key) {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "two refunds of one call share a key",
            ));
        }
    }
    Ok(())
}

/// Checks what every store asks of the hits of a request.
fn check(hits: &[Hit<'_>]) -> Result<(), StoreError> {
    if hits.is_empty() || hits.len() > MAX_HITS {
        return Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            format!("a request has {} states, and must have 1 to {MAX_HITS}", hits.len()),
        ));
    }
    if hits[0].meter.guards() {
        return Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            "a lock stands first in a request, where it guards nothing",
        ));
    }
    for (at, hit) in hits.iter().enumerate().skip(1) {
        if hits[..at].iter().any(|other| other.key == hit.key) {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "two limits of one request share a key, which would charge it twice",
            ));
        }
    }
    Ok(())
}
