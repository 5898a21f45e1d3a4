//! `RateLimit` and `RateLimit-Policy`, as another implementation of RFC 9651 reads them.

use sfv::{BareItem, List, ListEntry, Parser};
use tollgate::{HeaderFormat, Limit, Policy, Quota};

use crate::support::{Client, field, policy, secs};

/// The largest integer of RFC 9651 §3.3.1.
const MAX: i64 = 999_999_999_999_999;

/// Names, each with its integers.
pub(super) type Fields = Vec<(String, Vec<(String, i64)>)>;

pub(super) fn parse(text: &str) -> Fields {
    let list: List = Parser::new(text).parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let items = list.iter().map(|entry| {
        let ListEntry::Item(item) = entry else { panic!("an inner list: {text}") };
        let BareItem::String(name) = &item.bare_item else { panic!("not a string: {text}") };
        let parameters = item.params.iter().map(|(key, value)| {
            let BareItem::Integer(value) = value else { panic!("not an integer: {text}") };
            (key.as_str().to_owned(), i64::from(*value))
        });
        (name.as_str().to_owned(), parameters.collect())
    });
    items.collect()
}

fn fields(names: &[(&str, &[(&str, i64)])]) -> Fields {
    let parameters =
        |list: &[(&str, i64)]| list.iter().map(|(key, n)| ((*key).into(), *n)).collect();
    names.iter().map(|(name, list)| ((*name).into(), parameters(list))).collect()
}

/// What the first request of a policy is told: the policy, and where it stands.
async fn first(policy: Policy) -> (Fields, Fields) {
    let mut client = Client::with(policy, |layer| layer.headers(HeaderFormat::Draft));
    let response = client.send().await;
    let read = |name| parse(field(response.headers(), name).unwrap());
    (read("ratelimit-policy"), read("ratelimit"))
}

#[tokio::test]
async fn the_policy_names_all_limits_and_the_state_the_one_that_binds() {
    let limits =
        [Limit::new("burst", Quota::per_minute(100)), Limit::new("daily", Quota::per_day(50))];
    let (policy, state) = first(policy("api", limits)).await;
    let both =
        fields(&[("burst", &[("q", 100), ("w", 60)]), ("daily", &[("q", 50), ("w", 86_400)])]);
    assert_eq!(policy, both);
    assert_eq!(state, fields(&[("daily", &[("r", 49), ("t", 1_728)])]));
}

#[tokio::test]
async fn the_window_is_the_time_in_which_the_burst_comes_back_in_whole_seconds_rounded_up() {
    let cases = [
        (Quota::per_minute(60).burst(5), 5, 5),
        (Quota::per_minute(2).burst(600), 600, 18_000),
        (Quota::per_minute(7).burst(3), 3, 26),
        (Quota::per_second(10).burst(11), 11, 2),
        (Quota::new(3, secs(10)).unwrap(), 3, 10),
        (Quota::per_second(1_000), 1_000, 1),
    ];
    for (quota, q, w) in cases {
        let (policy, _) = first(policy("api", [Limit::new("tries", quota)])).await;
        assert_eq!(policy, fields(&[("tries", &[("q", q), ("w", w)])]), "{quota}");
    }
}

#[tokio::test]
async fn a_policy_of_eight_limits_is_read_back_whole() {
    let names: Vec<String> = (1..=8).map(|n| format!("Limit_{n}.of-{}", "x".repeat(53))).collect();
    let limits = names.iter().map(|name| Limit::new(name.as_str(), Quota::per_hour(9)));
    let mut client = Client::of(policy("api", limits));
    let (_, response) = client.exhaust().await;
    let read = |name| parse(field(response.headers(), name).unwrap());
    let (policy, state) = (read("ratelimit-policy"), read("ratelimit"));
    assert_eq!(policy.len(), 8);
    for ((policy, state), name) in policy.iter().zip(&state).zip(&names) {
        assert_eq!((&policy.0, &state.0), (name, name));
        assert_eq!(policy.1, [("q".into(), 9), ("w".into(), 3_600)]);
        assert_eq!(state.1, [("r".into(), 0), ("t".into(), 400)]);
    }
}

#[tokio::test]
async fn numbers_have_at_most_fifteen_digits() {
    let quota = Quota::per_second(1_000_000_000).burst(300_000_000_000_000_000);
    let (policy, state) = first(policy("api", [Limit::new("flood", quota)])).await;
    assert_eq!(policy, fields(&[("flood", &[("q", MAX), ("w", 300_000_000)])]));
    assert_eq!(state, fields(&[("flood", &[("r", MAX), ("t", 1)])]));
}

#[tokio::test]
async fn when_nothing_is_left_the_time_is_that_of_the_next_unit() {
    let mut client = Client::of(policy("api", [Limit::new("tries", Quota::per_minute(2))]));
    client.send().await;
    let response = client.send().await;
    let state = parse(field(response.headers(), "ratelimit").unwrap());
    assert_eq!(state, fields(&[("tries", &[("r", 0), ("t", 30)])]));
}

#[tokio::test]
async fn a_layer_without_a_policy_names_its_limit_after_the_quota() {
    use tollgate::{Global, RateLimitLayer};
    use tower::Layer;

    use crate::support::{Probe, memory, send};

    let layer = RateLimitLayer::new(Global, Quota::per_minute(100).burst(20), memory().0);
    let response = send(&mut layer.layer(Probe::new())).await;
    let policy = parse(field(response.headers(), "ratelimit-policy").unwrap());
    assert_eq!(policy, fields(&[("100-60s-burst20", &[("q", 20), ("w", 12)])]));
}
