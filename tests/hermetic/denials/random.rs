//! Random requests, refunds and pauses, with answers that take their time.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use proptest::prelude::*;
use tollgate::{Algorithm, Decision, Key, Limit, Quota, Source};

use super::{MICRO, World};
use crate::support::ALGORITHMS;

const UNITS: u64 = 6;
const WINDOW: u64 = 6_001;
/// Microseconds that a request or an answer may travel.
const TRAVELS: u64 = 2_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// By one of the sets of limits, with these costs.
    Check(usize, [u64; 2]),
    /// Of the last that was admitted.
    Refund,
    Reset(usize),
    Pause(u64),
    /// How long requests and answers travel from now on.
    Travel(u64, u64),
}

fn steps(travels: u64) -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![2 => 1..=WINDOW / UNITS, 2 => 1..=WINDOW, 1 => 1..=3 * WINDOW];
    let cost = || prop_oneof![4 => Just(1), 4 => 0..=UNITS + 1];
    let check = (0..SETS.len(), cost(), cost());
    let step = prop_oneof![
        12 => check.prop_map(|(set, one, other)| Step::Check(set, [one, other])),
        1 => Just(Step::Refund),
        1 => (0..4_usize).prop_map(Step::Reset),
        4 => pause.prop_map(Step::Pause),
        1 => (0..=travels, 0..=travels).prop_map(|(there, back)| Step::Travel(there, back)),
    ];
    prop::collection::vec(step, 1..120)
}

/// The limits that a request is charged to, of four: what others have left is known only of limits
/// that are denied together.
const SETS: [&[usize]; 3] = [&[0], &[1], &[2, 3]];

fn limits(algorithms: [Algorithm; 4]) -> [Limit; 4] {
    let names = ["a", "b", "c", "d"];
    std::array::from_fn(|at| {
        // Units of no whole number of microseconds.
        let quota = Quota::new(UNITS, Duration::from_micros(WINDOW)).unwrap();
        Limit::new(names[at], quota).algorithm(algorithms[at])
    })
}

struct Run {
    world: World,
    limits: [Limit; 4],
    last: Option<Decision>,
    /// How long requests travel at most.
    travels: Duration,
    travel: [Duration; 2],
    cached: usize,
}

impl Run {
    fn new(algorithms: [Algorithm; 4], travels: u64) -> Self {
        Self {
            world: World::new(),
            limits: limits(algorithms),
            last: None,
            travels: Duration::from_micros(travels),
            travel: [Duration::ZERO; 2],
            cached: 0,
        }
    }

    async fn step(&mut self, step: Step) {
        let world = &self.world;
        match step {
            Step::Check(set, costs) => self.check(SETS[set], costs).await,
            Step::Refund => {
                if let Some(last) = self.last.take() {
                    last.refund().await.unwrap();
                    world.clock.advance(MICRO);
                }
            }
            Step::Reset(at) => {
                world.limiter.reset(&self.limits[at], "user").await.unwrap();
                world.clock.advance(MICRO);
            }
            Step::Pause(micros) => world.clock.advance(Duration::from_micros(micros)),
            Step::Travel(there, back) => {
                self.travel = [there, back].map(Duration::from_micros);
                world.store.travel(self.travel);
            }
        }
    }

    async fn check(&mut self, set: &[usize], costs: [u64; 2]) {
        let costs = set.iter().zip(costs);
        let limits: Vec<Limit> =
            costs.map(|(at, cost)| self.limits[*at].clone().cost(cost)).collect();
        let pairs = || limits.iter().map(|limit| (limit, Key::from("user")));
        let decision = self.world.limiter.check_all(pairs()).await.unwrap();
        if decision.source() == Source::Cache {
            self.world.store.travel([Duration::ZERO; 2]);
            let truth = self.world.asking.check_all(pairs()).await.unwrap();
            self.world.store.travel(self.travel);
            self.compare(&decision, &truth);
            self.cached += 1;
        } else if decision.is_allowed() {
            self.last = Some(decision);
        }
    }

    /// A denial is one of the store, too, and says what the store says, or more by no more than the
    /// time that was spent on the way: of another limit then also that it has not yet what it has by now.
    fn compare(&self, here: &Decision, there: &Decision) {
        let both = format!("{here:?}, and the store says {there:?}");
        assert!(!here.is_allowed() && !there.is_allowed(), "{both}");
        let close = |here: Option<Duration>, there: Option<Duration>| match (here, there) {
            (Some(here), Some(there)) => there <= here && here <= there + 2 * self.travels,
            (here, there) => here == there,
        };
        assert!(close(here.retry_after(), there.retry_after()), "{both}");
        for (mine, theirs) in here.verdicts().iter().zip(there.verdicts()) {
            let log = self.limits.iter().any(|limit| {
                limit.name() == mine.name() && limit.counts_by() == Algorithm::SlidingLog
            });
            let (mine, theirs) = (mine.standing(), theirs.standing());
            if !mine.fits() {
                assert!(close(mine.wait(), theirs.wait()), "{both}");
            }
            if self.travels.is_zero() {
                assert_eq!(mine.fits(), theirs.fits(), "{both}");
                assert_eq!(mine.reset(), theirs.reset(), "{both}");
                // What has fallen out of a log since is not known.
                assert!(mine.remaining() == theirs.remaining() || log, "{both}");
                assert!(mine.remaining() <= theirs.remaining(), "{both}");
            }
        }
    }
}

/// Runs all steps with all algorithms, and tells how many requests were denied without asking.
fn run(steps: &[Step], turn: usize, travels: u64) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let algorithms = std::array::from_fn(|at| ALGORITHMS[(at * (turn % 3 + 1) + turn) % 4]);
    let mut run = Run::new(algorithms, travels);
    runtime.block_on(async {
        for step in steps {
            run.step(*step).await;
        }
    });
    run.cached
}

#[test]
fn nothing_is_denied_that_the_store_would_admit_and_all_is_said_as_the_store_would() {
    let cached = AtomicUsize::new(0);
    let cases = ProptestConfig { failure_persistence: None, cases: 600, ..Default::default() };
    proptest!(cases, |(steps in steps(0), turn in 0..12_usize)| {
        cached.fetch_add(run(&steps, turn, 0), Ordering::Relaxed);
    });
    let cached = cached.into_inner();
    assert!(cached > 1_000, "only {cached} were denied without asking");
}

#[test]
fn however_long_answers_take_nothing_is_denied_too_late_and_nobody_is_told_too_little() {
    let cached = AtomicUsize::new(0);
    let cases = ProptestConfig { failure_persistence: None, cases: 600, ..Default::default() };
    proptest!(cases, |(steps in steps(TRAVELS), turn in 0..12_usize)| {
        cached.fetch_add(run(&steps, turn, TRAVELS), Ordering::Relaxed);
    });
    let cached = cached.into_inner();
    assert!(cached > 200, "only {cached} were denied without asking");
}
