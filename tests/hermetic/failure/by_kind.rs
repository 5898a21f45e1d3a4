//! A policy that does different things after different failures.

use http::StatusCode;
use tollgate::{Global, Limit, OnFailure, Policy, PolicyError, Quota, StoreErrorKind};

use super::{KINDS, api, breakable};
use crate::support::{Broken, Client};

const QUOTA: Quota = Quota::per_minute(4);

fn choose(kind: StoreErrorKind) -> OnFailure {
    match kind {
        StoreErrorKind::Misconfigured | StoreErrorKind::ReadOnly => OnFailure::Deny,
        StoreErrorKind::Timeout | StoreErrorKind::Busy => OnFailure::Local { share: 0.5 },
        _ => OnFailure::Allow,
    }
}

#[tokio::test]
async fn each_kind_is_met_as_was_chosen() {
    for kind in KINDS {
        let (limiter, store, _) = breakable();
        store.break_(Broken::Later(kind));
        let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::by(choose)));
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(client.send().await.status());
        }
        let expected = match choose(kind) {
            OnFailure::Deny => [StatusCode::SERVICE_UNAVAILABLE; 3],
            OnFailure::Local { .. } => {
                [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]
            }
            _ => [StatusCode::OK; 3],
        };
        assert_eq!(statuses, expected, "{kind:?}");
    }
}

#[test]
fn the_choice_is_made_once_for_each_kind_when_the_policy_is_built() {
    let asked = std::cell::RefCell::new(Vec::new());
    let on_failure = OnFailure::by(|kind| {
        asked.borrow_mut().push(kind);
        choose(kind)
    });
    assert_eq!(*asked.borrow(), StoreErrorKind::ALL);
    for kind in StoreErrorKind::ALL {
        assert_eq!(on_failure.of(*kind), choose(*kind));
        assert_eq!(OnFailure::Deny.of(*kind), OnFailure::Deny);
        // A choice among choices is the choice that they make.
        assert_eq!(OnFailure::by(|_| on_failure).of(*kind), choose(*kind));
    }
    assert_eq!(asked.borrow().len(), StoreErrorKind::ALL.len());
}

fn built(choose: impl Fn(StoreErrorKind) -> OnFailure) -> Result<Policy, PolicyError> {
    let policy = Policy::new("api").limit(Global, Limit::new("tries", QUOTA));
    policy.on_failure(OnFailure::by(choose)).build()
}

#[test]
fn bad_shares_are_refused_when_the_policy_is_built() {
    for kind in StoreErrorKind::ALL {
        let only = |share: f64| {
            move |of: StoreErrorKind| {
                if of == *kind { OnFailure::Local { share } } else { OnFailure::Allow }
            }
        };
        assert!(built(only(0.5)).is_ok());
        for (share, text) in [(0.0, "0"), (-1.0, "-1"), (1.5, "1.5"), (f64::NAN, "NaN")] {
            let message = built(only(share)).unwrap_err().to_string();
            let expected = format!(
                "the policy `api` has a local share of {text}: it must be more than 0 and at most 1"
            );
            assert_eq!(message, expected);
        }
    }
    let two = built(|kind| match kind {
        StoreErrorKind::Timeout => OnFailure::Local { share: 0.5 },
        _ => OnFailure::Local { share: 0.25 },
    });
    let message = two.unwrap_err().to_string();
    assert!(message.contains("0.25 and 0.5: they must be the same"), "{message}");
}
