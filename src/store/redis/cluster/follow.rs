//! One call, from node to node until one has answered.

use std::{borrow::Cow, sync::Arc, time::Duration};

use deadpool_redis::redis::{self, Cmd, Pipeline, RedisResult, Value};
use tokio::time::sleep;

use super::{Cluster, map::Member, redirect::Redirect};
use crate::store::{
    StoreError, StoreErrorKind,
    redis::{call::Call, error, node::Node, pulse::WasLate, slot::Link},
};

/// Redirections in a row that are followed.
const HOPS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(40);

/// What is to be asked for one slot.
pub(super) struct Errand<'a> {
    pub(super) slot: u16,
    pub(super) call: &'a Call,
    /// How many requests that are.
    pub(super) requests: usize,
}

/// How far an errand came, for when its time is over.
pub(super) struct Trail {
    pub(super) used: Option<Link>,
    pub(super) member: Option<Arc<Member>>,
    /// Why it waits, if nothing is under way.
    pub(super) waits: Option<StoreError>,
}

impl Cluster {
    /// What the cluster answers to a call, before the deadline.
    pub(super) async fn call(
        self: &Arc<Self>,
        errand: Errand<'_>,
        first: Option<Arc<Member>>,
    ) -> Result<Value, StoreError> {
        let mut trail = Trail { used: None, member: first, waits: None };
        let requests = errand.requests;
        let following = self.follow(errand, &mut trail);
        match self.topology.pulse.within(self.deadline, following).await {
            Ok(answer) => answer,
            Err(WasLate(late)) => Err(self.given_up(trail, requests, late)),
        }
    }

    /// The same, of a call to which a node has answered an error, in what is left of its time.
    pub(super) async fn go_on(
        self: &Arc<Self>,
        errand: Errand<'_>,
        member: &Arc<Member>,
        error: StoreError,
        left: Duration,
    ) -> Result<Value, StoreError> {
        let mut trail = Trail { used: None, member: Some(Arc::clone(member)), waits: None };
        let requests = errand.requests;
        let following = self.redirected(errand, &mut trail, Arc::clone(member), error);
        match self.topology.pulse.within(left, following).await {
            Ok(answer) => answer,
            Err(WasLate(late)) => Err(self.given_up(trail, requests, late)),
        }
    }

    /// The call goes out a second time only after an answer that proves that nothing ran.
    async fn follow(
        self: &Arc<Self>,
        errand: Errand<'_>,
        trail: &mut Trail,
    ) -> Result<Value, StoreError> {
        let first = match trail.member.clone() {
            Some(member) => member,
            None => Box::pin(self.find(errand.slot, trail)).await?,
        };
        match first.node.ask(errand.call, &mut trail.used).await {
            Err(error) => Box::pin(self.redirected(errand, trail, first, error)).await,
            Ok(value) => Ok(value),
        }
    }

    /// What comes of a call to which a node answered an error.
    async fn redirected(
        self: &Arc<Self>,
        errand: Errand<'_>,
        trail: &mut Trail,
        mut member: Arc<Member>,
        mut error: StoreError,
    ) -> Result<Value, StoreError> {
        let (mut hops, mut pauses) = (0, 0);
        loop {
            let redirect = Redirect::of(&error, &member.address);
            error = error.at(member.shard);
            let mut asking = false;
            match redirect {
                None => {
                    self.failed(&error);
                    return Err(error);
                }
                Some(_) if hops == HOPS => return Err(led_on(error)),
                Some(Redirect::Moved(Some(to))) => {
                    self.refresh();
                    member = self.topology.moved(errand.slot, &to)?;
                    hops += 1;
                }
                Some(Redirect::Ask(Some(to))) => {
                    member = self.topology.invited(&to)?;
                    asking = true;
                    hops += 1;
                }
                // In a batch, some keys are here and others are not. Most requests have one key.
                Some(Redirect::TryAgain) if errand.requests > 1 => return Err(error),
                Some(Redirect::TryAgain) => {
                    // Who serves the slot is to blame, and not whom it has sent the request to.
                    let owner = self.topology.member(errand.slot);
                    error = error.at(owner.map_or(member.shard, |owner| owner.shard));
                    member = self.after_pause(&errand, trail, &mut pauses, error).await?;
                    hops = 0;
                }
                Some(Redirect::Down | Redirect::Moved(None) | Redirect::Ask(None)) => {
                    self.refresh();
                    let down = unreachable(error);
                    member = self.after_pause(&errand, trail, &mut pauses, down).await?;
                    hops = 0;
                }
            }
            trail.member = Some(Arc::clone(&member));
            // The link of another node is none of this one.
            trail.used = None;
            let answer = if asking {
                member.node.ask_guest(errand.call, &mut trail.used).await
            } else {
                member.node.ask(errand.call, &mut trail.used).await
            };
            match answer {
                Ok(value) => return Ok(value),
                Err(next) => error = next,
            }
        }
    }

    /// The node that serves the slot after a pause, in which what a node answered may come to an end.
    async fn after_pause(
        self: &Arc<Self>,
        errand: &Errand<'_>,
        trail: &mut Trail,
        pauses: &mut u32,
        waits: StoreError,
    ) -> Result<Arc<Member>, StoreError> {
        trail.waits = Some(waits);
        let longest = FIRST_PAUSE.saturating_mul(1 << (*pauses).min(10)).min(LONGEST_PAUSE);
        *pauses += 1;
        sleep(longest.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
        self.find(errand.slot, trail).await
    }

    /// The node that serves the slot, once that is known.
    async fn find(
        self: &Arc<Self>,
        slot: u16,
        trail: &mut Trail,
    ) -> Result<Arc<Member>, StoreError> {
        loop {
            let mut changed = std::pin::pin!(self.topology.changed.notified());
            changed.as_mut().enable();
            if let Some(member) = self.topology.member(slot) {
                (trail.member, trail.waits) = (Some(Arc::clone(&member)), None);
                return Ok(member);
            }
            if self.topology.is_closed() {
                return Err(nobody("the store was shut down"));
            }
            if let Some(error) = self.refresh.failure() {
                return Err(error.at(0));
            }
            if !self.topology.members().is_empty() {
                trail.waits =
                    Some(nobody(format!("no node of the Redis Cluster serves the slot {slot}")));
            }
            self.refresh();
            changed.await;
        }
    }

    /// The error of an errand whose time is over.
    pub(super) fn given_up(
        self: &Arc<Self>,
        trail: Trail,
        requests: usize,
        late: bool,
    ) -> StoreError {
        let Trail { used, member, waits } = trail;
        if let Some(error) = waits {
            return error;
        }
        let Some(member) = member else {
            let message = format!(
                "no node of the Redis Cluster has said within {:?} which one serves the slot",
                self.deadline
            );
            let asked = self.seeds.first().map(|(address, _)| address.to_string().into());
            return StoreError::new(StoreErrorKind::Timeout, message).at(0).about(asked.as_ref());
        };
        let error = member.node.timeout();
        if let Some(link) = used {
            member.node.slots.timed_out(&link, &error, requests, late);
        }
        if !late {
            self.refresh();
        }
        error.at(member.shard)
    }

    /// A node that fails may have been replaced by another.
    pub(super) fn failed(self: &Arc<Self>, error: &StoreError) {
        use StoreErrorKind::{Busy, ReadOnly, Timeout, Unreachable};
        if matches!(error.kind(), Busy | ReadOnly | Timeout | Unreachable) {
            self.refresh();
        }
    }
}

impl Node {
    /// Asks a node that does not serve the slot yet.
    async fn ask_guest(&self, call: &Call, used: &mut Option<Link>) -> Result<Value, StoreError> {
        let link = self.find(used).await?;
        let mut value = send_asking(link, &call.command).await;
        if value.as_ref().is_err_and(error::is_no_script)
            && let Some(eval) = call.eval()
        {
            value = send_asking(link, &eval).await;
        }
        match value {
            Ok(value) => {
                self.slots.answered(link);
                Ok(value)
            }
            Err(cause) => Err(self.failed(link, cause)),
        }
    }
}

/// Both commands in one write, so that nothing of others comes between them.
async fn send_asking(link: &mut Link, command: &Cmd) -> RedisResult<Value> {
    let mut commands = Pipeline::with_capacity(2);
    commands.add_command(redis::cmd("ASKING")).add_command(command.clone());
    let answers = link.connection.send_packed_commands(&commands, 0, 2).await?;
    let mut answers = answers.into_iter().rev();
    answers.next().unwrap_or(Value::Nil).extract_error()
}

fn led_on(error: StoreError) -> StoreError {
    let error = error.turned(StoreErrorKind::Unreachable);
    error.saying("the nodes of the Redis Cluster send a request to each other")
}

fn unreachable(error: StoreError) -> StoreError {
    let nowhere = error.kind() == StoreErrorKind::Misconfigured;
    let error = error.turned(StoreErrorKind::Unreachable);
    if nowhere {
        error.saying("the node sends a request to one whose address it does not know")
    } else {
        error
    }
}

fn nobody(message: impl Into<Cow<'static, str>>) -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, message).at(0)
}
