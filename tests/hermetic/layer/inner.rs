//! The inner service keeps its error type and its say about when it is ready.

use std::{
    fmt,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};
use tollgate::{Global, MemoryStore, Quota, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

#[derive(Debug, PartialEq)]
enum Fault {
    Unready,
    Refused,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A service that is busy until told, and fails as told.
#[derive(Clone, Default)]
struct Moody {
    busy: Arc<AtomicBool>,
    gone: Arc<AtomicBool>,
}

impl Service<Request<&'static str>> for Moody {
    type Response = Response<String>;
    type Error = Fault;
    type Future = Ready<Result<Response<String>, Fault>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if self.gone.load(Ordering::SeqCst) {
            return Poll::Ready(Err(Fault::Unready));
        }
        if self.busy.load(Ordering::SeqCst) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<&'static str>) -> Self::Future {
        let answer = match request.into_body() {
            "fail" => Err(Fault::Refused),
            body => Ok(Response::new(body.into())),
        };
        ready(answer)
    }
}

fn limited(inner: Moody, quota: Quota) -> tollgate::RateLimit<Moody> {
    RateLimitLayer::new(Global, quota, MemoryStore::new()).layer(inner)
}

#[tokio::test]
async fn an_error_of_the_service_passes_through_unchanged() {
    let mut service = limited(Moody::default(), Quota::per_day(2));
    let answer = service.ready().await.unwrap().call(Request::new("fail")).await;
    assert_eq!(answer.map(|_| ()), Err(Fault::Refused));
    let answer = service.ready().await.unwrap().call(Request::new("work")).await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_denial_is_a_response_where_the_service_has_errors_of_its_own() {
    let mut service = limited(Moody::default(), Quota::per_day(1));
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let answer = service.ready().await.unwrap().call(Request::new("work")).await;
        statuses.push(answer.unwrap().status());
    }
    assert_eq!(statuses, [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]);
}

#[tokio::test]
async fn a_service_that_is_busy_or_gone_says_so_through_the_layer() {
    let inner = Moody::default();
    let mut service = limited(inner.clone(), Quota::per_day(1));
    let mut poll = async || std::future::poll_fn(|cx| Poll::Ready(service.poll_ready(cx))).await;
    inner.busy.store(true, Ordering::SeqCst);
    assert!(poll().await.is_pending());
    inner.busy.store(false, Ordering::SeqCst);
    assert!(matches!(poll().await, Poll::Ready(Ok(()))));
    inner.gone.store(true, Ordering::SeqCst);
    assert!(matches!(poll().await, Poll::Ready(Err(Fault::Unready))));
}

#[tokio::test]
async fn the_service_inside_can_be_reached_and_taken_out() {
    let mut service = limited(Moody::default(), Quota::per_day(1));
    service.get_mut().busy.store(true, Ordering::SeqCst);
    assert!(service.get_ref().busy.load(Ordering::SeqCst));
    assert!(service.into_inner().busy.load(Ordering::SeqCst));
}
