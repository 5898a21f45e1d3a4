//! Whose buckets are whose.

use http::Request;
use tollgate::{Global, Key, Limit, Policy, Quota, RequestHead, Ruling, key};

use crate::support::{Client, limiter, number, policy, secs};

fn tries() -> Limit {
    Limit::new("tries", Quota::per_minute(3))
}

/// What the second of two policies has, after one request through the first.
async fn left_to_second(first: Limit, second: Limit) -> u64 {
    let (limiter, _) = limiter();
    Client::sharing(&limiter, policy("first", [first])).send().await;
    let response = Client::sharing(&limiter, policy("second", [second])).send().await;
    number(&response, "x-ratelimit-remaining").unwrap() + 1
}

#[tokio::test]
async fn policies_share_a_bucket_only_if_both_say_so() {
    assert_eq!(left_to_second(tries().scope("login"), tries().scope("login")).await, 2);
    assert_eq!(left_to_second(tries(), tries()).await, 3);
    assert_eq!(left_to_second(tries().scope("login"), tries()).await, 3);
    assert_eq!(left_to_second(tries(), tries().scope("login")).await, 3);
    assert_eq!(left_to_second(tries().scope("login"), tries().scope("logout")).await, 3);
}

#[tokio::test]
async fn a_scope_that_is_named_like_a_policy_is_not_that_policy() {
    assert_eq!(left_to_second(tries(), tries().scope("first")).await, 3);
    assert_eq!(left_to_second(tries().scope("second"), tries()).await, 3);
}

#[tokio::test]
async fn within_a_scope_limits_of_two_names_or_refill_times_do_not_share() {
    let other = Limit::new("other", Quota::per_minute(3)).scope("login");
    assert_eq!(left_to_second(tries().scope("login"), other).await, 3);
    let slower = Limit::new("tries", Quota::new(3, secs(61)).unwrap()).scope("login");
    assert_eq!(left_to_second(tries().scope("login"), slower).await, 3);
}

#[tokio::test]
async fn two_limits_on_one_key_never_share_a_counter() {
    let limits = ["a", "b", "c"].map(|name| Limit::new(name, Quota::per_minute(3)));
    // If they did, one request would take three units.
    assert_eq!(Client::of(policy("api", limits)).exhaust().await.0, 3);
}

#[tokio::test]
async fn each_key_has_a_bucket_of_its_own() {
    let (limiter, _) = limiter();
    for user in ["a", "b", "c"] {
        let mut passed = 0;
        for _ in 0..9 {
            passed += u64::from(limiter.check(&tries(), user).await.unwrap().is_allowed());
        }
        assert_eq!(passed, 3, "{user}");
    }
}

#[tokio::test]
async fn identities_that_look_alike_but_are_of_two_kinds_do_not_meet() {
    let (limiter, _) = limiter();
    let same = "192.0.2.7";
    for key in [Key::new("ip", same), Key::new("tenant", same), Key::from(same)] {
        assert_eq!(limiter.check(&tries(), key).await.unwrap().remaining(), Some(2));
    }
}

#[tokio::test]
async fn no_identity_breaks_out_of_its_place_in_the_name_of_a_bucket() {
    let (limiter, _) = limiter();
    for identity in ["a", "a}:-/tries:tb60s{", "a}:-/tries:tb60s", "{a", "a}", "a,id:a"] {
        let decision = limiter.check(&tries(), identity).await.unwrap();
        assert_eq!(decision.remaining(), Some(2), "{identity}");
    }
}

#[tokio::test]
async fn limits_of_one_policy_may_count_different_keys() {
    let (limiter, _) = limiter();
    let path = key::from_borrowed(|head| Some(head.uri().path()));
    let policy = Policy::new("api")
        .limit(path, tries())
        .limit(Global, Limit::new("all", Quota::per_minute(5)))
        .build()
        .unwrap();
    let mut passed = Vec::new();
    for path in ["/a", "/a", "/a", "/a", "/b", "/b", "/b"] {
        let request = Request::get(path).body(()).unwrap();
        let ruling = limiter.decide(&policy, RequestHead::new(&request)).await;
        passed.push(matches!(ruling, Ruling::Admit(_)));
    }
    assert_eq!(passed, [true, true, true, false, true, true, false]);
}
