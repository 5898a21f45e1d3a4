//! What is served, and how it is limited.

use std::{error::Error, net::SocketAddr};

use axum::{
    Router,
    http::{HeaderName, StatusCode, header::RETRY_AFTER},
    routing::get,
};
use tollgate::{
    ClientIp, Limit, Limiter, Policy, PolicyHandle, RateLimitLayer, RedisStore, StoreError,
    StoreErrorKind,
};
use tower_http::cors::{Any, CorsLayer};

use crate::{admin::Watch, args::Args, demo};

/// The limit of the demo page.
pub(crate) fn policy(args: &Args) -> Result<Policy, Box<dyn Error>> {
    let client = if args.trust.is_empty() {
        ClientIp::peer()
    } else {
        ClientIp::x_forwarded_for(&args.trust)?
    };
    let policy = Policy::new("gateway")
        .limit(client, Limit::new("requests", args.limit))
        .on_failure(args.on_failure)
        .build()?;
    Ok(policy)
}

/// A limiter over the Redis at `url`, also if it cannot be reached yet: that may change, and until
/// then the policy says what happens.
pub(crate) async fn redis(url: &str) -> Result<Limiter, StoreError> {
    let builder = RedisStore::builder(url);
    let store = match builder.clone().connect().await {
        Ok(store) => store,
        Err(error) => {
            // A wrong URL stays wrong.
            let store = builder.connect_lazy()?;
            let text = "Redis cannot be used yet; starting all the same, and trying again";
            if error.kind() == StoreErrorKind::Misconfigured {
                tracing::error!(%error, "{text}");
            } else {
                tracing::warn!(%error, "{text}");
            }
            store
        }
    };
    Ok(Limiter::new(store))
}

/// The demo page, limited, and the checks, which are not.
pub(crate) fn router(
    policies: &PolicyHandle,
    limiter: &Limiter,
    watch: Watch,
    admin: Option<SocketAddr>,
) -> Router {
    Router::new()
        .route("/", get(demo::page))
        .with_state(admin)
        .layer(watch.around(RateLimitLayer::with_policies(policies, limiter)))
        // A layer stands around the routes above it only.
        .merge(checks(limiter))
        // Outside of the limiter, so that browsers may read denials, and preflights are not counted.
        .layer(cors())
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

fn cors() -> CorsLayer {
    let limits = [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "ratelimit",
        "ratelimit-policy",
    ];
    let exposed = limits.map(HeaderName::from_static).into_iter().chain([RETRY_AFTER]);
    CorsLayer::new()
        .allow_origin(Any)
        .allow_headers(Any)
        .expose_headers(exposed.collect::<Vec<_>>())
}
