use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use tower_service::Service;

use super::{ResponseBody, ResponseFuture, layer::Shared};
use crate::{key::RequestHead, limiter::Ruling};

/// A service whose requests are limited, made by a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// Its error is the inner service's: no denial, and no failure of the limiter, is ever an error.
#[derive(Clone)]
pub struct RateLimit<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> RateLimit<S> {
    pub(super) const fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, R> Service<Request<B>> for RateLimit<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let shared = &self.shared;
        let deciding = shared.decide(RequestHead::new(&request));
        match deciding.try_now() {
            Ok(Ruling::Admit(decision)) => {
                request.extensions_mut().insert(decision.clone());
                ResponseFuture::calling(self.inner.call(request), decision, Arc::clone(shared))
            }
            Ok(Ruling::Reject(rejection)) => {
                let response = shared.rejected(rejection, RequestHead::new(&request));
                ResponseFuture::rejected(response)
            }
            Err(deciding) => {
                // The instance that was polled ready is the one to be called.
                let next = self.inner.clone();
                let ready = mem::replace(&mut self.inner, next);
                ResponseFuture::deciding(deciding, ready, request, Arc::clone(shared))
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for RateLimit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .field("layer", &self.shared)
            .finish()
    }
}
