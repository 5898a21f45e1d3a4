//! What an extractor may draw from a request: one key, several, none, or too many.

use http::{Request, StatusCode};
use tollgate::{
    Decision, Global, KeyError, KeyExtractor, Keys, Limit, Limiter, OnMissingKey, Outcome, Policy,
    Quota, Rejection, RequestHead, Ruling, key,
};

use crate::support::{about, asking, decide, left, limiters};

fn names() -> Limit {
    Limit::new("names", Quota::per_minute(5))
}

fn api(key: impl KeyExtractor, on_missing_key: OnMissingKey) -> Policy {
    let policy = Policy::new("api").limit(key, names()).on_missing_key(on_missing_key);
    policy.build().unwrap()
}

/// Draws as it is told, without the help of `from_fn`.
struct Own;

impl KeyExtractor for Own {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        about().extract(head).or_else(|_| Ok(Vec::<String>::new().into()))
    }
}

async fn rejected(limiter: &Limiter, policy: &Policy, request: &Request<()>) -> KeyError {
    match limiter.decide(policy, RequestHead::new(request)).await {
        Ruling::Reject(Rejection::NoKey(error)) => error,
        other => panic!("not rejected for its keys: {other:?}"),
    }
}

fn indices(decision: &Decision) -> Vec<usize> {
    decision.verdicts().iter().map(|verdict| verdict.key_index()).collect()
}

#[tokio::test]
async fn a_key_that_is_there_twice_is_charged_once() {
    for (limiter, _clock) in limiters() {
        let policy = api(about(), OnMissingKey::Reject);
        let decision = decide(&limiter, &policy, &["a", "b", "a", "a"]).await;
        assert_eq!(indices(&decision), [0, 1]);
        assert_eq!(left(&limiter, policy.limit("names").unwrap(), "a").await, 4);
    }
}

#[tokio::test]
async fn a_key_behind_one_that_is_there_twice_keeps_its_place() {
    for (limiter, _clock) in limiters() {
        let policy = api(about(), OnMissingKey::Reject);
        limiter.check(&policy.limit("names").unwrap().clone().cost(5), "b").await.unwrap();
        let asked = ["a", "a", "b"];
        let denied = decide(&limiter, &policy, &asked).await;
        assert_eq!(asked[denied.binding().unwrap().key_index()], "b");
    }
}

#[tokio::test]
async fn eight_keys_are_counted_and_nine_are_the_clients_fault() {
    let nine: Vec<String> = (0..9).map(|number| number.to_string()).collect();
    let nine: Vec<&str> = nine.iter().map(String::as_str).collect();
    for (limiter, _clock) in limiters() {
        for skip in [OnMissingKey::Reject, OnMissingKey::Skip] {
            let policy = api(about(), skip);
            assert_eq!(decide(&limiter, &policy, &nine[..8]).await.verdicts().len(), 8);
            // As often as it likes, a key is one.
            let often = [&nine[..8], &nine[..8], &nine[..8]].concat();
            assert_eq!(indices(&decide(&limiter, &policy, &often).await), [0, 1, 2, 3, 4, 5, 6, 7]);
            let error = rejected(&limiter, &policy, &asking(&nine)).await;
            assert_eq!(error.status(), StatusCode::BAD_REQUEST);
            assert!(!error.is_missing() && !error.is_setup());
            assert_eq!(error.to_string(), "the request is about too many things at once");
        }
        assert_eq!(
            left(&limiter, api(about(), OnMissingKey::Reject).limit("names").unwrap(), "0").await,
            1
        );
    }
}

#[tokio::test]
async fn a_flood_of_keys_is_refused_and_costs_nothing() {
    let many: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let same = vec!["a"; 10_000];
    for (limiter, _clock) in limiters() {
        let pairs = api((about(), about(), about(), about()), OnMissingKey::Skip);
        for policy in [api(about(), OnMissingKey::Skip), pairs] {
            for keys in [&many[..], &many[..65], &same, &same[..65]] {
                let error = rejected(&limiter, &policy, &asking(keys)).await;
                assert_eq!(error.status(), StatusCode::BAD_REQUEST);
            }
        }
        assert_eq!(left(&limiter, &names(), "0").await, 5);
    }
}

#[tokio::test]
async fn none_at_all_is_a_missing_key_whoever_draws_it() {
    for (limiter, _clock) in limiters() {
        for none in [asking(&[]), asking(&[""]), asking(&["", ""]), Request::new(())] {
            for of in [true, false] {
                let api = |on_missing_key| {
                    if of { api(about(), on_missing_key) } else { api(Own, on_missing_key) }
                };
                let error = rejected(&limiter, &api(OnMissingKey::Reject), &none).await;
                assert!(error.is_missing(), "{error}");
                let policy = api(OnMissingKey::Skip);
                let ruling = limiter.decide(&policy, RequestHead::new(&none)).await;
                let Ruling::Admit(decision) = ruling else { panic!("{ruling:?}") };
                assert_eq!(decision.outcome(), Outcome::Skipped);
                let policy = api(OnMissingKey::Anonymous);
                let ruling = limiter.decide(&policy, RequestHead::new(&none)).await;
                let Ruling::Admit(decision) = ruling else { panic!("{ruling:?}") };
                assert_eq!(decision.outcome(), Outcome::Allowed);
                limiter
                    .reset(policy.limit("names").unwrap(), key::Key::new("anonymous", ""))
                    .await
                    .unwrap();
            }
        }
    }
}

#[tokio::test]
async fn one_empty_key_among_others_gets_nobody_around_a_limit() {
    for (limiter, _clock) in limiters() {
        let policy = api(about(), OnMissingKey::Skip);
        for garbled in [["a", ""], ["", "a"]] {
            let error = rejected(&limiter, &policy, &asking(&garbled)).await;
            assert!(!error.is_missing() && !error.is_setup(), "{garbled:?}: {error}");
            assert_eq!(error.status(), StatusCode::BAD_REQUEST);
        }
        // Nor to be counted by something else.
        let either = api(about().or(Global), OnMissingKey::Skip);
        rejected(&limiter, &either, &asking(&["a", ""])).await;
    }
}

#[tokio::test]
async fn where_the_first_of_two_extractors_draws_none_the_second_counts() {
    for (limiter, _clock) in limiters() {
        let policy = api(Own.or(Global), OnMissingKey::Reject);
        assert_eq!(indices(&decide(&limiter, &policy, &[]).await), [0]);
        assert_eq!(
            left(&limiter, policy.limit("names").unwrap(), key::Key::new("global", "all")).await,
            4
        );
    }
}

#[tokio::test]
async fn tuples_count_every_combination() {
    for (limiter, _clock) in limiters() {
        let path = key::from_borrowed(|head| Some(head.uri().path()));
        let policy = api((about(), path, about()), OnMissingKey::Reject);
        let decision = decide(&limiter, &policy, &["a", "b"]).await;
        assert_eq!(indices(&decision), [0, 1, 2, 3]);
        for keys in [["a", "a"], ["b", "b"], ["a", "b"]] {
            // Each of these has its own bucket, and a pair is not the one in the other order.
            let left = decide(&limiter, &policy, &keys).await;
            let left: Vec<_> =
                left.verdicts().iter().map(|key| key.standing().remaining()).collect();
            let expected: &[u64] = if keys[0] == keys[1] { &[3] } else { &[2, 3, 3, 2] };
            assert_eq!(left, expected, "{keys:?}");
        }
        // Three by three are nine.
        rejected(&limiter, &policy, &asking(&["a", "b", "c"])).await;
    }
}
