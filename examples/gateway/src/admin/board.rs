//! What the page shows: what was counted in each second of the last minutes.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tollgate::{
    Clock as _, Decision, Limiter, PolicyHandle, PolicySet, StoreErrorKind, SystemClock,
};

use super::{
    counts::{self, Outcomes},
    latency::{Latency, Taken},
    top::{Shown, Top},
};

/// Seconds that charts go back.
const WINDOW: usize = 300;
/// Seconds over which the latency in figures is taken.
const RECENT: usize = 60;
/// Seconds between two questions whether the store can decide, and of upkeep.
const SELDOM: u64 = 5;
/// Policies that are shown: reloads may bring new ones for ever.
const MAX_POLICIES: usize = 64;

/// What is counted, and what it came to.
pub(super) struct Board {
    metrics: PrometheusHandle,
    store: &'static str,
    started: u64,
    latency: Latency,
    top: Mutex<Top>,
    history: Mutex<History>,
    ticks: watch::Sender<()>,
}

struct History {
    policies: Vec<(String, Outcomes)>,
    seconds: VecDeque<Second>,
    /// Decisions of each of the last seconds, and all of them.
    recent: VecDeque<Taken>,
    all: Taken,
    ready: Option<Result<(), String>>,
}

/// One second: its number since 1970, microseconds of decisions, and of each policy what was allowed,
/// denied, failed open, failed closed.
#[derive(Clone, Serialize)]
struct Second(u64, Option<f64>, Option<f64>, Vec<[u64; 4]>);

/// The board at one moment.
#[derive(Serialize)]
pub(super) struct State {
    /// Another number after a restart.
    started: u64,
    window: usize,
    store: &'static str,
    /// Whether the store can decide, and why not; nothing is known yet at first.
    ready: Option<bool>,
    why: Option<String>,
    breaker: &'static str,
    failures: BTreeMap<&'static str, u64>,
    last_failure: Option<LastFailure>,
    latency: Recent,
    policies: Vec<Row>,
    seconds: Vec<Second>,
    top: Vec<Shown>,
}

#[derive(Serialize)]
struct LastFailure {
    kind: &'static str,
    seconds_ago: u64,
}

/// Decisions of the last minute, in microseconds.
#[derive(Serialize)]
struct Recent {
    count: u64,
    p50: Option<f64>,
    p99: Option<f64>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// Those that the policy has now, to ask about.
    limits: Vec<String>,
    outcomes: Outcomes,
}

impl Board {
    pub(super) fn new(metrics: PrometheusHandle, store: &'static str) -> Self {
        let history = History {
            policies: Vec::new(),
            seconds: VecDeque::new(),
            recent: VecDeque::new(),
            all: Taken::none(),
            ready: None,
        };
        Self {
            metrics,
            store,
            started: SystemClock.now().as_micros(),
            latency: Latency::new(),
            top: Mutex::default(),
            history: Mutex::new(history),
            ticks: watch::Sender::new(()),
        }
    }

    pub(super) fn metrics(&self) -> PrometheusHandle {
        self.metrics.clone()
    }

    /// Tells of each second that has passed.
    pub(super) fn ticks(&self) -> watch::Receiver<()> {
        self.ticks.subscribe()
    }

    pub(super) fn decided(&self, taken: Duration) {
        self.latency.note(taken);
    }

    /// Takes note of whom a denial is about.
    pub(super) fn denied(&self, decision: &Decision) {
        let mut top = lock(&self.top);
        for (place, verdict) in decision.verdicts().iter().enumerate() {
            if let (true, Some(key)) = (verdict.denies(), decision.key(place)) {
                top.note(decision.policy(), verdict.name(), key);
            }
        }
    }

    /// Takes note of each second, until it is dropped.
    pub(super) async fn keep(&self, limiter: &Limiter, policies: &PolicyHandle) {
        let mut every_second = interval(Duration::from_secs(1));
        every_second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for tick in 0_u64.. {
            every_second.tick().await;
            if tick.is_multiple_of(SELDOM) {
                let ready = limiter.ready().await.map_err(|error| error.to_string());
                lock(&self.history).ready = Some(ready);
                self.metrics.run_upkeep();
            }
            let now = SystemClock.now().as_micros() / 1_000_000;
            let counts = counts::read(&self.metrics.render());
            lock(&self.history).note(now, counts, &policies.load(), self.latency.read());
            self.ticks.send_replace(());
        }
    }

    /// What there is to show, with the seconds after this one.
    pub(super) fn state(&self, after: u64, limiter: &Limiter, policies: &PolicySet) -> State {
        let health = limiter.health();
        let failures =
            StoreErrorKind::ALL.iter().map(|kind| (kind.as_str(), health.failures(*kind)));
        let history = lock(&self.history);
        let limits = |name: &str| {
            let policy = policies.policy(name);
            policy.into_iter().flat_map(|it| it.limits()).map(|it| it.name().to_owned()).collect()
        };
        let rows = history.policies.iter().map(|(name, outcomes)| Row {
            name: name.clone(),
            limits: limits(name),
            outcomes: outcomes.clone(),
        });
        let mut recent = Taken::none();
        history.recent.iter().for_each(|second| recent.add(second));
        State {
            started: self.started,
            window: WINDOW,
            store: self.store,
            ready: history.ready.as_ref().map(Result::is_ok),
            why: history.ready.as_ref().and_then(|ready| ready.clone().err()),
            breaker: health.breaker().as_str(),
            failures: failures.filter(|(_, count)| *count > 0).collect(),
            last_failure: health.last_failure().map(|failure| LastFailure {
                kind: failure.kind.as_str(),
                seconds_ago: SystemClock.now().as_micros().saturating_sub(failure.at.as_micros())
                    / 1_000_000,
            }),
            latency: Recent {
                count: recent.count(),
                p50: recent.within(50),
                p99: recent.within(99),
            },
            policies: rows.collect(),
            seconds: history.seconds.iter().filter(|second| second.0 > after).cloned().collect(),
            top: lock(&self.top).shown(),
        }
    }
}

impl State {
    /// The last second that it has.
    pub(super) fn last(&self) -> Option<u64> {
        self.seconds.last().map(|second| second.0)
    }
}

impl History {
    fn note(
        &mut self,
        now: u64,
        mut counts: BTreeMap<String, Outcomes>,
        policies: &PolicySet,
        all: Taken,
    ) {
        for policy in policies.policies() {
            counts.entry(policy.name().to_owned()).or_default();
        }
        // What no policy applied to.
        counts.remove("-");
        let mut second = Vec::new();
        for (name, before) in &mut self.policies {
            let outcomes = counts.remove(name).unwrap_or_default();
            let (earlier, total) = (before.series(), outcomes.series());
            second.push(std::array::from_fn(|at| total[at].saturating_sub(earlier[at])));
            *before = outcomes;
        }
        for (name, outcomes) in counts {
            if self.policies.len() < MAX_POLICIES {
                second.push(outcomes.series());
                self.policies.push((name, outcomes));
            }
        }
        let taken = all.since(&self.all);
        self.all = all;
        // A clock that is set back does not bend the charts.
        let after = self.seconds.back().map_or(0, |last| last.0 + 1);
        let (p50, p99) = (taken.within(50), taken.within(99));
        self.seconds.push_back(Second(now.max(after), p50, p99, second));
        self.recent.push_back(taken);
        self.seconds.drain(..self.seconds.len().saturating_sub(WINDOW));
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
    }
}

/// What is kept stays whole if a thread panics: each change is made by one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
