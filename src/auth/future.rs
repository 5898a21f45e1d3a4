use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::gate::{Gate, Looking};
use crate::{
    http::{ResponseBody, turn_away},
    key::RequestHead,
};

pin_project! {
    /// The response of an [`Auth`](crate::auth::Auth) service.
    pub struct AuthFuture<S, B, L>
    where
        S: Service<Request<B>>,
        L: Gate,
    {
        #[pin]
        state: State<S, B, L>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B, L>
    where
        S: Service<Request<B>>,
        L: Gate,
    {
        Looking {
            looking: Looking<L>,
            // Taken when it is found.
            call: Option<(S, Request<B>)>,
            gate: L,
        },
        Calling {
            #[pin]
            future: S::Future,
        },
        TurnedAway {
            response: Option<Response<Bytes>>,
        },
    }
}

impl<S, B, L> AuthFuture<S, B, L>
where
    S: Service<Request<B>>,
    L: Gate,
{
    pub(super) const fn looking(
        looking: Looking<L>,
        ready: S,
        request: Request<B>,
        gate: L,
    ) -> Self {
        Self { state: State::Looking { looking, call: Some((ready, request)), gate } }
    }

    pub(super) const fn calling(future: S::Future) -> Self {
        Self { state: State::Calling { future } }
    }

    pub(super) const fn turned_away(response: Response<Bytes>) -> Self {
        Self { state: State::TurnedAway { response: Some(response) } }
    }
}

impl<S, B, L, R> Future for AuthFuture<S, B, L>
where
    S: Service<Request<B>, Response = Response<R>>,
    L: Gate,
{
    type Output = Result<Response<ResponseBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Looking { looking, call, gate } => {
                    // A future that is polled after it was ready never is again.
                    if call.is_none() {
                        return Poll::Pending;
                    }
                    let found = ready!(looking.as_mut().poll(cx));
                    let Some((mut service, mut request)) = call.take() else {
                        return Poll::Pending;
                    };
                    match gate.resume(RequestHead::new(&request), found) {
                        Ok(identity) => {
                            gate.admit(identity, request.extensions_mut());
                            State::Calling { future: service.call(request) }
                        }
                        Err(error) => {
                            let head = RequestHead::new(&request);
                            let response = turn_away(gate.responder(), error, head);
                            State::TurnedAway { response: Some(response) }
                        }
                    }
                }
                StateProjection::Calling { future } => {
                    let response = ready!(future.poll(cx))?;
                    return Poll::Ready(Ok(response.map(ResponseBody::service)));
                }
                StateProjection::TurnedAway { response } => {
                    return match response.take() {
                        Some(response) => Poll::Ready(Ok(response.map(ResponseBody::answer))),
                        None => Poll::Pending,
                    };
                }
            };
            state.set(next);
        }
    }
}

impl<S, B, L> fmt::Debug for AuthFuture<S, B, L>
where
    S: Service<Request<B>>,
    L: Gate,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthFuture").finish_non_exhaustive()
    }
}
