use std::{any::Any, collections::HashSet, env, fmt};

use tokio::runtime::Runtime;
use tollgate::{
    RedisStore, RedisStoreBuilder, Stamp, Standing, Store as _, Timestamp,
    algorithm::Meter,
    store::{Answer, Hit, Refund, Reply},
};

use super::Clock;
use crate::{
    exact::conformance::{Backend, lock_name},
    script::Request,
};

/// What stays for as long as the store is asked.
pub(crate) type Kept = Box<dyn Any>;

/// A store, what is behind it, and the time that its scripts are told.
pub(crate) struct Clocked {
    runtime: Runtime,
    clock: Clock,
    builder: RedisStoreBuilder,
    store: RedisStore,
    _kept: Kept,
}

impl Clocked {
    /// The store that comes of what is started on a runtime that stays.
    pub(crate) fn start(start: impl AsyncFnOnce(&Clock) -> (RedisStoreBuilder, Kept)) -> Self {
        // On one thread, since an answer has many turns to take.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (runtime, clock) = (runtime.expect("a runtime"), Clock::default());
        let (builder, store, kept) = runtime.block_on(async {
            let (builder, kept) = start(&clock).await;
            (builder.clone(), builder.connect().await.expect("servers"), kept)
        });
        Self { runtime, clock, builder, store, _kept: kept }
    }

    /// Forgets all keys.
    pub(crate) fn renew(&mut self) {
        let prefix = format!("t{:x}", fastrand::u64(..));
        let connecting = self.builder.clone().prefix(prefix).connect();
        self.store = self.runtime.block_on(connecting).expect("servers");
    }

    fn set(&self, micros: u64) {
        self.clock.set(micros);
    }

    /// Decides requests in order. Those that have nothing to do with each other are under way at a time.
    pub(super) fn decide_all(&self, now: Timestamp, requests: &[Request<'_>]) -> Vec<Standing> {
        self.set(now.as_micros());
        let (mut standings, mut rest) = (Vec::new(), requests);
        while !rest.is_empty() {
            let run;
            (run, rest) = rest.split_at(independent(rest));
            let mut answers = self.runtime.block_on(async {
                let asked: Vec<_> = run.iter().map(|hits| self.store.acquire(hits)).collect();
                let mut answers: Vec<Answer> = Vec::new();
                for (reply, hits) in asked.into_iter().zip(run) {
                    let answer = reply.await;
                    answers.push(answer.unwrap_or_else(|error| panic!("{error}: {hits:?}")));
                }
                answers
            });
            if run.len() > 1 && are_alike(&run[0], &run[1]) {
                // Nothing tells them apart, so whichever came first is the first.
                answers.sort_by_key(|answer| {
                    let standing = &answer.standings[0];
                    std::cmp::Reverse((standing.fits(), standing.remaining()))
                });
            }
            for answer in answers {
                assert_eq!(answer.now, now, "the time that scripts are told");
                standings.extend(answer.standings);
            }
        }
        standings
    }

    pub(super) fn give_back(&self, now: Timestamp, refunds: &[Refund<'_>]) {
        self.set(now.as_micros());
        self.wait(|store| store.refund(refunds));
    }

    pub(super) fn forget(&self, key: &str) {
        self.wait(|store| store.reset(&[key.as_bytes()]));
    }

    fn wait(&self, reply: impl FnOnce(&RedisStore) -> Reply<()>) {
        let answer = self.runtime.block_on(async { reply(&self.store).await });
        answer.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// How many requests at the beginning do not depend on each other's order: they are all the same, of one
/// limit, or have no key in common.
fn independent(requests: &[Request<'_>]) -> usize {
    let first = &requests[0];
    let same = requests.iter().take_while(|hits| are_alike(first, hits)).count();
    if same > 1 {
        return same;
    }
    let mut seen = HashSet::new();
    let apart = requests.iter().take_while(|hits| hits.iter().all(|hit| seen.insert(hit.key)));
    apart.count()
}

/// Whether both are the same request of one limit.
fn are_alike(one: &[Hit<'_>], other: &[Hit<'_>]) -> bool {
    let ([one], [other]) = (one, other) else { return false };
    let told = |hit: &Hit<'_>| (hit.meter, hit.cost, hit.shadow);
    one.key == other.key && told(one) == told(other)
}

/// Each key in a slot of its own.
fn name(key: &str) -> String {
    format!("{{{key}}}")
}

impl Backend for Clocked {
    fn together(&mut self, micros: u64, hits: &[Hit<'_>]) -> Vec<Standing> {
        let names: Vec<String> =
            hits.iter().map(|hit| name(str::from_utf8(hit.key).expect("a text"))).collect();
        let hits =
            hits.iter().zip(&names).map(|(hit, key)| Hit { key: key.as_bytes(), ..*hit }).collect();
        self.decide_all(Timestamp::from_micros(micros), &[hits])
    }

    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        let names: Vec<String> = asks.iter().map(|(key, _)| name(key)).collect();
        let requests: Vec<Request<'_>> = asks
            .iter()
            .zip(&names)
            .map(|((_, cost), key)| vec![Hit::new(key.as_bytes(), meter, *cost)])
            .collect();
        self.decide_all(now, &requests)
    }

    fn guarded(&mut self, meters: [Meter; 2], micros: u64, key: &str, cost: u64) -> [Standing; 2] {
        let names = [name(key), lock_name(&name(key))];
        let hits = [0, 1].map(|at| Hit::new(names[at].as_bytes(), meters[at], cost));
        let standings = self.decide_all(Timestamp::from_micros(micros), &[hits.to_vec()]);
        [standings[0], standings[1]]
    }

    fn refund(&mut self, meter: Meter, micros: u64, key: &str, units: u64, stamp: Stamp) {
        let name = name(key);
        let refund = Refund { key: name.as_bytes(), meter, units, stamp };
        self.give_back(Timestamp::from_micros(micros), &[refund]);
    }

    fn reset(&mut self, key: &str) {
        match key.strip_suffix(":lk") {
            Some(guarded) => self.forget(&lock_name(&name(guarded))),
            None => self.forget(&name(key)),
        }
    }

    fn in_part(&self) -> u32 {
        if env::var("TOLLGATE_CLUSTER").as_deref() == Ok("full") { 1 } else { 19 }
    }
}

impl fmt::Debug for Clocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocked").field("store", &self.store).finish_non_exhaustive()
    }
}
