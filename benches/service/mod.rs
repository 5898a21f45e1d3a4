//! A small service, the layer around it, and requests to it.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use tollgate::{HeaderFormat, Limit, Limiter, PeerIp, Policy, Quota, RateLimitLayer};
use tower::Service;

pub(crate) const KEYS: u32 = 10_000;
/// Never exhausted by a benchmark, and so slow to refill that states stay.
pub(crate) const WIDE: Quota = Quota::per_hour(6).burst(500_000);
/// Exhausted by the first request of each key.
pub(crate) const NARROW: Quota = Quota::per_day(1);

pub(crate) const FORMATS: [(&str, HeaderFormat); 3] = [
    ("no headers", HeaderFormat::None),
    ("X-RateLimit", HeaderFormat::XRateLimit),
    ("all headers", HeaderFormat::Both),
];

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

pub(crate) type Body = Full<Bytes>;

pub(crate) fn limit(limiter: &Limiter, quota: Quota, format: HeaderFormat) -> RateLimitLayer {
    let policy = Policy::new("api").limit(PeerIp, Limit::new("burst", quota)).build();
    RateLimitLayer::with_policy(policy.expect("a valid policy"), limiter).headers(format)
}

/// All addresses in turn, out of order.
pub(crate) fn peers() -> impl FnMut() -> SocketAddr {
    let mut at = 0;
    move || {
        at = (at + 7_919) % KEYS;
        SocketAddr::from(((0x0a00_0000_u32 + at).to_be_bytes(), 4711))
    }
}

pub(crate) fn hello(_: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"hello")));
    response.headers_mut().insert(CONTENT_TYPE, PLAIN);
    ready(Ok(response))
}

/// Sends one request, and drives it as a server would; nothing here waits.
pub(crate) fn send<S: Service<Request<Body>>>(
    service: &mut S,
    peer: SocketAddr,
) -> Poll<Result<S::Response, S::Error>> {
    let mut request = Request::new(Body::default());
    request.extensions_mut().insert(peer);
    let mut cx = Context::from_waker(Waker::noop());
    match service.poll_ready(&mut cx) {
        Poll::Ready(Ok(())) => pin!(service.call(request)).poll(&mut cx),
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        Poll::Pending => Poll::Pending,
    }
}
