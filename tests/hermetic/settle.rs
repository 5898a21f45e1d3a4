//! What a request has really used, once that is known.

use std::convert::Infallible;

use http::{Request, Response};
use tollgate::{
    Algorithm, Decision, Global, Key, Limit, Limiter, Outcome, Policy, Quota, RateLimitLayer,
    StoreErrorKind,
};
use tower::{Layer, service_fn};

use crate::support::{
    ALGORITHMS, Broken, Client, Flaky, about, decide, left, limiters, memory, policy, send,
};

fn tokens(units: u64) -> Limit {
    Limit::new("tokens", Quota::per_day(units)).cost(10)
}

fn all() -> Key {
    Key::new("global", "all")
}

#[tokio::test]
async fn it_comes_to_what_was_used_more_or_less() {
    for algorithm in ALGORITHMS {
        for used in [0, 1, 9, 10, 11, 73, 100] {
            for (limiter, _clock) in limiters() {
                let policy = policy("chat", [tokens(100).algorithm(algorithm)]);
                let decision = decide(&limiter, &policy, &[]).await;
                assert_eq!(decision.settle("tokens", used).await.unwrap(), 0);
                let left = left(&limiter, policy.limit("tokens").unwrap(), all()).await;
                assert_eq!(left, 100 - used, "{algorithm:?}, {used}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_there_leaves_nothing_for_the_next_request() {
    for algorithm in ALGORITHMS {
        for (limiter, _clock) in limiters() {
            let policy = policy("chat", [tokens(100).algorithm(algorithm)]);
            let mut served = 0;
            for at in 0..20 {
                let decision = decide(&limiter, &policy, &[]).await;
                if !decision.is_allowed() {
                    break;
                }
                served += 60;
                let missing = decision.settle("tokens", 60).await.unwrap();
                assert_eq!(missing, if at == 0 { 0 } else { 20 }, "{algorithm:?}");
            }
            // By one request above the limit, and no more.
            assert_eq!(served, 120, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn a_log_is_charged_in_parts_that_it_takes() {
    for (limiter, _clock) in limiters() {
        let limit = tokens(5_000).algorithm(Algorithm::SlidingLog);
        let policy = policy("chat", [limit]);
        let decision = decide(&limiter, &policy, &[]).await;
        assert_eq!(decision.settle("tokens", 4_321).await.unwrap(), 0);
        let limit = policy.limit("tokens").unwrap();
        assert_eq!(left(&limiter, limit, all()).await, 679);
        let decision = decide(&limiter, &policy, &[]).await;
        assert_eq!(decision.settle("tokens", 3_000).await.unwrap(), 3_000 - 679);
        assert_eq!(left(&limiter, limit, all()).await, 0);
    }
}

#[tokio::test]
async fn each_key_is_charged_what_was_used() {
    for (limiter, _clock) in limiters() {
        let policy = Policy::new("chat").limit(about(), tokens(100)).build().unwrap();
        let decision = decide(&limiter, &policy, &["a", "b"]).await;
        assert_eq!(decision.settle("tokens", 25).await.unwrap(), 0);
        let limit = policy.limit("tokens").unwrap();
        assert_eq!((left(&limiter, limit, "a").await, left(&limiter, limit, "b").await), (75, 75));
    }
}

#[tokio::test]
async fn it_finds_the_limit_of_a_layer_outside() {
    for (limiter, _clock) in limiters() {
        let outside = policy("outside", [tokens(100)]);
        let inside = policy("inside", [Limit::new("calls", Quota::per_day(9))]);
        let handler = service_fn(async |request: Request<()>| {
            let decision: &Decision = request.extensions().get().unwrap();
            assert_eq!(decision.policy(), "inside");
            assert!(decision.charge("tokens", 5).await.unwrap().is_allowed());
            assert_eq!(decision.charge("nothing", 5).await.unwrap().outcome(), Outcome::Skipped);
            assert_eq!(decision.settle("tokens", 30).await.unwrap(), 0);
            assert_eq!(decision.settle("nothing", 30).await.unwrap(), 0);
            Ok::<_, Infallible>(Response::new(()))
        });
        let layer = |policy: &Policy| RateLimitLayer::with_policy(policy.clone(), &limiter);
        let mut service = layer(&outside).layer(layer(&inside).layer(handler));
        send(&mut service).await;
        // What was charged more beside belongs to its own decision.
        assert_eq!(left(&limiter, outside.limit("tokens").unwrap(), all()).await, 65);
        assert_eq!(left(&limiter, inside.limit("calls").unwrap(), all()).await, 8);
    }
}

#[tokio::test]
async fn a_store_that_fails_is_an_error_and_an_open_request_has_nothing_to_settle() {
    let store = Flaky::new(memory().0);
    let limiter = Limiter::new(store.clone());
    let policy = policy("chat", [tokens(100)]);
    let decision = decide(&limiter, &policy, &[]).await;
    store.break_(Broken::Later(StoreErrorKind::Timeout));
    for used in [5, 50] {
        let error = decision.settle("tokens", used).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Timeout);
    }
    let open = decide(&limiter, &policy, &[]).await;
    assert_eq!(open.outcome(), Outcome::FailedOpen);
    assert_eq!(open.settle("tokens", 50).await.unwrap(), 0);
}

#[tokio::test]
async fn the_wait_is_until_all_limits_pass_whatever_was_asked() {
    for (limiter, _clock) in limiters() {
        let daily = Limit::new("daily", Quota::per_day(1));
        let hourly = Limit::new("hourly", Quota::per_hour(1));
        let both = || limiter.check_all([(&hourly, "user"), (&daily, "user")]);
        let day = Some(std::time::Duration::from_secs(86_400));
        let admitted = both().await.unwrap();
        assert_eq!((admitted.wait(), admitted.retry_after()), (day, None));
        let denied = both().await.unwrap();
        assert_eq!((denied.wait(), denied.retry_after()), (day, day));
        let look = limiter.look(&daily, "user").await.unwrap();
        assert_eq!((look.wait(), look.is_allowed()), (day, true));
        assert_eq!(limiter.look(&daily, "other").await.unwrap().wait(), Some(Default::default()));
        let never = limiter.check(&daily.clone().cost(2), "user").await.unwrap();
        assert_eq!(never.wait(), None);
        // A shadow keeps nobody waiting.
        let shadow = limiter.check_all([(&hourly.clone().shadow(), "user")]).await.unwrap();
        assert_eq!(shadow.wait(), Some(Default::default()));
    }
}

#[tokio::test]
async fn a_share_that_could_never_grant_the_cost_is_refused() {
    let with = |share, cost| {
        let limit = Limit::new("exports", Quota::per_day(100)).cost(cost);
        let policy = Policy::new("api").limit(Global, limit);
        policy.on_failure(tollgate::OnFailure::Local { share }).build()
    };
    assert_eq!(
        with(0.25, 50).unwrap_err().to_string(),
        "the policy `api`, limit `exports`, has a cost of 50: with a local share of 0.25, at most 25 \
         units can be taken at once"
    );
    for policy in [with(0.5, 50), with(0.25, 25)] {
        let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Unreachable));
        let mut client = Client::sharing(&Limiter::new(store), policy.unwrap());
        assert_eq!(client.send().await.status(), http::StatusCode::OK);
    }
}

#[test]
fn a_cost_that_no_request_could_ever_pay_is_refused() {
    let with = |quota: Quota, cost| {
        Policy::new("api").limit(Global, Limit::new("exports", quota).cost(cost)).build()
    };
    with(Quota::per_day(100), 100).unwrap();
    with(Quota::per_day(100).burst(500), 500).unwrap();
    assert_eq!(
        with(Quota::per_day(100), 101).unwrap_err().to_string(),
        "the policy `api`, limit `exports`, has a cost of 101, which no request can pay: at most 100 \
         units can be taken at once"
    );
    assert!(with(Quota::per_day(100).burst(5), 6).is_err());
}
