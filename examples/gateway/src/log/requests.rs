//! The layer that gives each request its id.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    extract::ConnectInfo,
    http::{HeaderValue, Request, Response},
};
use ipnet::IpNet;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use super::{
    access::Access,
    id::{self, X_REQUEST_ID},
};

/// The target of the spans: nothing else has it.
pub(super) const SPANS: &str = "gateway::span";

/// Gives each request an id: to what is inside and to the client as `X-Request-Id`, and to all that is
/// logged meanwhile. Stands outside of everything.
#[derive(Clone)]
pub(crate) struct Requests {
    /// Proxies whose ids are kept.
    trusted: Arc<[IpNet]>,
    /// Whether there is a line for each request.
    lines: bool,
}

impl Requests {
    pub(crate) fn new(trusted: Vec<IpNet>, lines: bool) -> Self {
        Self { trusted: trusted.into(), lines }
    }
}

impl<S> Layer<S> for Requests {
    type Service = Named<S>;

    fn layer(&self, inner: S) -> Named<S> {
        Named { inner, requests: self.clone() }
    }
}

/// A service whose requests have ids.
#[derive(Clone)]
pub(crate) struct Named<S> {
    inner: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Named<S>
where
    S: Service<Request<A>, Response = Response<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|peer| peer.0.ip().to_canonical());
        let id = id::of(request.headers(), peer, &self.requests.trusted);
        // An error, so that it is there for lines of each level.
        let text = id.to_str().unwrap_or_default();
        let span = tracing::error_span!(target: SPANS, "request", id = %text);
        let access = self.requests.lines.then(|| Access::begin(&request, peer));
        request.headers_mut().insert(X_REQUEST_ID, id.clone());
        let inner = span.in_scope(|| self.inner.call(request));
        Answering { inner, span, id, access }
    }
}

pin_project! {
    /// A response to come.
    pub(crate) struct Answering<F> {
        #[pin]
        inner: F,
        span: Span,
        id: HeaderValue,
        access: Option<Access>,
    }
}

impl<F: Future<Output = Result<Response<B>, E>>, B, E> Future for Answering<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _within = this.span.enter();
        let mut answer = ready!(this.inner.poll(cx));
        if let Ok(response) = &mut answer {
            response.headers_mut().insert(X_REQUEST_ID, this.id.clone());
            if let Some(access) = this.access {
                access.log(response);
            }
        }
        Poll::Ready(answer)
    }
}
