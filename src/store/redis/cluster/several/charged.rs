use std::{mem, sync::Arc};

use tokio::runtime::Handle;

use super::{
    super::Cluster,
    plan::{Group, Owned},
};
use crate::{
    algorithm::Meter,
    decision::{Stamp, Standing},
    store::Refund,
    telemetry,
};

/// What was charged for a request that is not answered yet. It is given back when this is dropped, in a
/// task of its own, so also when the caller goes away.
pub(super) struct Charged {
    cluster: Arc<Cluster>,
    handle: Handle,
    groups: Vec<(u16, Vec<Charge>)>,
}

struct Charge {
    key: Box<[u8]>,
    meter: Meter,
    units: u64,
    stamp: Stamp,
}

impl Charged {
    pub(super) fn new(cluster: &Arc<Cluster>) -> Self {
        let handle = cluster.topology.worker.handle();
        Self { cluster: Arc::clone(cluster), handle, groups: Vec::new() }
    }

    /// A group was charged.
    pub(super) fn add(&mut self, group: &Group, standings: &[Standing]) {
        // Who took something has to wait for it. A shadow whose key holds something else does not.
        let taken = |(hit, standing): &(&Owned, &Standing)| {
            standing.fits && standing.reset > 0 && hit.cost > 0 && !hit.meter.guards()
        };
        let charges =
            group.hits.iter().zip(standings).filter(taken).map(|(hit, standing)| Charge {
                key: hit.hit().key.into(),
                meter: hit.meter,
                units: hit.cost,
                stamp: standing.stamp,
            });
        let charges: Vec<Charge> = charges.collect();
        if !charges.is_empty() {
            self.groups.push((group.slot, charges));
        }
    }

    /// The request was answered: what was charged stays so.
    pub(super) fn keep(mut self) {
        self.groups.clear();
    }

    /// Gives all back, whether somebody waits until that is done or not. Its errors are counted, and nobody
    /// can do more about them.
    pub(super) fn give_back(&mut self) -> impl Future<Output = ()> + use<> {
        let giving = mem::take(&mut self.groups).into_iter().map(|(slot, charges)| {
            self.handle.spawn(give_back(Arc::clone(&self.cluster), slot, charges))
        });
        let giving: Vec<_> = giving.collect();
        async move {
            for one in giving {
                let _ = one.await;
            }
        }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        drop(self.give_back());
    }
}

/// Gives units back, once: an error may mean that they were.
fn give_back(
    cluster: Arc<Cluster>,
    slot: u16,
    charges: Vec<Charge>,
) -> impl Future<Output = ()> + Send + 'static {
    // From now on, also if the runtime ends before the task begins.
    let withheld = Withheld(charges.len());
    async move {
        let refunds: Vec<Refund<'_>> = charges
            .iter()
            .map(|Charge { key, meter, units, stamp }| Refund {
                key,
                meter: *meter,
                units: *units,
                stamp: *stamp,
            })
            .collect();
        if cluster.refund_one(slot, &refunds).await.is_ok() {
            withheld.none();
        }
    }
}

/// States that were charged for a request that was not admitted, and got nothing back. Counted when dropped.
struct Withheld(usize);

impl Withheld {
    fn none(mut self) {
        self.0 = 0;
    }
}

impl Drop for Withheld {
    fn drop(&mut self) {
        if self.0 > 0 {
            telemetry::refunds_withheld(self.0);
        }
    }
}
