use std::{fs, net::SocketAddr, path::Path, time::Duration};

use http::{Request, Response};
use tollgate::{
    Decision, Limiter, ManualClock, MemoryStore, PolicyHandle, PolicySet, RateLimit,
    RateLimitLayer, ResponseBody, StoreErrorKind, Tier,
    config::{self, Extractors},
};
use tower::{Layer, Service, ServiceExt};

use super::extractors;
use crate::support::{Broken, Flaky, Probe, memory, secs};

/// A service under policies from a text, with a clock that stands still.
pub(super) struct World {
    pub(super) service: RateLimit<Probe>,
    pub(super) store: Flaky,
    pub(super) clock: ManualClock,
}

impl World {
    pub(super) fn of(text: &str) -> Self {
        Self::of_with(text, &extractors())
    }

    pub(super) fn of_with(text: &str, extractors: &Extractors) -> Self {
        let policies = config::from_toml(text, extractors);
        Self::with(policies.unwrap_or_else(|error| panic!("{error}")))
    }

    /// One policy `api` for all requests, with one limit `requests`, and what else is said of it.
    pub(super) fn of_limit(limit: &str) -> Self {
        Self::of_policy("", limit)
    }

    pub(super) fn of_policy(policy: &str, limit: &str) -> Self {
        Self::of(&format!(
            "policy = [{{ name = 'api', otherwise = true, {policy} \
             limit = [{{ name = 'requests', {limit} }}] }}]"
        ))
    }

    /// Under a file of the examples.
    pub(super) fn of_example(name: &str, extractors: &Extractors) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policies");
        let policies = config::from_file(root.join(name), extractors);
        Self::with(policies.unwrap_or_else(|error| panic!("{error}")))
    }

    fn with(policies: PolicySet) -> Self {
        let (memory, clock) = memory();
        let store = Flaky::new(memory);
        let fallback = MemoryStore::builder().clock(clock.clone()).build();
        let limiter = Limiter::builder(store.clone()).fallback(fallback).build();
        let layer = RateLimitLayer::with_policies(PolicyHandle::new(policies), &limiter);
        Self { service: layer.layer(Probe::new()), store, clock }
    }

    pub(super) async fn send(&mut self, request: &Request<()>) -> Response<ResponseBody<String>> {
        let Ok(response) = self
            .service
            .ready()
            .await
            .unwrap_or_else(|never| match never {})
            .call(request.clone())
            .await;
        response
    }

    pub(super) async fn status(&mut self, request: &Request<()>) -> u16 {
        self.send(request).await.status().as_u16()
    }

    /// How many of these requests pass at once, of at most 2,000, and the status of the next one.
    pub(super) async fn passing(&mut self, request: &Request<()>) -> (u64, u16) {
        for passed in 0..2_000 {
            let status = self.status(request).await;
            if status != 200 {
                return (passed, status);
            }
        }
        (2_000, 200)
    }

    /// The same, where the next one is one too many.
    pub(super) async fn passes(&mut self, request: &Request<()>) -> u64 {
        let (passed, status) = self.passing(request).await;
        assert!(matches!(status, 200 | 429), "{status}");
        passed
    }

    /// Which limit tells the client that it has the least.
    pub(super) async fn tells(&mut self, request: &Request<()>) -> String {
        let response = self.send(request).await;
        let decision = response.extensions().get::<Decision>().expect("a decision");
        decision.binding().map(|verdict| verdict.name().to_owned()).unwrap_or_default()
    }

    /// After exactly this time a request passes again.
    pub(super) async fn frees_after(&mut self, request: &Request<()>, span: Duration) {
        let almost = span - Duration::from_micros(1);
        self.clock.advance(almost);
        assert_ne!(self.status(request).await, 200, "freed before {span:?}");
        self.clock.advance(span - almost);
        assert_eq!(self.status(request).await, 200, "not freed after {span:?}");
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.clock.advance(secs(seconds));
    }

    pub(super) fn fail(&self, kind: StoreErrorKind) {
        self.store.break_(Broken::Now(kind));
    }
}

/// A request of somebody.
pub(super) fn get(path: &str) -> Request<()> {
    request("GET", path)
}

pub(super) fn request(method: &str, path: &str) -> Request<()> {
    let request = Request::builder().method(method).uri(path);
    from(request.body(()).unwrap(), "192.0.2.7")
}

pub(super) fn from(mut request: Request<()>, address: &str) -> Request<()> {
    request.extensions_mut().insert(SocketAddr::new(address.parse().unwrap(), 4711));
    request
}

pub(super) fn saying(mut request: Request<()>, header: &'static str, value: &str) -> Request<()> {
    request.headers_mut().insert(header, value.parse().unwrap());
    request
}

pub(super) fn of_tier(mut request: Request<()>, tier: &str) -> Request<()> {
    request.extensions_mut().insert(Tier::new(tier));
    request
}

/// A folder with these files.
pub(super) fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}
