use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{ResponseBody, layer::Shared};
use crate::{
    decision::Decision,
    key::RequestHead,
    limiter::{Deciding, Ruling},
};

pin_project! {
    /// The response of a [`RateLimit`](crate::RateLimit) service.
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B>
    where
        S: Service<Request<B>>,
    {
        Deciding {
            deciding: Deciding,
            // Taken when the decision is there.
            call: Option<(S, Request<B>)>,
            shared: Arc<Shared>,
        },
        Calling {
            #[pin]
            future: S::Future,
            decision: Option<Decision>,
            shared: Arc<Shared>,
        },
        Rejected {
            response: Option<Response<Bytes>>,
        },
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    pub(super) const fn deciding(
        deciding: Deciding,
        ready: S,
        request: Request<B>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { state: State::Deciding { deciding, call: Some((ready, request)), shared } }
    }

    pub(super) const fn calling(
        future: S::Future,
        decision: Decision,
        shared: Arc<Shared>,
    ) -> Self {
        Self { state: State::Calling { future, decision: Some(decision), shared } }
    }

    pub(super) const fn rejected(response: Response<Bytes>) -> Self {
        Self { state: State::Rejected { response: Some(response) } }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<ResponseBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Deciding { deciding, call, shared } => {
                    let ruling = ready!(Pin::new(deciding).poll(cx));
                    // A future that is polled after it was ready never is again.
                    let Some((mut service, mut request)) = call.take() else {
                        return Poll::Pending;
                    };
                    let shared = Arc::clone(shared);
                    match ruling {
                        Ruling::Admit(decision) => {
                            request.extensions_mut().insert(decision.clone());
                            let future = service.call(request);
                            State::Calling { future, decision: Some(decision), shared }
                        }
                        Ruling::Reject(rejection) => {
                            let response = shared.rejected(rejection, RequestHead::new(&request));
                            State::Rejected { response: Some(response) }
                        }
                    }
                }
                StateProjection::Calling { future, decision, shared } => {
                    let response = ready!(future.poll(cx))?;
                    return match decision.take() {
                        Some(decision) => Poll::Ready(Ok(shared.admitted(decision, response))),
                        None => Poll::Pending,
                    };
                }
                StateProjection::Rejected { response } => {
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

impl<S, B> fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
