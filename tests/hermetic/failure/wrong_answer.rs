//! Anybody can write a store, also one that answers what it was not asked.

use http::StatusCode;
use tollgate::{
    Decision, Global, Limit, Limiter, OnFailure, Policy, Quota, Rejection, Source, Store,
    StoreErrorKind,
    store::{Answer, Hit, Refund, Reply},
};

use super::{ALL, breakable};
use crate::support::{Broken, Client};

fn three(on_failure: OnFailure) -> Policy {
    let limits = ["a", "b", "c"].map(|name| Limit::new(name, Quota::per_minute(4)));
    let policy = Policy::new("api").on_failure(on_failure);
    let limits = limits.into_iter();
    limits.fold(policy, |policy, limit| policy.limit(Global, limit)).build().unwrap()
}

#[tokio::test]
async fn an_answer_for_another_number_of_limits_is_a_failure_and_no_panic() {
    for on_failure in ALL {
        for count in [0, 1, 2, 4, 9] {
            let (limiter, store, _) = breakable();
            store.break_(Broken::Miscounts(count));
            let mut client = Client::sharing(&limiter, three(on_failure));
            let response = client.send().await;
            match on_failure {
                OnFailure::Deny => {
                    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
                    let reason = response.extensions().get();
                    let Some(Rejection::StoreFailed(kind)) = reason else { panic!("no reason") };
                    assert_eq!(*kind, StoreErrorKind::Unexpected);
                }
                OnFailure::Allow => assert_eq!(response.status(), StatusCode::OK),
                _ => {
                    let decision: &Decision = response.extensions().get().unwrap();
                    assert_eq!(decision.verdicts().len(), 3);
                    assert_eq!(decision.remaining(), Some(1));
                }
            }
        }
    }
}

#[tokio::test]
async fn without_http_it_is_an_error_of_the_store() {
    let (limiter, store, _) = breakable();
    let limit = Limit::new("tries", Quota::per_minute(4));
    let check = async |limiter: &Limiter| limiter.check(&limit, "user").await;
    for count in [0, 2, 9] {
        store.break_(Broken::Miscounts(count));
        let error = check(&limiter).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unexpected, "{count}");
    }
    store.break_(Broken::Miscounts(1));
    assert!(check(&limiter).await.is_ok());
}

/// Whoever it says has made it.
#[tokio::test]
async fn an_answer_is_checked_whatever_it_says_of_itself() {
    for source in [Source::Lease, Source::Cache, Source::Memory, Source::None] {
        let limiter = Limiter::new(Says(source));
        let error = limiter.check(&Limit::new("l", Quota::per_day(1)), "user").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unexpected, "{source:?}");
    }
}

/// A store that answers nothing, in somebody else's name.
#[derive(Debug)]
struct Says(Source);

impl Store for Says {
    fn acquire(&self, _: &[Hit<'_>]) -> Reply {
        let (now, standings, found) = Default::default();
        Reply::now(Ok(Answer { now, source: self.0, standings, found }))
    }

    fn refund(&self, _: &[Refund<'_>]) -> Reply<()> {
        Reply::now(Ok(()))
    }

    fn reset(&self, _: &[&[u8]]) -> Reply<()> {
        Reply::now(Ok(()))
    }
}
