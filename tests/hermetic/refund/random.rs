//! Random charges, refunds and pauses: no limit grants more than it says and what was given back.

use std::time::Duration;

use proptest::prelude::*;
use tollgate::{Algorithm, Clock, Decision, Limit, Limiter, ManualClock, Quota, Standing};

use crate::support::limiter;

/// Of a quota of `LIMIT` units per window, in microseconds: a bucket's units are whole microseconds.
const LIMIT: u64 = 6;
const UNIT: u64 = 1_000;
const WINDOW: u64 = LIMIT * UNIT;

#[derive(Clone, Copy, Debug)]
enum Step {
    Charge(u64),
    /// Of the charge at this place, counted from the last.
    Refund(usize, u64),
    Pause(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let units = prop_oneof![4 => 0..=LIMIT, 1 => Just(u64::MAX)];
    let pause = prop_oneof![2 => 1..=UNIT, 2 => 1..=WINDOW, 1 => 1..=3 * WINDOW];
    let step = prop_oneof![
        4 => (0..=LIMIT + 1).prop_map(Step::Charge),
        3 => (0..6_usize, units).prop_map(|(at, units)| Step::Refund(at, units)),
        2 => pause.prop_map(Step::Pause),
    ];
    prop::collection::vec(step, 1..80)
}

/// What a charge took, and has not been given back.
struct Taken {
    at: u64,
    units: u64,
    /// When a bucket has got the rest of it back by itself.
    until: u64,
    decision: Decision,
}

struct Run {
    limiter: Limiter,
    clock: ManualClock,
    limit: Limit,
    taken: Vec<Taken>,
    /// Time that a bucket granted, with what it was given back as negative.
    granted: Vec<(u64, i64)>,
    /// Time that a bucket was given back, and the most that it may have been.
    back: Vec<(u64, u64)>,
}

impl Run {
    fn new(algorithm: Algorithm) -> Self {
        let (limiter, clock) = limiter();
        let quota = Quota::new(LIMIT, Duration::from_micros(WINDOW)).unwrap();
        let limit = Limit::new("l", quota).algorithm(algorithm);
        let (taken, granted, back) = (Vec::new(), Vec::new(), Vec::new());
        Self { limiter, clock, limit, taken, granted, back }
    }

    fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }

    async fn look(&self) -> Standing {
        let look = self.limiter.look(&self.limit, "user").await.unwrap();
        assert!(look.remaining().unwrap() <= LIMIT);
        look.verdicts()[0].standing()
    }

    async fn step(&mut self, step: Step) {
        let before = self.look().await;
        match step {
            Step::Charge(units) => {
                let limit = self.limit.clone().cost(units);
                let decision = self.limiter.check(&limit, "user").await.unwrap();
                assert_eq!(decision.is_allowed(), units <= before.remaining());
                if decision.is_allowed() {
                    self.granted.push((self.now(), (units * UNIT) as i64));
                }
                let units = if decision.is_allowed() { units } else { 0 };
                let at = self.now();
                let until = at + micros(decision.verdicts()[0].standing());
                self.taken.push(Taken { at, units, until, decision });
            }
            Step::Refund(back, units) => {
                let now = self.now();
                let Some(at) = self.taken.len().checked_sub(1 + back) else { return };
                let taken = &mut self.taken[at];
                taken.decision.refund_units("l", units).await.unwrap();
                let units = units.min(taken.units);
                let most = (units * UNIT).min(taken.until.saturating_sub(now));
                taken.units -= units;
                taken.until -= units * UNIT;
                let after = self.look().await;
                assert!(after.remaining() >= before.remaining());
                let back = micros(before).saturating_sub(micros(after));
                self.granted.push((now, -(back as i64)));
                self.back.push((back, most));
            }
            Step::Pause(micros) => self.clock.advance(Duration::from_micros(micros)),
        }
    }

    /// Units that were taken from a moment on, and not given back.
    fn taken_from(&self, start: u64) -> u64 {
        self.taken.iter().filter(|taken| taken.at >= start).map(|taken| taken.units).sum()
    }
}

fn micros(standing: Standing) -> u64 {
    standing.reset().as_micros() as u64
}

/// Runs the steps, and checks after each of them.
fn run(algorithm: Algorithm, steps: &[Step], check: impl AsyncFn(&Run)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut run = Run::new(algorithm);
        for step in steps {
            run.step(*step).await;
            check(&run).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bucket_grants_its_burst_its_rate_and_what_was_given_back(steps in steps()) {
        run(Algorithm::TokenBucket, &steps, async |run: &Run| {
            let (now, mut net) = (run.now(), 0);
            for (at, time) in run.granted.iter().rev() {
                net += time;
                assert!(net <= (WINDOW + now - at) as i64, "{net} in {}", now - at);
            }
        });
    }

    #[test]
    fn a_bucket_gives_back_no_more_than_the_rest_of_a_charge_has_left(steps in steps()) {
        run(Algorithm::TokenBucket, &steps, async |run: &Run| {
            assert!(run.back.iter().all(|(back, most)| back <= most), "{:?}", run.back.last());
        });
    }

    #[test]
    fn a_log_holds_what_was_taken_in_its_window_and_not_given_back(steps in steps()) {
        run(Algorithm::SlidingLog, &steps, async |run: &Run| {
            let net = run.taken_from(run.now() - WINDOW + 1);
            assert!(net <= LIMIT);
            assert_eq!(run.look().await.remaining(), LIMIT - net);
        });
    }

    #[test]
    fn a_fixed_window_holds_what_was_taken_in_it_and_not_given_back(steps in steps()) {
        run(Algorithm::FixedWindow, &steps, async |run: &Run| {
            let net = run.taken_from(run.now() - run.now() % WINDOW);
            assert!(net <= LIMIT);
            assert_eq!(run.look().await.remaining(), LIMIT - net);
        });
    }

    #[test]
    fn a_counter_weighs_what_was_taken_in_two_windows_and_not_given_back(steps in steps()) {
        run(Algorithm::SlidingCounter, &steps, async |run: &Run| {
            let into = run.now() % WINDOW;
            let current = run.taken_from(run.now() - into);
            let previous = run.taken_from(run.now() - into - WINDOW) - current;
            let weighed = current * WINDOW + previous * (WINDOW - into);
            assert!(current <= LIMIT && previous <= LIMIT);
            let left = (LIMIT * WINDOW).saturating_sub(weighed) / WINDOW;
            assert_eq!(run.look().await.remaining(), left);
        });
    }
}
