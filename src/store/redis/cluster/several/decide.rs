use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use smallvec::SmallVec;
use tokio::{sync::oneshot, task::JoinSet, time::timeout};

use super::{
    super::Cluster,
    Outcome,
    charged::Charged,
    plan::{Group, Owned, Plan},
};
use crate::{
    algorithm::{Meter, Reading},
    decision::{Source, Standing},
    store::{
        Answer, StoreError,
        redis::wire::{Request, UNKNOWN},
    },
    time::Timestamp,
};

/// Of the deadline, so much may go by until all is told of a denial.
const PART: u32 = 4;

/// A request on its way through its groups.
pub(super) struct Deciding {
    cluster: Arc<Cluster>,
    plan: Plan,
    charged: Charged,
    /// The number of the node that is asked.
    asked: Arc<AtomicU32>,
    /// Where each hit stands, and what it found when, by the clock of its node, as far as that is known.
    standings: Vec<Standing>,
    found: Vec<Option<(Reading, Timestamp)>>,
}

impl Deciding {
    pub(super) fn new(cluster: &Arc<Cluster>, plan: Plan) -> Self {
        let (standings, found) = (vec![UNKNOWN; plan.len], vec![None; plan.len]);
        let charged = Charged::new(cluster);
        let first = plan.enforced.first().and_then(|group| cluster.topology.member(group.slot));
        let asked = Arc::new(AtomicU32::new(first.map_or(0, |member| member.shard)));
        Self { cluster: Arc::clone(cluster), plan, charged, asked, standings, found }
    }

    pub(super) fn asked(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.asked)
    }

    /// Charges the groups in order, until one denies, or the caller has gone.
    pub(super) async fn run(mut self, tell: &oneshot::Sender<Outcome>) -> Outcome {
        let mut now = Timestamp::default();
        let enforced = std::mem::take(&mut self.plan.enforced);
        for (at, group) in enforced.iter().enumerate() {
            if tell.is_closed() {
                return Err(super::abandoned());
            }
            let member = self.cluster.topology.member(group.slot);
            self.asked.store(member.map_or(0, |member| member.shard), Ordering::Relaxed);
            let answer =
                self.cluster.decide(group.slot, group.charge(&self.cluster.prefix)).await?;
            self.note(group, &answer);
            if denies(group, &answer) {
                return Ok(self.denied(enforced, at, answer.now).await);
            }
            self.charged.add(group, &answer.standings);
            // The latest of the clocks: what lasts until a moment lasts no longer than by its own.
            now = now.max(answer.now);
        }
        let watched = self.watch(enforced.is_empty()).await?;
        Ok(self.answer(now.max(watched), false))
    }

    /// Charges the shadows, each group by itself. They fail nobody, unless there is nobody else.
    async fn watch(&mut self, alone: bool) -> Result<Timestamp, StoreError> {
        let groups = std::mem::take(&mut self.plan.shadows);
        let mut now = Timestamp::default();
        for (group, answer) in ask(&self.cluster, groups, Group::charge).await {
            match answer {
                Ok(answer) => {
                    self.note(&group, &answer);
                    self.charged.add(&group, &answer.standings);
                    now = now.max(answer.now);
                }
                Err(error) if alone => return Err(error),
                Err(_) => {}
            }
        }
        Ok(now)
    }

    /// The group at this place denied the request: what those before it were charged is given back, and
    /// those behind it are looked at, so that all is told as if nothing had been charged.
    async fn denied(
        mut self,
        enforced: Vec<Group>,
        at: usize,
        now: Timestamp,
    ) -> (Answer, Charged) {
        let mut behind = std::mem::take(&mut self.plan.shadows);
        let mut before = Vec::new();
        for (place, group) in enforced.into_iter().enumerate() {
            match place {
                place if place < at => before.push(group),
                place if place > at => behind.push(group),
                _ => {}
            }
        }
        let looking = tokio::spawn({
            let cluster = Arc::clone(&self.cluster);
            async move { ask(&cluster, behind, Group::look).await }
        });
        let giving = self.charged.give_back();
        before.iter().for_each(|group| self.uncharge(group));
        // When a log is empty again is told only by what is in it.
        let log = |hit: &Owned| matches!(hit.meter, Meter::SlidingLog(_));
        before.retain(|group| group.hits.iter().any(log));
        let cluster = Arc::clone(&self.cluster);
        let finding = async {
            giving.await;
            let again = ask(&cluster, before, Group::look).await;
            again.into_iter().chain(looking.await.unwrap_or_default()).collect::<Vec<_>>()
        };
        // The denial is known, and does not wait for nodes that fail, whatever these would have said.
        let found = timeout(self.cluster.deadline / PART, finding).await.unwrap_or_default();
        for (group, answer) in found {
            if let Ok(answer) = answer {
                self.note(&group, &answer);
            }
        }
        self.answer(now, true)
    }

    fn note(&mut self, group: &Group, answer: &Answer) {
        for (hit, (standing, found)) in
            group.hits.iter().zip(answer.standings.iter().zip(&answer.found))
        {
            self.standings[hit.at] = *standing;
            self.found[hit.at] = Some((*found, answer.now));
        }
    }

    /// A group that was charged stands as if it had not been.
    fn uncharge(&mut self, group: &Group) {
        for hit in &group.hits {
            let Some((found, then)) = self.found[hit.at] else { continue };
            self.standings[hit.at] = hit.meter.standing(found, hit.cost, false, then);
        }
    }

    fn answer(self, now: Timestamp, denied: bool) -> (Answer, Charged) {
        let standings: SmallVec<[Standing; 2]> = self.standings.into_iter().collect();
        let all = self.found.into_iter().map(|found| Some(found?.0));
        let found = if denied { all.collect::<Option<Vec<_>>>() } else { None };
        // Only what is told relative to now is true by other clocks as well.
        let relative =
            |found: &Reading| matches!(found, Reading::TokenBucket(_) | Reading::SlidingLog(_));
        let found = found.filter(|found| found.iter().all(relative)).unwrap_or_default();
        (Answer { now, source: Source::Redis, standings, found }, self.charged)
    }
}

fn denies(group: &Group, answer: &Answer) -> bool {
    group.hits.iter().zip(&answer.standings).any(|(hit, standing)| !hit.shadow && !standing.fits)
}

/// What is answered to requests of several groups, all asked at a time.
async fn ask(
    cluster: &Arc<Cluster>,
    groups: Vec<Group>,
    request: impl Fn(&Group, &str) -> Request,
) -> Vec<(Group, Result<Answer, StoreError>)> {
    let mut asked = JoinSet::new();
    for group in groups {
        let reply = cluster.decide(group.slot, request(&group, &cluster.prefix));
        asked.spawn(async move { (group, reply.await) });
    }
    asked.join_all().await
}
