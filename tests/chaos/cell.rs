//! One event under one policy.

use std::{collections::BTreeMap, time::Duration};

use tollgate::{OnFailure, StoreErrorKind};

use crate::{
    callers::{BURST, Call, Callers, RATE, is_well},
    event::{Decides, Event},
    world::World,
};

const TICK: Duration = Duration::from_millis(5);
/// An answer that is under way when the event ends is one of Redis; a busy machine may be late with it.
const MARGIN: Duration = Duration::from_millis(350);
pub(crate) const SHARE: f64 = 0.25;

/// How long everything takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) before: Duration,
    pub(crate) hold: Duration,
    /// So long must all be well after it.
    pub(crate) quiet: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Under {
    Allow,
    Deny,
    Local,
}

impl Under {
    pub(crate) const ALL: [Self; 3] = [Self::Allow, Self::Deny, Self::Local];

    const fn on_failure(self) -> OnFailure {
        match self {
            Self::Allow => OnFailure::Allow,
            Self::Deny => OnFailure::Deny,
            Self::Local => OnFailure::Local { share: SHARE },
        }
    }

    fn may_say(self, outcome: &str) -> bool {
        match self {
            Self::Allow => outcome == "open",
            Self::Deny => outcome == "503",
            Self::Local => matches!(outcome, "local" | "429 local"),
        }
    }
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) event: Event,
    pub(crate) under: Under,
    pub(crate) server: &'static str,
    pub(crate) outcomes: BTreeMap<&'static str, usize>,
    /// How calls to Redis failed.
    pub(crate) failures: Vec<(StoreErrorKind, u64)>,
    /// Sorted, of those requests that began while the event lasted.
    pub(crate) times: Vec<Duration>,
    /// From its end to the first request from which on Redis decided all.
    pub(crate) back_after: Duration,
    /// To connect, per second.
    pub(crate) attempts: Option<f64>,
    /// By Redis and by the policy, of the limit that most requests exceed, and how many each may.
    pub(crate) admitted: [(usize, u64); 2],
}

impl Cell {
    /// None, if the event cannot be brought about here.
    pub(crate) async fn measure(event: Event, under: Under, plan: Plan) -> Option<Self> {
        let mut world = World::new(event, plan.hold).await?;
        let callers = Callers::start(&world.url(), under.on_failure()).await;
        tokio::time::sleep(plan.before).await;
        callers.until_well(Duration::ZERO, plan.quiet).await;

        let attempts = world.attempts();
        let from = callers.now();
        world.begin().await;
        let begun = callers.now();
        let mut number = 0;
        while callers.now() < begun + plan.hold {
            world.tick(number);
            number += 1;
            tokio::time::sleep(TICK).await;
        }
        let ending = callers.now();
        world.end().await;
        let to = callers.now();
        let attempts = world.attempts().zip(attempts).map(|(after, before)| after - before);
        // A server that is restarted is well again at once.
        let over = if event == Event::Restarted { begun } else { to };
        callers.until_well(over, plan.quiet).await;
        let failures = callers.failures();

        let calls = callers.stop().await;
        let within = |call: &&Call| (from..to).contains(&call.begun);
        let mut outcomes = BTreeMap::new();
        calls
            .iter()
            .filter(within)
            .for_each(|call| *outcomes.entry(call.outcome).or_default() += 1);
        let mut times: Vec<_> = calls.iter().filter(within).map(|call| call.took).collect();
        times.sort_unstable();
        let unwell = calls.iter().filter(|call| !call.is_well()).map(|call| call.begun).max();
        let cell = Self {
            event,
            under,
            server: world.server(),
            outcomes,
            failures,
            times,
            back_after: unwell.unwrap_or_default().saturating_sub(over),
            attempts: attempts.map(|count| count as f64 / (to - from).as_secs_f64()),
            admitted: admitted(&calls, event, under),
        };
        println!("{cell}");
        cell.check(&calls, begun..ending.saturating_sub(MARGIN));
        Some(cell)
    }

    fn check(&self, calls: &[Call], strictly: std::ops::Range<Duration>) {
        let Self { event, under, .. } = self;
        for call in calls {
            assert_ne!(call.outcome, "hung", "{event:?}, {under:?}: {call:?}");
            let known = call.is_well() || under.may_say(call.outcome);
            assert!(known, "{event:?}, {under:?}: {call:?}");
        }
        let strictly = || calls.iter().filter(|call| strictly.contains(&call.begun));
        match event.decides() {
            Decides::Redis => {
                let well = self.outcomes.keys().any(|outcome| is_well(outcome));
                assert!(well, "{event:?}, {under:?}: nothing by Redis");
                for (kind, count) in &self.failures {
                    // A busy machine may be late at any time.
                    let late = *kind == StoreErrorKind::Timeout;
                    assert!(late, "{event:?}, {under:?}: {count} times {kind:?}");
                }
            }
            Decides::Policy => {
                let by_policy = strictly().filter(|call| under.may_say(call.outcome)).count();
                assert!(by_policy > 0, "{event:?}, {under:?}: nothing by the policy");
                for call in strictly() {
                    // What was denied a moment ago is so still.
                    let known = under.may_say(call.outcome) || call.outcome == "429 cached";
                    assert!(known, "{event:?}, {under:?}: {call:?}");
                }
            }
            Decides::PolicyOrDenial => {
                let by_policy = strictly().filter(|call| under.may_say(call.outcome)).count();
                assert!(by_policy > 0, "{event:?}, {under:?}: nothing by the policy");
                for call in strictly() {
                    assert_ne!(call.outcome, "redis", "{event:?}, {under:?}: {call:?}");
                }
            }
            Decides::Either => {}
        }
        for (admitted, at_most) in self.admitted {
            assert!(admitted as u64 <= at_most, "{event:?}, {under:?}: {admitted} of {at_most}");
        }
    }
}

/// What a limit of `BURST` and `RATE` let pass by Redis and by the policy, and how much each may.
fn admitted(calls: &[Call], event: Event, under: Under) -> [(usize, u64); 2] {
    let scarce = || calls.iter().filter(|call| call.scarce);
    let count =
        |outcomes: &[&str]| scarce().filter(|call| outcomes.contains(&call.outcome)).count();
    let first = scarce().map(|call| call.begun).min().unwrap_or_default();
    let last = scarce().map(|call| call.begun + call.took).max().unwrap_or_default();
    let refilled = RATE as f64 * (last - first).as_secs_f64();
    let by_redis = (BURST * (1 + event.fresh_bursts())) as f64 + refilled;
    let by_policy = match under {
        Under::Allow => u64::MAX,
        Under::Deny => 0,
        Under::Local => ((SHARE * BURST as f64).ceil() + SHARE * refilled).ceil() as u64,
    };
    [(count(&["redis"]), by_redis.ceil() as u64), (count(&["open", "local"]), by_policy)]
}
