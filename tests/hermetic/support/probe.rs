use std::{
    convert::Infallible,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use tollgate::Decision;
use tower::Service;

/// A service that counts its calls, and panics when it is called without having been polled ready.
/// A clone was not polled.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    ready: bool,
    calls: Arc<AtomicUsize>,
    status: StatusCode,
    headers: HeaderMap,
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            calls: Arc::clone(&self.calls),
            status: self.status,
            headers: self.headers.clone(),
        }
    }
}

impl Probe {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A service that answers with these.
    pub(crate) fn answering(status: StatusCode, headers: &[(&'static str, &'static str)]) -> Self {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Self { status, headers: headers.iter().map(line).collect(), ..Self::default() }
    }

    /// Calls of this service and of all its clones.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Service<Request<()>> for Probe {
    /// What the decision in the request's extensions says is left.
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
        let decision = request.extensions().get::<Decision>().expect("a decision in the request");
        let mut response = Response::new(format!("{:?}", decision.remaining()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        ready(Ok(response))
    }
}
