//! The service inside is left as it is.

use std::{
    future::{Ready, ready},
    task::{Context, Poll},
};

use http::{Request, Response};
use tollgate::{ApiKeyLayer, ApiKeys};
use tower::{Layer, Service, ServiceExt};

use super::request;

#[derive(Clone, Debug, PartialEq)]
struct Fault(&'static str);

/// A service that fails, or is gone.
#[derive(Clone, Debug)]
struct Failing {
    gone: bool,
}

impl Service<Request<()>> for Failing {
    type Response = Response<String>;
    type Error = Fault;
    type Future = Ready<Result<Response<String>, Fault>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(if self.gone { Err(Fault("gone")) } else { Ok(()) })
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Err(Fault("failed")))
    }
}

fn layer() -> ApiKeyLayer {
    let keys = ApiKeys::builder().key(ApiKeys::digest("k"), "acme", None).build().unwrap();
    ApiKeyLayer::new(keys)
}

#[tokio::test]
async fn an_error_of_the_service_passes_through_unchanged() {
    let mut service = layer().layer(Failing { gone: false });
    let known = request(&[("x-api-key", "k")]);
    let answer = service.ready().await.unwrap().call(known).await;
    assert_eq!(answer.map(|_| ()), Err(Fault("failed")));
    let turned_away = service.ready().await.unwrap().call(request(&[])).await;
    assert_eq!(turned_away.unwrap().status(), 401);
    service.get_mut().gone = true;
    assert_eq!(service.ready().await.err(), Some(Fault("gone")));
    assert!(service.get_ref().gone);
    assert!(service.into_inner().gone);
}
