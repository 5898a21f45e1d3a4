//! What a request meets on one route, from the outside in: CORS, the timeout, limits before
//! authentication, authentication, limits, and the upstream.

use std::time::Duration;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header::CACHE_CONTROL},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use tokio::time::timeout;
use tollgate::{PolicySet, RateLimitLayer};
use toml::Spanned;

use super::{Around, Auth, Limits, Upstreams, cors};
use crate::{
    config::{Config, FileError, RouteConfig},
    log::X_REQUEST_ID,
};

const TIMEOUTS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3_600));

/// What routes are made of.
pub(super) struct Parts<'a> {
    pub(super) limits: &'a Limits,
    pub(super) upstreams: &'a Upstreams,
    pub(super) auth: &'a Auth,
    pub(super) around: &'a Around,
}

impl Parts<'_> {
    pub(super) fn build(
        &self,
        config: &Config,
        route: &Spanned<RouteConfig>,
    ) -> Result<Router, FileError> {
        let own = route.get_ref();
        let mut router = self.upstreams.service(config, &own.upstream)?;
        if own.policy.is_some() {
            router = router.layer(self.limited(&self.limits.routes));
        }
        router = self.auth.around(router, config, route)?;
        if let Some(name) = &own.before_auth {
            if own.auth.is_none() {
                let what = "there is no `auth` that it could be before: that is a `policy`";
                return Err(config.fault(name, what));
            }
            router = router.layer(self.limited(&self.limits.before_auth));
        }
        if let Some(time) = &own.timeout {
            let ((least, most), given) = (TIMEOUTS, time.get_ref().0);
            if !(least..=most).contains(&given) {
                let what = format!("a timeout of {given:?}: it must be {least:?} to {most:?}");
                return Err(config.fault(time, what));
            }
            router = router.layer(from_fn_with_state(given, within));
        }
        if let Some(own) = &own.cors {
            let limiter =
                RateLimitLayer::with_policies(self.limits.routes.clone(), &self.around.limiter);
            let mut exposed = limiter.exposed_headers();
            exposed.push(X_REQUEST_ID);
            let layer = cors::layer(own, exposed)
                .map_err(|what| config.fault(route, format!("cors: {what}")))?;
            router = router.layer(layer);
        }
        Ok(router)
    }

    fn limited(&self, policies: &PolicySet) -> crate::admin::Watched<RateLimitLayer> {
        let layer = RateLimitLayer::with_policies(policies.clone(), &self.around.limiter);
        self.around.watch.clone().around(layer)
    }
}

/// Answers by itself if nothing inside has begun to in time. What then comes may take its own.
async fn within(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    match timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let text = "there was no answer in time\n";
            let mut response = (StatusCode::GATEWAY_TIMEOUT, text).into_response();
            let no_store = HeaderValue::from_static("no-store");
            response.headers_mut().insert(CACHE_CONTROL, no_store);
            response
        }
    }
}
