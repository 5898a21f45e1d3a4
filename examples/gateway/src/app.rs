//! What is served: the routes of now, which may be others for the next request.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
    routing::get,
};
use tollgate::Limiter;

use crate::routes::Routes;

/// Routes that can be replaced. Each request is answered by those that were there when it came.
#[derive(Clone)]
pub(crate) struct App(Arc<ArcSwap<Routes>>);

impl App {
    pub(crate) fn new(routes: Routes) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(routes)))
    }

    pub(crate) fn load(&self) -> Arc<Routes> {
        self.0.load_full()
    }

    pub(crate) fn replace(&self, routes: Routes) {
        self.0.store(Arc::new(routes));
    }

    pub(crate) fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }
}

async fn answer(State(app): State<App>, request: Request) -> Response<Body> {
    app.load().answer(request).await
}

/// Whether the process runs, and whether it can check limits.
pub(crate) fn checks(limiter: &Limiter) -> Router {
    let (healthy, ready) = (limiter.clone(), limiter.clone());
    Router::new()
        .route("/healthz", get(async move || health(&healthy)))
        .route("/readyz", get(async move || readiness(&ready).await))
}

/// The process runs, and needs no restart, whatever Redis does.
fn health(limiter: &Limiter) -> String {
    format!("ok, breaker {}\n", limiter.health().breaker().as_str())
}

/// Whether the limits can be checked just now.
async fn readiness(limiter: &Limiter) -> (StatusCode, String) {
    match limiter.ready().await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {error}\n")),
    }
}
