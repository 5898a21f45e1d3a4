//! Which fields are sent.

use std::collections::BTreeSet;

use http::Response;
use tollgate::{HeaderFormat, Limit, Quota};

use crate::support::{Client, policy};

const X: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
const DRAFT: [&str; 2] = ["ratelimit", "ratelimit-policy"];

/// The fields of a format.
pub(super) fn names(format: HeaderFormat) -> BTreeSet<&'static str> {
    match format {
        HeaderFormat::None => BTreeSet::new(),
        HeaderFormat::XRateLimit => X.into(),
        HeaderFormat::Draft => DRAFT.into(),
        HeaderFormat::Both => X.into_iter().chain(DRAFT).collect(),
        _ => panic!("a new format"),
    }
}

/// The fields of a response that tell about limits; fails where one is there twice.
pub(super) fn sent<B>(response: &Response<B>) -> BTreeSet<&str> {
    let all = response.headers().iter().map(|(name, _)| name.as_str());
    let told: Vec<_> = all.filter(|name| name.contains("ratelimit")).collect();
    let unique = told.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(unique.len(), told.len(), "{told:?}");
    unique
}

pub(super) const ALL: [HeaderFormat; 4] =
    [HeaderFormat::None, HeaderFormat::XRateLimit, HeaderFormat::Draft, HeaderFormat::Both];

#[tokio::test]
async fn each_format_sends_its_fields_and_no_others_on_admitted_and_denied_responses() {
    for format in ALL {
        let policy = policy("api", [Limit::new("tries", Quota::per_minute(1))]);
        let mut client = Client::with(policy, |layer| layer.headers(format));
        let admitted = client.send().await;
        assert_eq!(sent(&admitted), names(format), "{format:?}");
        let denied = client.send().await;
        assert_eq!(sent(&denied), names(format), "{format:?}");
        assert_eq!(denied.headers()["retry-after"], "60", "{format:?}");
    }
}

#[tokio::test]
async fn without_a_word_both_are_sent() {
    let mut client = Client::of(policy("api", [Limit::new("tries", Quota::per_minute(1))]));
    assert_eq!(sent(&client.send().await), names(HeaderFormat::Both));
}
