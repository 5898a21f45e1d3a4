//! Requests that gather for one node: those of one slot share a call.

use std::{iter, sync::Arc};

use deadpool_redis::redis::Value;
use tokio::sync::mpsc;

use super::{
    Cluster,
    follow::{Errand, Turn},
    map::Member,
    redirect::Redirect,
    slot::name_slot,
};
use crate::store::{
    StoreError,
    redis::{
        call::Call,
        gather::{Gate, Waiting, distribute},
        node::Node,
        wire::Request,
    },
};

/// The requests that gather for one node of a cluster.
#[derive(Clone)]
pub(super) struct Routed {
    pub(super) cluster: Arc<Cluster>,
    pub(super) member: Arc<Member>,
}

impl Gate for Routed {
    fn node(&self) -> &Node {
        &self.member.node
    }

    fn blame(&self, error: StoreError) -> StoreError {
        error.at(self.member.shard)
    }

    fn misread(&self, request: &Request, error: StoreError) -> StoreError {
        self.cluster.misread(slot_of(request), error)
    }

    async fn ask(&self, request: &Request) -> Result<Value, StoreError> {
        let call = Call::acquire(iter::once(request));
        let errand = Errand { slot: slot_of(request), call: &call, requests: 1 };
        self.cluster.call(errand, Some(Arc::clone(&self.member)), None).await
    }

    /// Sends a call for each slot, all at a time. Who is sent elsewhere holds up no others: the batch ends
    /// when each call has got one answer.
    async fn ask_for(&self, batch: Vec<Waiting>) {
        let slot = |waiting: Waiting| (slot_of(&waiting.request), waiting);
        let mut batch: Vec<(u16, Waiting)> = batch.into_iter().map(slot).collect();
        batch.sort_by_key(|(slot, _)| *slot);
        let (turn, mut turns) = mpsc::channel(1);
        while let Some((slot, _)) = batch.last() {
            let slot = *slot;
            let first = batch.partition_point(|(other, _)| *other < slot);
            let group = batch.drain(first..).map(|(_, waiting)| waiting).collect();
            drop(tokio::spawn(self.clone().ask_together(slot, group, turn.clone())));
        }
        drop(turn);
        let _none = turns.recv().await;
    }
}

/// The slot of a request whose states are in one.
fn slot_of(request: &Request) -> u16 {
    request.names().next().map_or(0, name_slot)
}

impl Routed {
    async fn ask_together(self, slot: u16, group: Vec<Waiting>, turn: Turn) {
        let call = Call::acquire(group.iter().map(|waiting| &waiting.request));
        let errand = Errand { slot, call: &call, requests: group.len() };
        let outcome = self.cluster.call(errand, Some(Arc::clone(&self.member)), Some(turn)).await;
        let apart = group.len() > 1
            && outcome.as_ref().is_err_and(|error| {
                matches!(Redirect::of(error, &self.member.address), Some(Redirect::TryAgain))
            });
        if apart {
            for waiting in group {
                drop(tokio::spawn(self.clone().ask_apart(waiting)));
            }
        } else {
            distribute(&self, group, outcome);
        }
    }

    async fn ask_apart(self, waiting: Waiting) {
        let answer = self.ask(&waiting.request).await;
        let answer = answer.and_then(|value| {
            let answer = waiting.request.read(&value);
            answer.map_err(|error| self.misread(&waiting.request, error))
        });
        waiting.answer(answer);
    }
}
