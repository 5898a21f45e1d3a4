//! A request whose states lie in several slots, which no call can charge at once.
//!
//! The states of each slot are a group. Groups are charged one after the other, and if one denies or
//! fails, those before it get back what they were charged. So no limit admits more than it may, and what a
//! refund that fails withholds comes back with the next refill. All of it runs in a task that does not
//! depend on the caller: who goes away leaves nothing half done.

mod charged;
mod decide;
mod plan;

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::oneshot;

use self::{charged::Charged, plan::Plan};
use super::{Cluster, slot::slot};
use crate::store::{
    Answer, Hit, Reply, StoreError, StoreErrorKind,
    redis::{error::misconfigured, gather::abandoned},
};

type Outcome = Result<(Answer, Charged), StoreError>;

pub(super) fn acquire(cluster: &Arc<Cluster>, hits: &[Hit<'_>]) -> Reply {
    let plan = match Plan::new(hits, |key| slot(&cluster.prefix, key)) {
        Ok(plan) => plan,
        Err(error) => return Reply::now(Err(error)),
    };
    let (tell, told) = oneshot::channel::<Outcome>();
    let deciding = decide::Deciding::new(cluster, plan);
    let asked = deciding.asked();
    cluster.topology.worker.spawn(async move {
        let outcome = deciding.run(&tell).await;
        // If nobody hears it, all is given back.
        drop(tell.send(outcome));
    });
    let cluster = Arc::clone(cluster);
    Reply::later(async move {
        let outcome = match cluster.topology.pulse.within(cluster.deadline, told).await {
            Ok(outcome) => outcome.unwrap_or_else(|_gone| Err(abandoned())),
            Err(_late) => {
                let shard = asked.load(Ordering::Relaxed);
                let message = format!("no answer from Redis within {:?}", cluster.deadline);
                let error = StoreError::new(StoreErrorKind::Timeout, message).at(shard);
                Err(error.about(cluster.place(shard).as_ref()))
            }
        };
        let (answer, charged) = outcome?;
        charged.keep();
        Ok(answer)
    })
}

/// An error for a lock that could not count what it guards.
fn parted() -> StoreError {
    misconfigured(
        "a lock and the limit that it guards lie in different slots of the Redis Cluster"
            .to_owned(),
    )
}
