//! Callers that go on through a layer whatever happens, and what they are told.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Request, Response};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tollgate::{
    Decision, Global, Limit, Limiter, OnFailure, Outcome, Policy, Quota, RateLimitLayer,
    RedisStore, Source, StoreErrorKind,
};
use tower::{Layer as _, ServiceExt as _, service_fn};

pub(crate) const CALLERS: usize = 64;
/// So many of them share a limit that most of their requests exceed.
const SCARCE: usize = 8;
pub(crate) const RATE: u64 = 100;
pub(crate) const BURST: u64 = 50;
pub(crate) const PACE: Duration = Duration::from_millis(10);

/// The deadline of a store, and two seconds.
const HANG: Duration = Duration::from_millis(2_100);
/// For a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Whether its limit is the one that most exceed.
    pub(crate) scarce: bool,
    /// Since the callers began.
    pub(crate) begun: Duration,
    pub(crate) took: Duration,
    pub(crate) outcome: &'static str,
}

impl Call {
    /// Whether it was decided as if all were well.
    pub(crate) fn is_well(&self) -> bool {
        is_well(self.outcome)
    }
}

pub(crate) fn is_well(outcome: &str) -> bool {
    matches!(outcome, "redis" | "429" | "429 cached")
}

/// Callers at work. They are gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Callers {
    limiter: Limiter,
    shared: Arc<Shared>,
    tasks: JoinSet<Vec<Call>>,
}

#[derive(Debug)]
struct Shared {
    begun: Instant,
    stopped: AtomicBool,
    asked: AtomicU64,
    /// When the last request began that was not decided as if all were well.
    unwell: AtomicU64,
    /// When the last one began that was.
    well: AtomicU64,
}

impl Callers {
    /// With all settings as they are by default.
    pub(crate) async fn start(url: &str, on_failure: OnFailure) -> Self {
        let limiter = Limiter::new(RedisStore::connect(url).await.expect("a server"));
        let service = |name: &'static str, quota: Quota| {
            let policy = Policy::new(name).limit(Global, Limit::new("all", quota));
            let policy = policy.on_failure(on_failure).build().expect("a policy");
            RateLimitLayer::with_policy(policy, &limiter)
                .layer(service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(()))))
        };
        let plenty = service("plenty", Quota::per_second(1_000_000));
        let scarce = service("scarce", Quota::per_second(RATE).burst(BURST));
        let shared = Arc::new(Shared {
            begun: Instant::now(),
            stopped: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            unwell: AtomicU64::new(0),
            well: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        for number in 0..CALLERS {
            let is_scarce = number < SCARCE;
            let service = if is_scarce { scarce.clone() } else { plenty.clone() };
            let shared = Arc::clone(&shared);
            tasks.spawn(async move {
                let mut calls = Vec::new();
                while !shared.stopped.load(Ordering::Relaxed) {
                    shared.asked.fetch_add(1, Ordering::Relaxed);
                    let begun = shared.begun.elapsed();
                    let asked = service.clone().oneshot(Request::new(()));
                    let outcome = match timeout(HANG, asked).await {
                        Ok(Ok(response)) => outcome(&response),
                        Ok(Err(never)) => match never {},
                        Err(_) => "hung",
                    };
                    let took = shared.begun.elapsed() - begun;
                    calls.push(Call { scarce: is_scarce, begun, took, outcome });
                    let last = if is_well(outcome) { &shared.well } else { &shared.unwell };
                    last.fetch_max(micros(begun), Ordering::Relaxed);
                    sleep(PACE).await;
                }
                calls
            });
        }
        Self { limiter, shared, tasks }
    }

    /// How often Redis failed so far, in each way; not what an open breaker turned back.
    pub(crate) fn failures(&self) -> Vec<(StoreErrorKind, u64)> {
        let health = self.limiter.health();
        let kinds = StoreErrorKind::ALL.iter().filter(|kind| **kind != StoreErrorKind::BreakerOpen);
        kinds.map(|kind| (*kind, health.failures(*kind))).filter(|(_, count)| *count > 0).collect()
    }

    /// The time since they began.
    pub(crate) fn now(&self) -> Duration {
        self.shared.begun.elapsed()
    }

    /// Waits until all requests of so long a time have been decided as if all were well.
    ///
    /// # Panics
    ///
    /// If Redis does not decide any more. On a machine that is too busy for all to be well, some requests
    /// do.
    pub(crate) async fn until_well(&self, since: Duration, quiet: Duration) {
        let last = |of: &AtomicU64| Duration::from_micros(of.load(Ordering::Relaxed));
        let well_since = || last(&self.shared.unwell).max(since);
        while last(&self.shared.well).saturating_sub(well_since()) < quiet {
            if self.now().saturating_sub(since) > BOUND {
                let decided = self.now().saturating_sub(last(&self.shared.well));
                assert!(decided < BOUND / 4, "Redis is well, and does not decide");
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// All that they asked, when all of it is answered.
    ///
    /// # Panics
    ///
    /// If something was not.
    pub(crate) async fn stop(self) -> Vec<Call> {
        self.shared.stopped.store(true, Ordering::Relaxed);
        let calls = self.tasks.join_all().await.concat();
        let asked = self.shared.asked.load(Ordering::Relaxed);
        assert_eq!(calls.len() as u64, asked, "some requests have no answer");
        calls
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("a test does not last for ever")
}

fn outcome<B>(response: &Response<B>) -> &'static str {
    let decision = response.extensions().get::<Decision>();
    let source = decision.map_or(Source::None, Decision::source);
    let outcome = decision.map(Decision::outcome);
    match (response.status().as_u16(), outcome, source) {
        (200, Some(Outcome::Allowed), Source::Fallback) => "local",
        (200, Some(Outcome::Allowed), Source::Redis) => "redis",
        (200, Some(Outcome::FailedOpen), _) => "open",
        (429, _, Source::Fallback) => "429 local",
        (429, _, Source::Redis) => "429",
        (429, _, Source::Cache) => "429 cached",
        (503, None, _) => "503",
        _ => "unexpected",
    }
}
