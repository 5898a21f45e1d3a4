//! Of several limits clients are told the one that stops them first.

use http::{Response, StatusCode};
use tollgate::{Clock, Decision, Limit, Quota};

use crate::support::{Client, field, number, policy, second, secs, x_fields};

fn binding<B>(response: &Response<B>) -> String {
    let decision: &Decision = response.extensions().get().unwrap();
    decision.binding().unwrap().name().to_owned()
}

async fn first(limits: impl IntoIterator<Item = Limit>) -> (String, [Option<u64>; 3]) {
    let mut client = Client::of(policy("api", limits));
    let now = second(client.clock.now());
    let response = client.send().await;
    let mut fields = x_fields(&response);
    fields[2] = fields[2].map(|reset| reset - now);
    (binding(&response), fields)
}

#[tokio::test]
async fn of_an_admitted_request_the_limit_with_the_fewest_further_requests() {
    let few = || Limit::new("few", Quota::per_minute(10));
    let many = || Limit::new("many", Quota::per_day(20));
    let expected = ("few".to_owned(), [Some(10), Some(9), Some(6)]);
    assert_eq!(first([few(), many()]).await, expected);
    assert_eq!(first([many(), few()]).await, expected);
}

#[tokio::test]
async fn further_requests_are_counted_at_their_cost() {
    let cheap = || Limit::new("cheap", Quota::per_minute(10));
    let dear = || Limit::new("dear", Quota::per_minute(60)).cost(15);
    // 9 requests against 3.
    let expected = ("dear".to_owned(), [Some(60), Some(45), Some(15)]);
    assert_eq!(first([cheap(), dear()]).await, expected);
    assert_eq!(first([dear(), cheap()]).await, expected);
}

#[tokio::test]
async fn of_ties_the_one_that_is_back_later() {
    let soon = || Limit::new("soon", Quota::per_minute(5));
    let late = || Limit::new("late", Quota::per_hour(5));
    let expected = ("late".to_owned(), [Some(5), Some(4), Some(720)]);
    assert_eq!(first([soon(), late()]).await, expected);
    assert_eq!(first([late(), soon()]).await, expected);
}

#[tokio::test]
async fn of_limits_that_are_the_same_the_last() {
    let limits = ["a", "b", "c"].map(|name| Limit::new(name, Quota::per_minute(5)));
    assert_eq!(first(limits).await.0, "c");
}

#[tokio::test]
async fn a_denial_shows_the_limit_that_denied_not_the_one_that_was_shown_before() {
    let limits =
        [Limit::new("minute", Quota::per_minute(2)), Limit::new("hour", Quota::per_hour(3))];
    let mut client = Client::of(policy("api", limits));
    assert_eq!(client.exhaust().await.0, 2);
    client.clock.advance(secs(60));
    assert_eq!(client.send().await.status(), StatusCode::OK);
    let denied = client.send().await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(binding(&denied), "hour");
    let now = second(client.clock.now());
    assert_eq!(x_fields(&denied), [Some(3), Some(0), Some(now + 1_140)]);
    assert_eq!(number(&denied, "retry-after"), Some(1_140));
    assert_eq!(field(denied.headers(), "ratelimit"), Some(r#""hour";r=0;t=1140"#));
}

#[tokio::test]
async fn of_several_that_deny_the_one_that_frees_last() {
    let minute = || Limit::new("minute", Quota::per_minute(1));
    let hour = || Limit::new("hour", Quota::per_hour(1));
    let free = || Limit::new("free", Quota::per_second(9));
    for limits in [[minute(), hour(), free()], [hour(), free(), minute()]] {
        let mut client = Client::of(policy("api", limits));
        let (_, denied) = client.exhaust().await;
        assert_eq!(binding(&denied), "hour");
        let now = second(client.clock.now());
        assert_eq!(x_fields(&denied), [Some(1), Some(0), Some(now + 3_600)]);
        assert_eq!(number(&denied, "retry-after"), Some(3_600));
        let fields = field(denied.headers(), "ratelimit").unwrap();
        assert!(fields.contains(r#""minute";r=0;t=60"#), "{fields}");
        assert!(fields.contains(r#""hour";r=0;t=3600"#), "{fields}");
        assert!(!fields.contains("free"), "{fields}");
    }
}

#[tokio::test]
async fn a_limit_that_can_never_grant_the_cost_frees_last_of_all() {
    let never = || Limit::new("never", Quota::per_minute(1)).cost_by(|_| 2);
    let year = || Limit::new("year", Quota::new(1, secs(86_400 * 365)).unwrap());
    for limits in [[never(), year()], [year(), never()]] {
        let denied = Client::of(policy("api", limits)).send().await;
        assert_eq!(binding(&denied), "never");
        assert_eq!(number(&denied, "retry-after"), None);
    }
}

#[tokio::test]
async fn a_denial_tells_units_that_are_left_but_too_few() {
    let mut client = Client::of(policy("api", [Limit::new("dear", Quota::per_minute(10)).cost(4)]));
    let (passed, denied) = client.exhaust().await;
    assert_eq!(passed, 2);
    let now = second(client.clock.now());
    // Two more come back in 12 s.
    assert_eq!(x_fields(&denied), [Some(10), Some(2), Some(now + 12)]);
    assert_eq!(number(&denied, "retry-after"), Some(12));
    assert_eq!(field(denied.headers(), "ratelimit"), Some(r#""dear";r=0;t=12"#));
}
