//! Windows below a second, which `RateLimit-Policy` cannot name: one second, and what it grants.

use std::time::Duration;

use tollgate::{Limit, Quota};

use super::draft::parse;
use crate::support::{Client, field, number, policy};

#[tokio::test]
async fn a_window_below_a_second_is_told_as_one_second_and_never_as_none() {
    let millis = |quantity, millis| Quota::new(quantity, Duration::from_millis(millis)).unwrap();
    let cases = [
        (Quota::per_second(10).burst(5), 10),
        (Quota::per_second(3).burst(2), 3),
        (Quota::per_second(1_000_000).burst(100), 1_000_000),
        (millis(1, 100), 10),
        (millis(1, 999), 1),
        (millis(3, 250), 12),
        // 1.43 units a second; the burst is all there is at once.
        (millis(1, 700), 1),
        (millis(9, 900), 10),
    ];
    for (quota, q) in cases {
        let mut client = Client::of(policy("api", [Limit::new("tries", quota)]));
        let response = client.send().await;
        let fields = parse(field(response.headers(), "ratelimit-policy").unwrap());
        assert_eq!(fields[0].1, [("q".to_owned(), q), ("w".to_owned(), 1)], "{quota}");
        assert_eq!(number(&response, "x-ratelimit-limit"), Some(quota.capacity()), "{quota}");
    }
}

#[tokio::test]
async fn a_wait_below_a_second_is_told_as_one_second() {
    let mut client =
        Client::of(policy("api", [Limit::new("tries", Quota::per_second(1_000).burst(1))]));
    client.send().await;
    let response = client.send().await;
    assert_eq!(number(&response, "retry-after"), Some(1));
    assert_eq!(field(response.headers(), "ratelimit"), Some(r#""tries";r=0;t=1"#));
}
