use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use super::{Limiter, charge::Charge};
use crate::{
    decision::Decision,
    key::KeyError,
    policy::Policy,
    store::{Reply, StoreErrorKind},
    telemetry::Timer,
};

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum Ruling {
    /// It goes on to the service.
    Admit(Decision),
    /// It is answered without the service.
    Reject(Rejection),
}

impl Ruling {
    pub(super) fn of(decision: Decision) -> Self {
        if decision.is_allowed() {
            return Self::Admit(decision);
        }
        Self::Reject(Rejection::Limited(decision))
    }
}

/// Why a request is answered without the service. It travels in the response's extensions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Rejection {
    /// A limit denied it.
    Limited(Decision),
    /// The store did not answer, and the policy denies requests then.
    StoreFailed(StoreErrorKind),
    /// It has no key, or a layer that authenticates has turned it away.
    NoKey(KeyError),
    /// Its policy [denies](crate::PolicyBuilder::deny) the caller.
    Blocked,
}

/// A ruling, there already or to come.
#[must_use]
pub struct Deciding(State);

enum State {
    Ready(Option<Ruling>),
    Waiting(Box<Waiting>),
}

struct Waiting {
    limiter: Limiter,
    policy: Policy,
    /// Taken when the reply has come.
    charge: Option<Charge>,
    reply: Reply,
    timer: Timer,
}

impl Deciding {
    pub(super) const fn ready(ruling: Ruling) -> Self {
        Self(State::Ready(Some(ruling)))
    }

    pub(super) fn waiting(
        limiter: Limiter,
        policy: Policy,
        charge: Charge,
        reply: Reply,
        timer: Timer,
    ) -> Self {
        let charge = Some(charge);
        Self(State::Waiting(Box::new(Waiting { limiter, policy, charge, reply, timer })))
    }

    /// The ruling, if it is there without waiting; otherwise this again.
    ///
    /// # Errors
    ///
    /// This itself, if the ruling is still to come.
    pub fn try_now(self) -> Result<Ruling, Self> {
        match self.0 {
            State::Ready(Some(ruling)) => Ok(ruling),
            state => Err(Self(state)),
        }
    }
}

impl Future for Deciding {
    type Output = Ruling;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ruling> {
        let ruling = match &mut self.0 {
            State::Ready(ruling) => ruling.take(),
            State::Waiting(waiting) => {
                let Poll::Ready(answer) = Pin::new(&mut waiting.reply).poll(cx) else {
                    return Poll::Pending;
                };
                waiting.timer.stop();
                let Waiting { limiter, policy, charge, .. } = &mut **waiting;
                charge.take().map(|charge| limiter.rule(policy, charge, answer))
            }
        };
        // A future that is polled after it was ready never is again.
        ruling.map_or(Poll::Pending, Poll::Ready)
    }
}

impl fmt::Debug for Deciding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Ready(_) => "Deciding::Ready",
            State::Waiting(_) => "Deciding::Waiting",
        })
    }
}
