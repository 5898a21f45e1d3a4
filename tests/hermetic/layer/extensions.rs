//! What was decided travels with the request and with the response.

use http::StatusCode;
use tollgate::{Decision, Limit, Outcome, Quota, Rejection, Source};

use crate::support::{Client, policy};

fn client() -> Client {
    Client::of(policy("api", [Limit::new("tries", Quota::per_minute(2))]))
}

#[tokio::test]
async fn a_handler_can_read_what_is_left() {
    use http_body_util::BodyExt;

    let mut client = client();
    for left in ["Some(1)", "Some(0)"] {
        let body = client.send().await.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, left);
    }
}

#[tokio::test]
async fn layers_further_out_can_read_the_decision_of_an_admitted_request() {
    let response = client().send().await;
    let decision: &Decision = response.extensions().get().unwrap();
    assert_eq!(decision.policy(), "api");
    assert_eq!(decision.outcome(), Outcome::Allowed);
    assert_eq!(decision.source(), Source::Memory);
    assert_eq!(decision.remaining(), Some(1));
    assert_eq!(decision.binding().unwrap().name(), "tries");
    assert_eq!(decision.retry_after(), None);
    assert!(response.extensions().get::<Rejection>().is_none());
}

#[tokio::test]
async fn layers_further_out_can_read_why_a_request_was_denied() {
    let mut client = client();
    let (_, response) = client.exhaust().await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let decision: &Decision = response.extensions().get().unwrap();
    assert_eq!(decision.outcome(), Outcome::Denied);
    let Some(Rejection::Limited(same)) = response.extensions().get::<Rejection>() else {
        panic!("no rejection in the extensions");
    };
    assert_eq!(same.now(), decision.now());
    assert_eq!(same.retry_after().unwrap().as_secs(), 30);
}
