//! A policy that exists is valid; one that cannot be says why.

use http::StatusCode;
use tollgate::{
    Global, Limit, Limiter, OnFailure, OnMissingKey, Policy, PolicyBuilder, Quota, StoreErrorKind,
};

use crate::support::{limiter, secs};

const QUOTA: Quota = Quota::per_minute(5);

fn with(limits: impl IntoIterator<Item = Limit>) -> PolicyBuilder {
    limits.into_iter().fold(Policy::new("api"), |policy, limit| policy.limit(Global, limit))
}

fn named(count: usize) -> impl Iterator<Item = Limit> {
    (0..count).map(|at| Limit::new(format!("l{at}"), QUOTA))
}

fn refused(policy: PolicyBuilder) -> String {
    policy.build().unwrap_err().to_string()
}

#[test]
fn a_policy_has_one_to_eight_limits() {
    for count in 1..=8 {
        assert_eq!(with(named(count)).build().unwrap().limits().len(), count);
    }
    assert_eq!(refused(with([])), "the policy `api` has 0 limits: it must have 1 to 8");
    assert_eq!(refused(with(named(9))), "the policy `api` has 9 limits: it must have 1 to 8");
}

#[test]
fn two_limits_of_one_name_are_refused_since_they_would_share_a_counter() {
    let scoped = Limit::new("l1", Quota::per_day(9)).scope("other");
    assert_eq!(
        refused(with(named(3).chain([scoped]))),
        "the policy `api` has two limits named `l1`: they would share their buckets"
    );
}

const BAD_NAMES: [&str; 9] = ["", " ", "a b", "a/b", "a:b", "{a}", "caf\u{e9}", "a\"b", "a\nb"];

#[test]
fn names_that_could_break_out_of_keys_fields_or_labels_are_refused() {
    let long = "x".repeat(65);
    for name in BAD_NAMES.into_iter().chain([&*long]) {
        let rule = "it must be 1 to 64 ASCII letters, digits, `-`, `_` or `.`";
        let policy = Policy::new(name).limit(Global, Limit::new("l", QUOTA));
        assert_eq!(refused(policy), format!("the policy name {name:?}: {rule}"));
        let limit = with([Limit::new(name, QUOTA)]);
        assert_eq!(refused(limit), format!("the limit name {name:?}: {rule}"));
        let scope = with([Limit::new("l", QUOTA).scope(name)]);
        assert_eq!(refused(scope), format!("the scope name {name:?}: {rule}"));
    }
    let good = format!("A-z_0.9{}", "x".repeat(57));
    assert!(with([Limit::new(&*good, QUOTA).scope(&*good)]).build().is_ok());
}

#[tokio::test]
async fn a_bad_name_is_refused_without_a_policy_too() {
    let (limiter, _) = limiter();
    for name in BAD_NAMES {
        let error = limiter.check(&Limit::new(name, QUOTA), "user").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{name}");
        assert!(error.to_string().contains("the limit name"), "{error}");
    }
}

#[test]
fn a_local_share_is_above_nothing_and_at_most_all() {
    let local = |share| with(named(1)).on_failure(OnFailure::Local { share });
    for share in [0.0, -0.0, -0.5, 1.000_001, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(
            refused(local(share)),
            format!(
                "the policy `api` has a local share of {share}: \
                 it must be more than 0 and at most 1"
            )
        );
    }
    for share in [0.001, 0.25, 1.0] {
        assert!(local(share).build().is_ok(), "{share}");
    }
}

#[test]
fn a_local_share_that_makes_a_quota_impossible_says_which_and_why() {
    let yearly = Limit::new("yearly", Quota::new(1, secs(86_400 * 365)).unwrap());
    let policy = |share| {
        let policy = with([Limit::new("l", QUOTA), yearly.clone()]);
        policy.on_failure(OnFailure::Local { share })
    };
    assert!(policy(0.1).build().is_ok());
    let message = refused(policy(0.05));
    let start = "the policy `api`, limit `yearly`, with a local share of 0.05: \
                 a quota of 1 per 630720000 s";
    assert!(message.starts_with(start), "{message}");
    assert!(message.ends_with("the period must be at most 10 years (315360000 s)"), "{message}");
    assert!(policy(f64::MIN_POSITIVE).build().is_err());
}

#[test]
fn a_request_without_a_key_is_rejected_as_the_clients_fault() {
    let with = |status| with(named(1)).on_missing_key(OnMissingKey::RejectWith(status));
    for status in [100, 200, 302, 399, 500, 503, 600] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(
            refused(with(status)),
            format!(
                "the policy `api` rejects requests without a key with {status}: \
                 it must be a client error, 400 to 499"
            )
        );
    }
    for status in [400, 401, 403, 499] {
        assert!(with(StatusCode::from_u16(status).unwrap()).build().is_ok());
    }
}

#[tokio::test]
async fn without_a_policy_one_to_sixty_four_limits_are_charged_and_none_twice() {
    let (limiter, _) = limiter();
    let check = async |limiter: &Limiter, limits: Vec<Limit>| {
        let pairs = limits.iter().map(|limit| (limit, "user"));
        limiter.check_all(pairs).await.map(|decision| decision.verdicts().len())
    };
    assert_eq!(check(&limiter, named(64).collect()).await.unwrap(), 64);
    let twice = named(2).chain(named(1)).collect();
    for (limits, message) in [
        (vec![], "misconfigured: a request has 0 limits, and must have 1 to 64"),
        (named(65).collect(), "misconfigured: a request has 65 limits, and must have 1 to 64"),
        (
            twice,
            "misconfigured: two limits of one request share a key, which would charge it twice",
        ),
    ] {
        let error = check(&limiter, limits).await.unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    }
    // Of all that, only the sixty-four were charged.
    let left = limiter.check(&named(1).next().unwrap().cost(0), "user").await.unwrap();
    assert_eq!(left.remaining(), Some(4));
}
