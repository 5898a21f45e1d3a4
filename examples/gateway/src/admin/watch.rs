//! What the page learns of each request: how long it took to decide, and whom a denial is about.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use axum::http::{Request, Response};
use pin_project_lite::pin_project;
use tollgate::Rejection;
use tower_layer::Layer;
use tower_service::Service;

use super::board::Board;

/// Watches layers that limit, if there is somebody to watch for.
#[derive(Clone, Default)]
pub(crate) struct Watch(Option<Arc<Board>>);

impl Watch {
    pub(super) fn new(board: &Arc<Board>) -> Self {
        Self(Some(Arc::clone(board)))
    }

    /// This layer, watched: from when a request comes to it until it lets it pass or rejects it.
    pub(crate) const fn around<L>(self, layer: L) -> Watched<L> {
        Watched { layer, watch: self }
    }

    fn start(&self) -> Option<Instant> {
        #[expect(clippy::disallowed_methods, reason = "what is measured is the time itself")]
        self.0.as_ref().map(|_| Instant::now())
    }
}

/// A layer that is watched.
#[derive(Clone)]
pub(crate) struct Watched<L> {
    layer: L,
    watch: Watch,
}

impl<S, L: Layer<Inside<S>>> Layer<S> for Watched<L> {
    type Service = Outside<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        let inner = self.layer.layer(Inside { inner, watch: self.watch.clone() });
        Outside { inner, watch: self.watch.clone() }
    }
}

/// When a request came to the layer.
#[derive(Clone, Copy)]
struct Begun(Instant);

/// Marks a rejection that was noted, so that one of a layer further in is noted once.
#[derive(Clone, Copy)]
struct Noted;

/// Stands outside of the layer.
#[derive(Clone)]
pub(crate) struct Outside<S> {
    inner: S,
    watch: Watch,
}

impl<S, A, B> Service<Request<A>> for Outside<S>
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
        let begun = self.watch.start();
        if let Some(begun) = begun {
            request.extensions_mut().insert(Begun(begun));
        }
        Answering { inner: self.inner.call(request), watch: self.watch.clone(), begun }
    }
}

pin_project! {
    /// A response to come.
    pub(crate) struct Answering<F> {
        #[pin]
        inner: F,
        watch: Watch,
        begun: Option<Instant>,
    }
}

impl<F: Future<Output = Result<Response<B>, E>>, B, E> Future for Answering<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.inner.poll(cx));
        if let (Some(board), Some(begun), Ok(response)) = (&this.watch.0, this.begun, &mut answer)
            && let Some(rejection) = response.extensions().get()
            && response.extensions().get::<Noted>().is_none()
        {
            board.decided(begun.elapsed());
            if let Rejection::Limited(decision) = rejection {
                board.denied(decision);
            }
            response.extensions_mut().insert(Noted);
        }
        Poll::Ready(answer)
    }
}

/// Stands inside of the layer, where requests come that it lets pass.
#[derive(Clone)]
pub(crate) struct Inside<S> {
    inner: S,
    watch: Watch,
}

impl<S: Service<Request<A>>, A> Service<Request<A>> for Inside<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        if let Some(board) = &self.watch.0
            && let Some(Begun(begun)) = request.extensions_mut().remove()
        {
            board.decided(begun.elapsed());
        }
        self.inner.call(request)
    }
}
