//! Redis is killed, restarted, and frozen under load: each request is answered, as its policy says.

use std::time::Duration;

use http::{Request, Response};
use tokio::task::JoinSet;
use tollgate::{
    Breaker, Decision, Global, Limit, Limiter, OnFailure, Outcome, Policy, Quota, RateLimitLayer,
    RedisStore, Source, Store, algorithm::Algorithm, store::Hit,
};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::support::{Load, RedisServer, Report};

const CALLERS: usize = 64;
const PACE: Duration = Duration::from_millis(2);
/// What Redis answered before it went away has been heard by then.
const UNDER_WAY: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_while_redis_is_away_where_the_policy_allows() {
    let report = outage("open", OnFailure::Allow).await;
    assert_all(&report, &["open"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_503_while_redis_is_away_where_the_policy_denies() {
    let report = outage("closed", OnFailure::Deny).await;
    assert_all(&report, &["503"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn this_instance_limits_alone_while_redis_is_away_where_the_policy_says_so() {
    let report = outage("local", OnFailure::Local { share: 1e-5 }).await;
    assert_all(&report, &["local", "429 local"]);
    // The share is ten units at once, and ten per second.
    let admitted = report.phase("killed").count("local") + report.phase("frozen").count("local");
    assert!((1..=10 + 10 * 30).contains(&admitted), "{report}");
    assert!(report.phase("frozen").count("429 local") > 0, "{report}");
}

/// While Redis is away each request that ends meanwhile has one of these `outcomes`, and at all times
/// one of these or a decision by Redis.
fn assert_all(report: &Report, outcomes: &[&str]) {
    let count = |phase: &str| -> u64 {
        outcomes.iter().map(|outcome| report.phase(phase).count(outcome)).sum()
    };
    for phase in ["killed", "frozen"] {
        assert_eq!(count(phase), report.phase(phase).total(), "{phase}:\n{report}");
    }
    for phase in ["start", "restarting", "restarted", "thawing", "thawed"] {
        let phase_report = report.phase(phase);
        let decided = phase_report.count("redis");
        assert_eq!(count(phase) + decided, phase_report.total(), "{phase}:\n{report}");
    }
}

/// Runs callers through a healthy time, a kill, a restart, a freeze of two seconds and a thaw.
async fn outage(name: &'static str, on_failure: OnFailure) -> Report {
    let mut server = RedisServer::start().await;
    let store = RedisStore::connect(server.url()).await.expect("a server");
    let limit = Limit::new("all", Quota::per_second(1_000_000));
    let policy = Policy::new(name).limit(Global, limit).on_failure(on_failure);
    let policy = policy.build().expect("a policy");
    // A busy machine may be slow at any time.
    let breaker = Breaker::default().slower_than(Duration::from_secs(60));
    let limiter = Limiter::builder(store.clone()).breaker(breaker).build();
    let layer = RateLimitLayer::with_policy(policy, &limiter);
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, std::convert::Infallible>(Response::new(()))
    }));

    let load = Load::new(CALLERS).pace(PACE).start(move |_| {
        let service = service.clone();
        async move {
            match service.oneshot(Request::new(())).await {
                Ok(response) => label(&response),
                Err(never) => match never {},
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    load.until_most("redis").await;

    load.phase("killing");
    server.kill();
    tokio::time::sleep(UNDER_WAY).await;
    load.phase("killed");
    tokio::time::sleep(Duration::from_millis(700)).await;

    load.phase("restarting");
    server.restart().await;
    answers(&store).await;
    load.phase("restarted");
    tokio::time::sleep(Duration::from_millis(300)).await;
    load.until_most("redis").await;

    load.phase("freezing");
    server.freeze();
    tokio::time::sleep(UNDER_WAY).await;
    load.phase("frozen");
    tokio::time::sleep(Duration::from_secs(2)).await;

    load.phase("thawing");
    server.thaw();
    answers(&store).await;
    load.phase("thawed");
    tokio::time::sleep(Duration::from_millis(300)).await;
    load.until_most("redis").await;

    let report = load.stop().await;
    println!("policy `{name}`:\n{report}");
    for phase in ["start", "restarted", "thawed"] {
        let phase = report.phase(phase);
        // Not all of them: a busy machine may exceed a deadline at any time.
        assert!(phase.count("redis") > phase.total() / 2, "{report}");
    }
    report
}

fn label<B>(response: &Response<B>) -> &'static str {
    let decision = response.extensions().get::<Decision>();
    let local = decision.is_some_and(|decision| decision.source() == Source::Fallback);
    match (response.status().as_u16(), decision.map(Decision::outcome)) {
        (200, Some(Outcome::Allowed)) if local => "local",
        (200, Some(Outcome::Allowed)) => "redis",
        (200, Some(Outcome::FailedOpen)) => "open",
        (429, _) if local => "429 local",
        (503, None) => "503",
        _ => "unexpected",
    }
}

/// Waits until the store answers on all of its connections again, with a bound for hangs.
async fn answers(store: &RedisStore) {
    let hit = Hit {
        key: b"{probe}:probe",
        meter: Algorithm::TokenBucket.meter(Quota::per_second(1)),
        cost: 0,
        shadow: false,
        lease: 0,
    };
    let answered = async {
        let mut in_a_row = 0;
        while in_a_row < 6 {
            in_a_row = if store.acquire(&[hit]).await.is_ok() { in_a_row + 1 } else { 0 };
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered).await.expect("Redis answers again");
}

#[tokio::test]
async fn connections_that_were_closed_while_nobody_used_them_fail_no_request() {
    let server = RedisServer::start().await;
    // The time to answer is not what this is about.
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let store = store.connect().await.expect("a server");
    let limiter = Limiter::builder(store).breaker(None).build();
    let limit = Limit::new("all", Quota::per_second(1_000));
    for _ in 0..3 {
        limiter.check(&limit, "somebody").await.expect("an answer");
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut checks = JoinSet::new();
        for _ in 0..20 {
            let (limiter, limit) = (limiter.clone(), limit.clone());
            checks.spawn(async move { limiter.check(&limit, "somebody").await });
        }
        for decision in checks.join_all().await {
            decision.expect("an answer");
        }
    }
}
