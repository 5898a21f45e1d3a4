//! Through a tower service, as a server would ask: with a request, and to a response.

use std::{
    convert::Infallible,
    future::{Ready, poll_fn, ready},
    net::SocketAddr,
};

use axum::{body::Body, extract::ConnectInfo};
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use tollgate::{HeaderFormat, Limit, Limiter, PeerIp, Policy, RateLimitLayer};
use tower::{Service, service_fn, util::ServiceFn};

use super::Contender;

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

/// A service, whatever layer is around it.
#[derive(Clone)]
pub(crate) struct Layered<S>(pub(crate) S);

impl<S, B> Contender for Layered<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    async fn check(&mut self, key: usize) -> bool {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(ConnectInfo(peer(key)));
        let Ok(()) = poll_fn(|cx| self.0.poll_ready(cx)).await;
        let Ok(response) = self.0.call(request).await;
        match response.status() {
            StatusCode::OK => true,
            StatusCode::TOO_MANY_REQUESTS => false,
            status => panic!("the limiter failed: {status}"),
        }
    }
}

fn peer(key: usize) -> SocketAddr {
    SocketAddr::from(((0x0a00_0000 + key as u32).to_be_bytes(), 4711))
}

type Hello = fn(Request<Body>) -> Ready<Result<Response<Body>, Infallible>>;

/// The service inside of all layers.
pub(crate) fn bare() -> ServiceFn<Hello> {
    service_fn(hello)
}

fn hello(_: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    let mut response = Response::new(Body::from("hello"));
    response.headers_mut().insert(CONTENT_TYPE, PLAIN);
    ready(Ok(response))
}

/// This crate's layer, with one limit by address.
pub(crate) fn layer(limiter: &Limiter, limit: Limit, headers: HeaderFormat) -> RateLimitLayer {
    let policy = Policy::new("api").limit(PeerIp, limit).build().expect("a valid policy");
    RateLimitLayer::with_policy(policy, limiter).headers(headers)
}
