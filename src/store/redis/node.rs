use std::{sync::Arc, time::Duration};

use super::{
    gather::{Alone, Driver, Entry, Gate, Gathering, abandoned},
    pulse::{Beating, Pulse},
    slots::Slots,
    wire::Request,
    worker::Worker,
};
use crate::store::{Reply, StoreError, StoreErrorKind};

/// One server: the connections to it, and the requests that wait for them.
pub(super) struct Node {
    pub(super) slots: Slots,
    pub(super) gathering: Gathering,
    pub(super) pulse: Arc<Pulse>,
    pub(super) worker: Worker,
    pub(super) deadline: Duration,
    pub(super) prefix: Box<str>,
}

/// Sends a request out, alone or with others.
pub(super) fn enter<G: Gate>(gate: G, request: Request) -> Reply {
    match gate.node().gathering.enter(request) {
        Entry::Alone(request) => {
            let alone = Alone(gate);
            Reply::later(async move { alone.ask(&request).await })
        }
        Entry::Waits(answer, driver) => {
            if let Some(number) = driver {
                gate.node().worker.spawn(Driver::new(gate.clone(), number).drive());
            }
            Reply::later(async move {
                let node = gate.node();
                match node.pulse.within(node.deadline, answer).await {
                    // Whatever becomes of its driver, it has an answer.
                    Ok(answer) => answer.unwrap_or_else(|_gone| Err(gate.blame(abandoned()))),
                    Err(_late) => Err(gate.blame(node.timeout())),
                }
            })
        }
        Entry::Full => Reply::now(Err(gate.blame(gate.node().named(StoreError::new(
            StoreErrorKind::Overloaded,
            "too many requests wait for Redis",
        ))))),
    }
}

impl Beating for Node {
    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn is_busy(&self) -> bool {
        self.gathering.is_busy()
    }
}
