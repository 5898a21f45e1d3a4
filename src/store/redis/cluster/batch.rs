//! Requests that gather for one node: those of one slot share a call, and all calls of a batch a write.

use std::{iter, sync::Arc, time::Duration};

use deadpool_redis::redis::Value;

use super::{
    Cluster,
    follow::{Errand, Trail},
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
        pulse::WasLate,
        wire::Request,
    },
};

/// The requests that gather for one node of a cluster.
#[derive(Clone)]
pub(super) struct Routed {
    pub(super) cluster: Arc<Cluster>,
    pub(super) member: Arc<Member>,
}

/// Requests whose states are all in one slot.
pub(super) struct Group {
    slot: u16,
    waiting: Vec<Waiting>,
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
        self.cluster.call(errand, Some(Arc::clone(&self.member))).await
    }

    /// Ends when the node has answered each call. Who is sent elsewhere goes on without the others.
    async fn ask_for(&self, batch: Vec<Waiting>) {
        let Self { cluster, member } = self;
        let (pulse, deadline) = (&cluster.topology.pulse, cluster.deadline);
        let requests = batch.len();
        let groups = by_slot(batch);
        let mut used = None;
        let begin = pulse.mark();
        let asked = pulse.within(deadline, member.node.ask_all(&groups, &mut used)).await;
        let outcome = asked.unwrap_or_else(|WasLate(late)| {
            let trail = Trail { used, member: Some(Arc::clone(member)), waits: None };
            Err(cluster.given_up(trail, requests, late))
        });
        let answers = match outcome {
            Ok(answers) => answers,
            Err(error) => {
                cluster.failed(&error);
                let error = self.blame(error);
                for group in groups {
                    distribute(self, group.waiting, Err(error.clone()));
                }
                return;
            }
        };
        for (group, answer) in groups.into_iter().zip(answers) {
            match answer {
                Ok(value) => distribute(self, group.waiting, Ok(value)),
                Err(error) => {
                    let (taken, late) = pulse.since(&begin);
                    let left = deadline.saturating_sub(taken.saturating_sub(late));
                    drop(tokio::spawn(self.clone().go_on(group, error, left)));
                }
            }
        }
    }
}

fn by_slot(batch: Vec<Waiting>) -> Vec<Group> {
    let slot = |waiting: Waiting| (slot_of(&waiting.request), waiting);
    let mut batch: Vec<(u16, Waiting)> = batch.into_iter().map(slot).collect();
    batch.sort_by_key(|(slot, _)| *slot);
    let mut groups: Vec<Group> = Vec::with_capacity(batch.len());
    for (slot, waiting) in batch {
        match groups.last_mut().filter(|group| group.slot == slot) {
            Some(group) => group.waiting.push(waiting),
            None => groups.push(Group { slot, waiting: vec![waiting] }),
        }
    }
    groups
}

/// The slot of a request whose states are in one.
fn slot_of(request: &Request) -> u16 {
    request.names().next().map_or(0, name_slot)
}

impl Group {
    pub(super) fn call(&self) -> Call {
        Call::acquire(self.waiting.iter().map(|waiting| &waiting.request))
    }
}

impl Routed {
    /// What becomes of requests to which the node has answered an error.
    async fn go_on(self, group: Group, error: StoreError, left: Duration) {
        let Group { slot, waiting } = &group;
        let call = group.call();
        let errand = Errand { slot: *slot, call: &call, requests: waiting.len() };
        let outcome = self.cluster.go_on(errand, &self.member, error, left).await;
        let apart = waiting.len() > 1
            && outcome.as_ref().is_err_and(|error| {
                matches!(Redirect::of(error, &self.member.address), Some(Redirect::TryAgain))
            });
        if apart {
            for waiting in group.waiting {
                drop(tokio::spawn(self.clone().ask_apart(waiting)));
            }
        } else {
            distribute(&self, group.waiting, outcome);
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
