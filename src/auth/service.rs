use std::{
    fmt, mem,
    task::{Context, Poll},
};

use http::{Request, Response};
use tower_service::Service;

use super::{
    AuthFuture,
    gate::{Check, Gate},
};
use crate::{
    http::{ResponseBody, turn_away},
    key::RequestHead,
};

/// A service whose callers are authenticated, made by a layer `L` such as
/// [`ApiKeyLayer`](crate::ApiKeyLayer).
///
/// Its error is the inner service's: that a request is turned away is a response, never an error.
#[derive(Clone)]
pub struct Auth<S, L> {
    inner: S,
    gate: L,
}

impl<S, L> Auth<S, L> {
    pub(super) const fn new(inner: S, gate: L) -> Self {
        Self { inner, gate }
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

impl<S, L, B, R> Service<Request<B>> for Auth<S, L>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    L: Gate,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = AuthFuture<S, B, L>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.gate.check(RequestHead::new(&request)) {
            Check::Done(Ok(identity)) => {
                self.gate.admit(identity, request.extensions_mut());
                AuthFuture::calling(self.inner.call(request))
            }
            Check::Done(Err(error)) => {
                let head = RequestHead::new(&request);
                AuthFuture::turned_away(turn_away(self.gate.responder(), error, head))
            }
            Check::Look(looking) => {
                // The instance that was polled ready is the one to be called.
                let next = self.inner.clone();
                let ready = mem::replace(&mut self.inner, next);
                AuthFuture::looking(looking, ready, request, self.gate.clone())
            }
        }
    }
}

impl<S: fmt::Debug, L: fmt::Debug> fmt::Debug for Auth<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("inner", &self.inner).field("layer", &self.gate).finish()
    }
}
