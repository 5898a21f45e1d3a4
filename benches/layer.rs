//! What the layer adds to a service, with the states in memory: each figure includes making the
//! request and dropping the response, so the layer's own is the difference to `bare`.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say so and end")]

use std::{
    convert::Infallible,
    future::{Ready, ready},
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use tollgate::{HeaderFormat, Limiter, MemoryStore, PeerIp, Policy, Quota, RateLimitLayer};
use tower::{Layer as _, Service, service_fn};

const KEYS: u32 = 10_000;
/// Never exhausted by a benchmark.
const WIDE: Quota = Quota::per_day(86_400).burst(300_000_000);
/// Exhausted by the first request of each key.
const NARROW: Quota = Quota::per_day(1);

const FORMATS: [(&str, HeaderFormat); 3] = [
    ("no headers", HeaderFormat::None),
    ("X-RateLimit", HeaderFormat::XRateLimit),
    ("all headers", HeaderFormat::Both),
];

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

type Body = Full<Bytes>;

fn layer(c: &mut Criterion) {
    let mut group = c.benchmark_group("layer");
    group.throughput(Throughput::Elements(1));
    let mut bare = service_fn(hello);
    let mut peers = peers();
    group.bench_function("bare", |b| b.iter(|| send(&mut bare, peers())));
    for (outcome, quota) in [("allowed", WIDE), ("denied", NARROW)] {
        for (name, format) in FORMATS {
            let mut limited = limit(quota, format).layer(service_fn(hello));
            for _ in 0..KEYS {
                drop(send(&mut limited, peers()));
            }
            group.bench_function(format!("{outcome}, {name}"), |b| {
                b.iter(|| send(&mut limited, peers()));
            });
        }
    }
    group.finish();
}

fn limit(quota: Quota, format: HeaderFormat) -> RateLimitLayer {
    let limit = tollgate::Limit::new("burst", quota);
    let policy = Policy::new("api").limit(PeerIp, limit).build().expect("a valid policy");
    RateLimitLayer::with_policy(policy, &Limiter::new(MemoryStore::new())).headers(format)
}

/// All addresses in turn, out of order.
fn peers() -> impl FnMut() -> SocketAddr {
    let mut at = 0;
    move || {
        at = (at + 7_919) % KEYS;
        SocketAddr::from(((0x0a00_0000_u32 + at).to_be_bytes(), 4711))
    }
}

fn hello(_: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"hello")));
    response.headers_mut().insert(CONTENT_TYPE, PLAIN);
    ready(Ok(response))
}

/// Sends one request, and drives it as a server would; nothing here waits.
fn send<S: Service<Request<Body>>>(
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

criterion_group!(benches, layer);
criterion_main!(benches);
