//! What is served, and how it is limited.

use std::{
    error::Error,
    net::{AddrParseError, IpAddr, SocketAddr},
};

use axum::{
    Router,
    http::{HeaderName, StatusCode, header::RETRY_AFTER},
    middleware,
    routing::get,
};
use ipnet::IpNet;
use tollgate::{
    ClientIp, Limit, Limiter, Policy, PolicyHandle, RateLimitLayer, RedisStore, StoreError,
    StoreErrorKind,
};
use tower_http::cors::{Any, CorsLayer};

use crate::{
    admin::Watch,
    args::Args,
    demo,
    log::X_REQUEST_ID,
    proxy::{Proxy, Upstream, target},
};

/// The limit of the upstream, or of the demo page.
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

/// The upstream as the arguments have it, if they do.
pub(crate) fn proxy(args: &Args) -> Result<Option<Proxy>, Box<dyn Error>> {
    let Some(url) = &args.upstream else { return Ok(None) };
    let upstream = Upstream {
        ca: args.upstream_ca.clone(),
        connect_timeout: args.connect_timeout,
        response_timeout: args.response_timeout,
        max_body: args.max_body,
        host: args.host.clone(),
        trusted: trusted(args)?,
        ..Upstream::new(url)
    };
    Ok(Some(upstream.build()?))
}

/// The proxies whose word is taken.
pub(crate) fn trusted(args: &Args) -> Result<Vec<IpNet>, AddrParseError> {
    // A socket of Unix, which is a proxy as well, is nothing that is listened on.
    let ranges = args.trust.iter().map(|range| range.trim()).filter(|range| *range != "unix:");
    ranges.map(network).collect()
}

fn network(text: &str) -> Result<IpNet, AddrParseError> {
    text.parse().or_else(|_| text.parse().map(|address: IpAddr| address.to_canonical().into()))
}

/// What is limited, and the checks, which are not.
pub(crate) fn router(
    policies: &PolicyHandle,
    limiter: &Limiter,
    proxy: Option<Proxy>,
    (watch, admin): (Watch, Option<SocketAddr>),
) -> Router {
    let proxies = proxy.is_some();
    let router = match proxy {
        Some(proxy) => Router::new().fallback(move |request| proxy.forward(request)),
        None => Router::new().route("/", get(demo::page)).with_state(admin),
    };
    let router = router
        .layer(watch.around(RateLimitLayer::with_policies(policies, limiter)))
        // A layer stands around the routes above it only.
        .merge(checks(limiter));
    if proxies {
        // Who may read its answers is for the upstream to say.
        return router.layer(middleware::from_fn(target::check));
    }
    // Outside of the limiter, so that browsers may read denials, and preflights are not counted.
    router.layer(cors())
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
    let others = [RETRY_AFTER, X_REQUEST_ID];
    let exposed = limits.map(HeaderName::from_static).into_iter().chain(others);
    CorsLayer::new()
        .allow_origin(Any)
        .allow_headers(Any)
        .expose_headers(exposed.collect::<Vec<_>>())
}
