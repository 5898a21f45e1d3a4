//! The primary, as far as is known.

use std::sync::Arc;

use super::{
    super::origin::Server,
    answer::{Place, Told},
};

pub(super) struct Primary {
    pub(super) place: Place,
    pub(super) server: Server,
}

#[derive(Default)]
pub(super) struct Known {
    primary: Option<Arc<Primary>>,
    epoch: u64,
    /// Grows with each change of the primary. 0: there was none yet.
    generation: u64,
}

impl Known {
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) const fn primary(&self) -> Option<&Arc<Primary>> {
        self.primary.as_ref()
    }

    pub(super) fn place(&self) -> Option<(Place, u64)> {
        self.primary.as_ref().map(|primary| (primary.place.clone(), self.epoch))
    }

    pub(super) fn primary_at(&self, place: &Place) -> Option<Arc<Primary>> {
        self.primary.as_ref().filter(|primary| primary.place == *place).map(Arc::clone)
    }

    /// Whether this was told by somebody who has missed a failover.
    pub(super) fn is_ahead_of(&self, told: &Told) -> bool {
        self.epoch > told.epoch && self.primary_at(&told.place).is_none()
    }

    /// The generation of connections to this server, which is now the primary, unless a newer one was
    /// found meanwhile.
    pub(super) fn adopt(&mut self, primary: Arc<Primary>, epoch: u64, force: bool) -> u64 {
        if self.primary_at(&primary.place).is_none() {
            if epoch < self.epoch && !force {
                return 0;
            }
            self.generation += 1;
            self.primary = Some(primary);
        } else if !force {
            self.epoch = self.epoch.max(epoch);
            return self.generation;
        }
        self.epoch = epoch;
        self.generation
    }

    /// The primary is still the same. If sentinels have forgotten all, numbers begin anew.
    pub(super) fn confirm(&mut self, place: &Place, epoch: u64) {
        if self.primary_at(place).is_some() {
            self.epoch = epoch;
        }
    }
}
