//! What a request costs may depend on it.

use http::{Method, Request};
use tollgate::{Algorithm, Global, Limit, Limiter, Policy, Quota, Rejection, RequestHead, Ruling};

use crate::support::limiter;

async fn rule(limiter: &Limiter, policy: &Policy, method: Method) -> Ruling {
    let request = Request::builder().method(method).body(()).unwrap();
    limiter.decide(policy, RequestHead::new(&request)).await
}

#[tokio::test]
async fn a_request_takes_what_its_cost_says() {
    let points = Limit::new("points", Quota::per_minute(10)).cost_by(|head| match *head.method() {
        Method::GET => 1,
        Method::HEAD => 0,
        _ => 5,
    });
    let policy = Policy::new("api").limit(Global, points).build().unwrap();
    let (limiter, _clock) = limiter();
    for (method, remaining) in [
        (Method::GET, Some(9)),
        (Method::POST, Some(4)),
        (Method::HEAD, Some(4)),
        (Method::POST, None),
        (Method::GET, Some(3)),
    ] {
        match (rule(&limiter, &policy, method.clone()).await, remaining) {
            (Ruling::Admit(decision), Some(_)) => assert_eq!(decision.remaining(), remaining),
            (Ruling::Reject(Rejection::Limited(decision)), None) => {
                assert_eq!(decision.binding().unwrap().cost(), 5);
            }
            (ruling, _) => panic!("{method}: {ruling:?}"),
        }
    }
}

#[tokio::test]
async fn a_cost_above_what_can_ever_be_granted_is_denied_without_a_time_to_retry() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
    ] {
        for cost in [11, 5_000, u64::MAX] {
            let limit = Limit::new("points", Quota::per_minute(10)).algorithm(algorithm);
            let limit = limit.cost_by(move |_| cost);
            let policy = Policy::new("api").limit(Global, limit).build().unwrap();
            let ruling = rule(&limiter().0, &policy, Method::GET).await;
            let Ruling::Reject(Rejection::Limited(decision)) = ruling else {
                panic!("{algorithm:?} {cost}: {ruling:?}");
            };
            assert_eq!(decision.retry_after(), None, "{algorithm:?} {cost}");
            assert_eq!(decision.remaining(), Some(10), "{algorithm:?} {cost}");
        }
    }
}

#[tokio::test]
async fn looking_takes_nothing_and_tells_the_wait_for_one_unit() {
    let (limiter, _clock) = limiter();
    let limit = Limit::new("mails", Quota::per_minute(2));
    for left in [2, 1, 0] {
        let decision = limiter.look(&limit, "somebody").await.unwrap();
        assert!(decision.is_allowed());
        assert_eq!(decision.remaining(), Some(left));
        let wait = decision.binding().unwrap().standing().wait().unwrap();
        assert_eq!(wait.as_secs(), if left == 0 { 30 } else { 0 });
        limiter.check(&limit, "somebody").await.unwrap();
    }
}
