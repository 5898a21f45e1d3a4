//! What becomes of requests while the store does not answer.

use http::StatusCode;
use tollgate::{Decision, Limit, OnFailure, Outcome, Quota, Rejection, Source, StoreErrorKind};

use super::{ALL, KINDS, api, breakable};
use crate::support::{Broken, Client, number};

const QUOTA: Quota = Quota::per_minute(4);

/// Every way to fail, at once and later.
fn ways() -> impl Iterator<Item = (Broken, StoreErrorKind)> {
    let hangs = (Broken::Hangs, StoreErrorKind::Timeout);
    KINDS
        .into_iter()
        .flat_map(|kind| [(Broken::Now(kind), kind), (Broken::Later(kind), kind)])
        .chain([hangs])
}

#[tokio::test(start_paused = true)]
async fn open_they_all_pass() {
    for (broken, _) in ways() {
        let (limiter, store, _) = breakable();
        store.break_(broken);
        let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Allow));
        for _ in 0..20 {
            let response = client.send().await;
            assert_eq!(response.status(), StatusCode::OK, "{broken:?}");
            let decision: &Decision = response.extensions().get().unwrap();
            assert_eq!(decision.outcome(), Outcome::FailedOpen);
            assert_eq!(decision.source(), Source::None);
        }
        assert_eq!(client.service.get_ref().calls(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn closed_they_are_all_answered_503_and_told_to_come_back_soon() {
    let mut waits = std::collections::BTreeSet::new();
    for (broken, kind) in ways() {
        let (limiter, store, _) = breakable();
        store.break_(broken);
        let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Deny));
        for _ in 0..20 {
            let response = client.send().await;
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{broken:?}");
            waits.insert(number(&response, "retry-after").unwrap());
            let Some(Rejection::StoreFailed(told)) = response.extensions().get() else {
                panic!("no reason in the extensions");
            };
            assert_eq!(*told, kind);
        }
        assert_eq!(client.service.get_ref().calls(), 0);
    }
    // Short, and not the same for all, who would else come back together.
    assert_eq!(waits, [1, 2, 3].into());
}

#[tokio::test(start_paused = true)]
async fn locally_they_are_limited_to_the_share() {
    for (broken, _) in ways() {
        let (limiter, store, _) = breakable();
        store.break_(broken);
        let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Local { share: 0.5 }));
        let (passed, denied) = client.exhaust().await;
        assert_eq!(passed, 2, "{broken:?}");
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(number(&denied, "retry-after"), Some(30));
        let decision: &Decision = denied.extensions().get().unwrap();
        assert_eq!(decision.source(), Source::Fallback);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_never_a_429_and_a_denial_is_never_a_failure() {
    for on_failure in ALL {
        let (limiter, store, _) = breakable();
        let mut client = Client::sharing(&limiter, api(QUOTA, on_failure));
        // Exhausted while the store answers: a denial, whatever the policy does on failure.
        let (passed, denied) = client.exhaust().await;
        assert_eq!((passed, denied.status()), (4, StatusCode::TOO_MANY_REQUESTS));
        store.break_(Broken::Hangs);
        let response = client.send().await;
        let expected = match on_failure {
            OnFailure::Deny => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        assert_eq!(response.status(), expected, "{on_failure:?}");
        store.mend();
        assert_eq!(client.send().await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test(start_paused = true)]
async fn without_http_the_caller_is_told_which_of_the_two_it_is() {
    let (limiter, store, _) = breakable();
    let limit = Limit::new("tries", Quota::per_minute(1));
    assert!(limiter.check(&limit, "user").await.unwrap().is_allowed());
    let denied = limiter.check(&limit, "user").await.unwrap();
    assert_eq!(denied.outcome(), Outcome::Denied);
    for (broken, kind) in ways() {
        store.break_(broken);
        let error = limiter.check(&limit, "user").await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert_eq!(error.to_string().split(':').next(), Some(kind.as_str()));
        assert!(!error.to_string().contains("user"), "{error}");
    }
}

#[tokio::test]
async fn every_request_is_decided_by_the_store_again_once_it_answers() {
    for on_failure in ALL {
        let (limiter, store, _) = breakable();
        let mut client = Client::sharing(&limiter, api(QUOTA, on_failure));
        store.break_(Broken::Now(StoreErrorKind::Unreachable));
        client.send().await;
        store.mend();
        let response = client.send().await;
        let decision: &Decision = response.extensions().get().unwrap();
        assert_eq!(decision.source(), Source::Memory, "{on_failure:?}");
        assert_eq!(decision.remaining(), Some(3), "{on_failure:?}");
    }
}

#[tokio::test]
async fn a_store_that_fails_is_asked_once_for_each_request() {
    for on_failure in ALL {
        let (limiter, store, _) = breakable();
        store.break_(Broken::Now(StoreErrorKind::Timeout));
        let mut client = Client::sharing(&limiter, api(QUOTA, on_failure));
        for asked in 1..=5 {
            client.send().await;
            // A second time might charge a second time.
            assert_eq!(store.asked(), asked);
        }
    }
}
