//! Requests from which no key can be drawn: answered as the policy says, never with 500, and never
//! let around a limit.

use http::{Request, Response, StatusCode};
use tollgate::{
    ApiKey, Decision, Global, Header, KeyExtractor, Limit, OnMissingKey, Outcome, PeerIp, Policy,
    PolicyBuilder, Quota, RateLimit, RateLimitLayer, Rejection, ResponseBody,
};
use tower::{Layer, Service, ServiceExt};
use tracing::Level;

use crate::support::{Log, Probe, limiter};

#[derive(Clone)]
struct Limited(RateLimit<Probe>);

fn tenant() -> Header {
    Header::from_static("x-tenant")
}

fn policy(key: impl KeyExtractor) -> PolicyBuilder {
    Policy::new("api").limit(key, Limit::new("tries", Quota::per_minute(2)))
}

fn limited(policy: PolicyBuilder, on_missing_key: OnMissingKey) -> Limited {
    let policy = policy.on_missing_key(on_missing_key).build().unwrap();
    Limited(RateLimitLayer::with_policy(policy, &limiter().0).layer(Probe::new()))
}

type Lines = &'static [(&'static str, &'static str)];

const NONE: Lines = &[];
const TWICE: Lines = &[("x-tenant", "a"), ("x-tenant", "b")];
const A: Lines = &[("x-tenant", "a")];

impl Limited {
    async fn send(&mut self, lines: Lines) -> Response<ResponseBody<String>> {
        let mut request = Request::builder();
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let service = self.0.ready().await.unwrap();
        service.call(request.body(()).unwrap()).await.unwrap()
    }

    async fn statuses(&mut self, lines: Lines, count: usize) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..count {
            statuses.push(self.send(lines).await.status().as_u16());
        }
        statuses
    }

    fn calls(&self) -> usize {
        self.0.get_ref().calls()
    }
}

#[tokio::test]
async fn they_are_rejected_with_the_status_of_the_extractor_and_cost_nothing() {
    let mut service = limited(policy(tenant()), OnMissingKey::Reject);
    assert_eq!(service.statuses(NONE, 5).await, [400; 5]);
    assert_eq!(service.calls(), 0);
    assert_eq!(service.statuses(A, 3).await, [200, 200, 429]);

    let mut service = limited(policy(ApiKey::header("x-api-key")), OnMissingKey::Reject);
    let response = service.send(NONE).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(!response.headers().contains_key("retry-after"));
    let Some(Rejection::NoKey(error)) = response.extensions().get() else { panic!("no reason") };
    assert!(error.is_missing());
    assert_eq!(service.calls(), 0);
}

#[tokio::test]
async fn they_are_rejected_with_a_status_of_the_policys_own() {
    let mut service = limited(policy(tenant()), OnMissingKey::RejectWith(StatusCode::FORBIDDEN));
    assert_eq!(service.statuses(NONE, 2).await, [403; 2]);
    assert_eq!(service.statuses(TWICE, 2).await, [403; 2]);
    assert_eq!(service.calls(), 0);
}

#[tokio::test]
async fn they_skip_the_limit_but_malformed_ones_never_do() {
    let mut service = limited(policy(tenant()), OnMissingKey::Skip);
    assert_eq!(service.statuses(NONE, 9).await, [200; 9]);
    let response = service.send(NONE).await;
    let decision: &Decision = response.extensions().get().unwrap();
    assert_eq!(decision.outcome(), Outcome::Skipped);
    assert_eq!(service.statuses(TWICE, 3).await, [400; 3]);
    assert_eq!(service.statuses(A, 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn a_limit_that_is_skipped_leaves_the_other_limits_standing() {
    let all = Limit::new("all", Quota::per_minute(3));
    let mut service = limited(policy(tenant()).limit(Global, all), OnMissingKey::Skip);
    assert_eq!(service.statuses(NONE, 1).await, [200]);
    assert_eq!(service.statuses(A, 3).await, [200, 200, 429]);
    assert_eq!(service.statuses(NONE, 1).await, [429]);
}

#[tokio::test]
async fn they_share_one_bucket_with_each_other_and_with_nobody_else() {
    let mut service = limited(policy(tenant()), OnMissingKey::Anonymous);
    assert_eq!(service.statuses(NONE, 1).await, [200]);
    assert_eq!(service.statuses(NONE, 2).await, [200, 429]);
    // What is malformed is not absent: it is on no list of denied callers.
    assert_eq!(service.statuses(TWICE, 1).await, [400]);
    let alike: [Lines; 2] = [&[("x-tenant", "anonymous")], &[("x-tenant", "anonymous:")]];
    for lines in alike {
        assert_eq!(service.statuses(lines, 3).await, [200, 200, 429]);
    }
}

#[tokio::test]
async fn a_service_that_does_not_tell_the_peer_answers_400_and_its_log_says_once_what_to_add() {
    for on_missing_key in [OnMissingKey::Reject, OnMissingKey::Skip] {
        let log = Log::start();
        let mut service = limited(policy(PeerIp), on_missing_key);
        assert_eq!(service.statuses(NONE, 50).await, [400; 50]);
        assert_eq!(service.clone().statuses(NONE, 50).await, [400; 50]);
        assert_eq!(service.calls(), 0);
        let notices = log.notices();
        let [(Level::ERROR, text)] = notices.as_slice() else { panic!("not one: {notices:?}") };
        let line = "app.into_make_service_with_connect_info::<SocketAddr>()";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("policy=api"), "{text}");
    }
}

#[tokio::test]
async fn each_limiter_of_a_process_says_so_for_itself() {
    let log = Log::start();
    for _ in 0..2 {
        limited(policy(PeerIp), OnMissingKey::Reject).statuses(NONE, 9).await;
    }
    assert_eq!(log.notices().len(), 2);
}

#[tokio::test]
async fn what_is_wrong_with_the_service_is_not_for_its_clients() {
    use http_body_util::BodyExt;

    let response = limited(policy(PeerIp), OnMissingKey::Reject).send(NONE).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "the service cannot tell who is asking");
}

#[tokio::test]
async fn clients_that_send_no_key_do_not_fill_the_log() {
    let log = Log::start();
    let mut service = limited(policy(tenant()), OnMissingKey::Reject);
    service.statuses(NONE, 50).await;
    service.statuses(TWICE, 50).await;
    assert_eq!(log.notices(), []);
}
