//! Who calls: layers that authenticate, and what they let through.

#![allow(clippy::unwrap_used, reason = "only tests themselves are excused, not their helpers")]

mod api_key;
mod flood;
mod inner;
#[cfg(feature = "jwt")]
mod jwt;
mod tiers;

use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Collected};
use tollgate::{KeyExtractor, RequestHead, Tier, key, key::KnownKey};
use tower::{Layer, Service, ServiceExt};

use crate::support::field;

/// A service that counts its calls, says who called, and panics when it is called without having been
/// polled ready. A clone was not polled.
#[derive(Debug, Default)]
struct Inner {
    ready: bool,
    calls: Arc<AtomicUsize>,
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        Self { ready: false, calls: Arc::clone(&self.calls) }
    }
}

impl Inner {
    /// Calls of this service and of all its clones.
    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Service<Request<()>> for Inner {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
        self.calls.fetch_add(1, Ordering::SeqCst);
        ready(Ok(Response::new(caller(&request))))
    }
}

/// Who calls, as limits and handlers see it: `owner acme, tier pro`.
fn caller(request: &Request<()>) -> String {
    let mut caller = Vec::new();
    if let Some(known) = request.extensions().get::<KnownKey>() {
        let keys = key::known_key().extract(RequestHead::new(request)).unwrap();
        assert_eq!(keys[0], key::known_key().key(known.owner()));
        caller.push(format!("owner {}", known.owner()));
    }
    #[cfg(feature = "jwt")]
    if let Some(claims) = request.extensions().get::<tollgate::Claims>() {
        caller.push(format!("subject {}", claims.sub));
    }
    if let Some(tier) = request.extensions().get::<Tier>() {
        caller.push(format!("tier {}", tier.as_str()));
    }
    caller.join(", ")
}

/// What a client sees.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn challenge(&self) -> Option<&str> {
        field(&self.headers, "www-authenticate")
    }
}

/// Sends a request through a layer.
async fn send<L, R>(layer: &L, inner: &Inner, request: Request<()>) -> Answer
where
    L: Layer<Inner>,
    L::Service: Service<Request<()>, Response = Response<R>, Error = Infallible>,
    R: Body<Data = Bytes, Error = Infallible>,
{
    let Ok(response) = layer.layer(inner.clone()).oneshot(request).await;
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await.map(Collected::to_bytes);
    let body = String::from_utf8(body.into()).unwrap();
    Answer { status: parts.status, headers: parts.headers, body }
}

/// Header lines.
type Lines<'a> = &'a [(&'a str, &'a str)];

/// A request with these header lines.
fn request(lines: Lines<'_>) -> Request<()> {
    let builder = lines
        .iter()
        .fold(Request::get("/"), |request, (name, value)| request.header(*name, *value));
    builder.body(()).unwrap()
}
