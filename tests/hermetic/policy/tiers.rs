//! Quotas that depend on who calls: by tier, for single keys, and for single requests.

use std::time::Duration;

use http::Request;
use tollgate::{
    Clock as _, Decision, Key, Limit, Limiter, OnFailure, Policy, Quota, Rejection, RequestHead,
    Ruling, StoreErrorKind, Tier,
};
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::{
    Broken, Flaky, Probe, about, asking, field, left, limiter, memory, number, secs,
};

fn requests() -> Limit {
    Limit::new("requests", Quota::per_minute(2))
        .tier("pro", Quota::per_minute(4))
        .tier("hourly", Quota::per_hour(3))
        .tier("internal", None)
}

fn api(limit: Limit) -> Policy {
    Policy::new("api").limit(about(), limit).build().unwrap()
}

fn of(tier: Option<&str>, who: &str) -> Request<()> {
    let mut request = asking(&[who]);
    request.extensions_mut().extend(
        tier.map(|tier| {
            let mut extensions = http::Extensions::new();
            extensions.insert(Tier::new(tier));
            extensions
        })
        .unwrap_or_default(),
    );
    request
}

async fn send(limiter: &Limiter, policy: &Policy, request: &Request<()>) -> Decision {
    match limiter.decide(policy, RequestHead::new(request)).await {
        Ruling::Admit(decision) | Ruling::Reject(Rejection::Limited(decision)) => decision,
        Ruling::Reject(rejection) => panic!("not decided: {rejection:?}"),
    }
}

/// How many requests pass, of ten.
async fn passed(limiter: &Limiter, policy: &Policy, request: &Request<()>) -> u64 {
    let mut passed = 0;
    for _ in 0..10 {
        passed += u64::from(send(limiter, policy, request).await.is_allowed());
    }
    passed
}

#[tokio::test]
async fn each_tier_has_its_quota_and_unknown_tiers_have_that_of_all() {
    let (limiter, _clock) = limiter();
    let policy = api(requests());
    let table =
        [(None, 2), (Some("pro"), 4), (Some("hourly"), 3), (Some("internal"), 10), (Some("?"), 2)];
    for (tier, admitted) in table {
        let request = of(tier, tier.unwrap_or("nobody"));
        assert_eq!(passed(&limiter, &policy, &request).await, admitted, "{tier:?}");
    }
    let unlimited = send(&limiter, &policy, &of(Some("internal"), "x")).await;
    assert_eq!(unlimited.outcome(), tollgate::Outcome::Skipped);
}

#[tokio::test]
async fn who_changes_tier_goes_on_with_what_they_owe() {
    let (limiter, clock) = limiter();
    let policy = api(requests());
    assert_eq!(passed(&limiter, &policy, &of(None, "a")).await, 2);
    // The whole minute is owed, whatever the quota within it.
    assert_eq!(passed(&limiter, &policy, &of(Some("pro"), "a")).await, 0);
    clock.advance(secs(15));
    assert_eq!(passed(&limiter, &policy, &of(Some("pro"), "a")).await, 1);
    // Another period is another bucket.
    assert_eq!(passed(&limiter, &policy, &of(Some("hourly"), "a")).await, 3);
}

#[tokio::test]
async fn fields_tell_the_quota_that_was_enforced() {
    let (limiter, _clock) = limiter();
    let layer = tollgate::RateLimitLayer::with_policy(api(requests()), &limiter);
    let mut service = layer.layer(Probe::new());
    for (tier, most, policy) in [
        (None, 2, "\"requests\";q=2;w=60"),
        (Some("pro"), 4, "\"requests\";q=4;w=60"),
        (Some("hourly"), 3, "\"requests\";q=3;w=3600"),
        (None, 2, "\"requests\";q=2;w=60"),
    ] {
        let request = of(tier, tier.unwrap_or("nobody"));
        let response = service.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(number(&response, "x-ratelimit-limit"), Some(most));
        assert_eq!(field(response.headers(), "ratelimit-policy"), Some(policy));
    }
}

#[tokio::test]
async fn a_key_has_its_own_quota_whatever_its_tier_until_that_ends() {
    let (store, clock) = memory();
    let limiter = Limiter::builder(store.clone()).fallback(store).build();
    let until = clock.now().saturating_add(secs(3_600));
    let policy = api(requests()
        .override_key("vip", Quota::per_minute(7))
        .override_key("free", None)
        .override_key_until("trial", Quota::per_minute(5), until));
    for tier in [None, Some("pro"), Some("internal")] {
        assert_eq!(passed(&limiter, &policy, &of(tier, "free")).await, 10);
    }
    assert_eq!(passed(&limiter, &policy, &of(Some("internal"), "vip")).await, 7);
    assert_eq!(passed(&limiter, &policy, &of(None, "trial")).await, 5);
    clock.set(until);
    assert_eq!(passed(&limiter, &policy, &of(None, "trial")).await, 2);
    assert_eq!(passed(&limiter, &policy, &of(Some("pro"), "other")).await, 4);
}

#[derive(Clone)]
struct Bought(u64);

fn bought(count: u64, who: &str) -> Request<()> {
    let mut request = of(Some("pro"), who);
    request.extensions_mut().insert(Bought(count));
    request
}

#[tokio::test]
async fn a_request_may_say_its_quota() {
    let (limiter, clock) = limiter();
    let policy = api(requests().quota_by(|head| {
        let Bought(count) = head.extension()?;
        Quota::new(*count, Duration::from_secs(60)).ok()
    }));
    assert_eq!(passed(&limiter, &policy, &bought(6, "a")).await, 6);
    clock.advance(secs(60));
    // The same state, at another rate: what a changed quota means.
    assert_eq!(passed(&limiter, &policy, &bought(6, "a")).await, 6);
    clock.advance(secs(30));
    assert_eq!(passed(&limiter, &policy, &bought(8, "a")).await, 4);
    assert_eq!(passed(&limiter, &policy, &of(Some("pro"), "b")).await, 4);
    // None of its own: that of the tier. More of them than are remembered work too.
    assert_eq!(passed(&limiter, &policy, &bought(0, "c")).await, 4);
    for count in 1..1_000 {
        let request = bought(count, &format!("user{count}"));
        assert_eq!(passed(&limiter, &policy, &request).await, count.min(10));
    }
}

#[tokio::test]
async fn a_quota_that_the_limit_cannot_have_counts_for_nothing() {
    let (limiter, _clock) = limiter();
    let dear = requests().cost(2).quota_by(|head| {
        let Bought(count) = head.extension()?;
        Quota::new(*count, Duration::from_secs(60)).ok()
    });
    // One unit at once never pays for a request; four pay for two.
    assert_eq!(passed(&limiter, &api(dear), &bought(1, "a")).await, 2);
}

#[tokio::test]
async fn while_the_store_fails_a_share_of_the_same_quota_applies() {
    let policy = Policy::new("api")
        .limit(about(), requests().override_key("vip", Quota::per_minute(8)))
        .on_failure(OnFailure::Local { share: 0.5 });
    let policy = policy.build().unwrap();
    let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Unreachable));
    let limiter = Limiter::builder(store).fallback(memory().0).build();
    for (tier, who, admitted) in
        [(None, "a", 1), (Some("pro"), "b", 2), (Some("internal"), "c", 10)]
    {
        assert_eq!(passed(&limiter, &policy, &of(tier, who)).await, admitted);
    }
    assert_eq!(passed(&limiter, &policy, &of(None, "vip")).await, 4);
}

#[tokio::test]
async fn the_limit_of_a_key_can_be_looked_at_and_reset() {
    let (limiter, _clock) = limiter();
    let policy = api(requests().override_key("vip", Quota::per_hour(7)));
    let limit_for = |tier: Option<&str>, key: &str| {
        limiter.limit_for(&policy, "requests", tier.map(Tier::new).as_ref(), &Key::from(key))
    };
    assert_eq!(limit_for(None, "a").unwrap().quota(), Quota::per_minute(2));
    assert_eq!(limit_for(Some("pro"), "a").unwrap().quota(), Quota::per_minute(4));
    assert!(limit_for(Some("internal"), "a").is_none());
    assert!(limiter.limit_for(&policy, "none", None, &Key::from("a")).is_none());
    assert_eq!(passed(&limiter, &policy, &of(Some("pro"), "vip")).await, 7);
    let limit = limit_for(Some("pro"), "vip").unwrap();
    assert_eq!(left(&limiter, &limit, "vip").await, 0);
    limiter.reset(&limit, "vip").await.unwrap();
    assert_eq!(passed(&limiter, &policy, &of(Some("pro"), "vip")).await, 7);
}

#[test]
fn quotas_that_cannot_be_are_errors_that_say_for_whom() {
    let day = Quota::per_day(100);
    let cases = [
        (
            Limit::new("l", day).tier("free", Quota::per_day(1)).cost(5),
            "the policy `api`, limit `l`, has for the tier `free`: the policy `api`, limit `l`, has a \
             cost of 5, which no request can pay: at most 1 units can be taken at once",
        ),
        (
            Limit::new("l", day).tier("free", day).tier("free", None),
            "the policy `api`, limit `l`, has two quotas for the tier `free`",
        ),
    ];
    for (limit, message) in cases {
        let error = Policy::new("api").limit(about(), limit).build().unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let twice = Limit::new("l", day).override_key("a", None).override_key("a", day);
    let error = Policy::new("api").limit(about(), twice).build().unwrap_err().to_string();
    assert!(error.contains("two quotas for the key"), "{error}");
    assert!(!error.contains("id:a"), "keys may name people: {error}");
}

#[tokio::test]
async fn a_decision_charges_and_gives_back_by_the_quota_that_applied() {
    let (limiter, _clock) = limiter();
    let policy = api(requests());
    let decision = send(&limiter, &policy, &of(Some("pro"), "a")).await;
    assert!(decision.charge("requests", 3).await.unwrap().is_allowed());
    assert!(!decision.charge("requests", 1).await.unwrap().is_allowed());
    decision.refund().await.unwrap();
    assert_eq!(decision.look().await.unwrap().remaining(), Some(1));
}
