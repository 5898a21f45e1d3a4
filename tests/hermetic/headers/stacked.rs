//! Layers around layers end with one set of fields, the strictest.

use std::collections::BTreeSet;

use http::{Response, StatusCode};
use tollgate::{
    Decision, HeaderFormat, Limit, Limiter, Policy, Quota, RateLimitLayer, ResponseBody,
};
use tower::Layer;

use super::formats::{ALL, names, sent};
use crate::support::{Probe, memory, policy, send, x_fields};

fn of(name: &'static str, quota: Quota) -> Policy {
    policy(name, [Limit::new(name, quota)])
}

/// The first `count` responses through two layers, outermost first.
async fn through<const N: usize>(
    limiters: [&Limiter; 2],
    policies: [Policy; 2],
    formats: [HeaderFormat; 2],
) -> [Response<ResponseBody<ResponseBody<String>>>; N] {
    let layer = |at: usize| {
        RateLimitLayer::with_policy(policies[at].clone(), limiters[at]).headers(formats[at])
    };
    let mut service = layer(0).layer(layer(1).layer(Probe::new()));
    let mut responses = Vec::new();
    for _ in 0..N {
        responses.push(send(&mut service).await);
    }
    responses.try_into().ok().unwrap()
}

fn strict() -> Policy {
    of("strict", Quota::per_minute(3))
}

fn loose() -> Policy {
    of("loose", Quota::per_hour(100))
}

/// The names of the layer that tells last: the outer one, if it tells at all.
fn expected([outer, inner]: [HeaderFormat; 2]) -> BTreeSet<&'static str> {
    names(if outer == HeaderFormat::None { inner } else { outer })
}

fn pairs() -> impl Iterator<Item = [HeaderFormat; 2]> {
    ALL.into_iter().flat_map(|outer| ALL.map(|inner| [outer, inner]))
}

#[tokio::test]
async fn an_admitted_response_has_one_set_the_strictest_in_both_orders_and_all_formats() {
    for formats in pairs() {
        for policies in [[strict(), loose()], [loose(), strict()]] {
            // A layer that tells nothing cannot correct one inside that tells.
            let blind = formats[0] == HeaderFormat::None && policies[0].name() == "strict";
            let shown = if blind { [100, 99] } else { [3, 2] };
            let limiter = Limiter::new(memory().0);
            let [response] = through([&limiter; 2], policies, formats).await;
            assert_eq!(sent(&response), expected(formats), "{formats:?}");
            let [limit, remaining, _] = x_fields(&response);
            if let (Some(limit), Some(remaining)) = (limit, remaining) {
                assert_eq!([limit, remaining], shown, "{formats:?}");
            }
            let decision: &Decision = response.extensions().get().unwrap();
            assert_eq!(decision.policy(), "strict");
        }
    }
}

#[tokio::test]
async fn a_denied_response_has_one_set_of_the_limit_that_denied() {
    for formats in pairs() {
        for policies in [[strict(), loose()], [loose(), strict()]] {
            let outer_denies = policies[0].name() == "strict";
            let limiter = Limiter::new(memory().0);
            let [.., response] = through::<4>([&limiter; 2], policies, formats).await;
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            let fields = if outer_denies { names(formats[0]) } else { expected(formats) };
            assert_eq!(sent(&response), fields, "{formats:?}");
            assert_eq!(response.headers().get_all("retry-after").iter().count(), 1);
            assert_eq!(response.headers()["retry-after"], "20");
            if let [Some(limit), Some(remaining), _] = x_fields(&response) {
                assert_eq!([limit, remaining], [3, 0], "{formats:?}");
            }
            let decision: &Decision = response.extensions().get().unwrap();
            assert_eq!(decision.policy(), "strict");
        }
    }
}

#[tokio::test]
async fn what_an_inner_layer_told_is_not_left_beside_what_the_outer_tells() {
    let limiter = Limiter::new(memory().0);
    let formats = [HeaderFormat::Draft, HeaderFormat::XRateLimit];
    let [response] = through([&limiter; 2], [strict(), loose()], formats).await;
    assert_eq!(response.headers()["ratelimit-policy"], r#""strict";q=3;w=60"#);
    assert_eq!(sent(&response), names(HeaderFormat::Draft));
}

#[tokio::test]
async fn a_layer_that_knows_nothing_leaves_what_another_tells() {
    use tollgate::StoreErrorKind;

    use crate::support::{Broken, Flaky};

    for failing in 0..2 {
        let limiters = [0, 1].map(|at| {
            let store = Flaky::new(memory().0);
            if at == failing {
                store.break_(Broken::Now(StoreErrorKind::Timeout));
            }
            Limiter::new(store)
        });
        let formats = [HeaderFormat::Both; 2];
        let [response] = through(limiters.each_ref(), [strict(), strict()], formats).await;
        assert_eq!(sent(&response), names(HeaderFormat::Both));
        assert_eq!(x_fields(&response)[..2], [Some(3), Some(2)]);
    }
}

#[tokio::test]
async fn three_layers_end_with_one_set_too() {
    for at in 0..3 {
        let limiter = Limiter::new(memory().0);
        let mut policies = [of("a", Quota::per_day(90)), of("b", Quota::per_day(80)), strict()];
        policies.swap(at, 2);
        let [outer, middle, inner] =
            policies.map(|policy| RateLimitLayer::with_policy(policy, &limiter));
        let mut service = outer.layer(middle.layer(inner.layer(Probe::new())));
        let response = send(&mut service).await;
        assert_eq!(sent(&response), names(HeaderFormat::Both));
        assert_eq!(x_fields(&response)[..2], [Some(3), Some(2)]);
    }
}
