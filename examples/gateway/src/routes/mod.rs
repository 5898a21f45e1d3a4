//! Routes: which requests go where, and what they meet on the way. All of it is built from one
//! configuration, and replaced at once by what is built from another.

mod auth;
mod changes;
mod cors;
mod explain;
mod jwt;
mod limits;
mod route;
mod upstreams;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    body::Body,
    http::{
        Method, Request, Response, StatusCode,
        header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN},
    },
};
use tollgate::{Limiter, PolicySet, RequestHead};
use tower::service_fn;
use tower_layer::Layer as _;
use tower_service::Service as _;

use self::{auth::Auth, limits::Limits, upstreams::Upstreams};
use crate::{
    admin::Watch,
    app,
    config::{Config, FileError},
    log::Requests,
    proxy::target,
};

/// What the routes of all configurations have in common.
#[derive(Clone)]
pub(crate) struct Around {
    limiter: Limiter,
    pub(crate) watch: Watch,
    page: Arc<OnceLock<SocketAddr>>,
}

impl Around {
    pub(crate) fn new(limiter: Limiter) -> Self {
        Self { limiter, watch: Watch::default(), page: Arc::default() }
    }

    /// From now on the demo tells where the live page is.
    pub(crate) fn show_page(&self, at: SocketAddr) {
        let _ = self.page.set(at);
    }

    pub(crate) fn page(&self) -> Option<SocketAddr> {
        self.page.get().copied()
    }
}

/// All routes of one configuration.
pub(crate) struct Routes {
    config: Config,
    requests: Requests,
    checks: Option<Router>,
    limits: Limits,
    upstreams: Upstreams,
    auth: Auth,
    /// By the texts by which the policies know them.
    by_text: HashMap<String, Served>,
    otherwise: Option<Served>,
}

#[derive(Clone)]
struct Served {
    service: Router,
    /// Whether it answers preflights.
    cors: bool,
}

impl Routes {
    /// Checks and builds all that the configuration says. What is as it was `before` is taken from there,
    /// with its connections.
    pub(crate) fn build(
        config: Config,
        around: &Around,
        before: Option<&Self>,
    ) -> Result<Self, FileError> {
        let limits = Limits::build(&config)?;
        let upstreams = Upstreams::build(&config, &around.page, before.map(|it| &it.upstreams))?;
        let auth = Auth::build(&config, before.map(|it| &it.auth))?;
        let (mut by_text, mut otherwise) = (HashMap::new(), None);
        let parts = route::Parts { limits: &limits, upstreams: &upstreams, auth: &auth, around };
        for route in &config.file.route {
            let cors = route.get_ref().cors.is_some();
            let served = Served { service: parts.build(&config, route)?, cors };
            for text in &route.get_ref().matches {
                by_text.insert(text.get_ref().clone(), served.clone());
            }
            if route.get_ref().otherwise {
                otherwise = Some(served);
            }
        }
        upstreams.are_used(&config)?;
        Auth::are_used(&config)?;
        let trusted = upstreams.trusted().to_vec();
        let requests = Requests::new(trusted, config.file.log.requests);
        let checks = config.file.checks.then(|| app::checks(&around.limiter));
        Ok(Self { config, requests, checks, limits, upstreams, auth, by_text, otherwise })
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// All policies, to be asked for by their names.
    pub(crate) fn policies(&self) -> PolicySet {
        self.limits.catalogue.clone()
    }

    pub(crate) async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let routes = Arc::clone(&self);
        let inner = service_fn(move |request| {
            let routes = Arc::clone(&routes);
            async move { Ok(routes.on(request).await) }
        });
        let answered: Result<_, std::convert::Infallible> =
            self.requests.layer(inner).call(request).await;
        answered.unwrap_or_else(|never| match never {})
    }

    async fn on(&self, request: Request<Body>) -> Response<Body> {
        if let Some(refusal) = target::refusal(&request) {
            return refusal.response();
        }
        let Some(mut service) = self.service(&request) else { return nothing() };
        service.call(request).await.unwrap_or_else(|never| match never {})
    }

    /// Limits, within the service, go by the same match.
    fn service(&self, request: &Request<Body>) -> Option<Router> {
        if let Some(checks) = &self.checks
            && matches!(request.uri().path(), "/healthz" | "/readyz")
        {
            return Some(checks.clone());
        }
        if let Some(method) = preflight(request) {
            let (mut asks, ()) = Request::new(()).into_parts();
            (asks.method, asks.uri) = (method, request.uri().clone());
            let route = self.served(&Request::from_parts(asks, ()));
            if let Some(served) = route.filter(|served| served.cors) {
                return Some(served.service.clone());
            }
        }
        self.served(request).map(|served| served.service.clone())
    }

    fn served<B>(&self, request: &Request<B>) -> Option<&Served> {
        match self.limits.routes.route_of(RequestHead::new(request)) {
            Some(text) => self.by_text.get(text),
            None => self.otherwise.as_ref(),
        }
    }
}

/// The method that a browser asks about, before it sends its request (Fetch standard, "CORS-preflight
/// request"). Its route is the one that has to answer.
fn preflight<B>(request: &Request<B>) -> Option<Method> {
    let headers = request.headers();
    let asks = *request.method() == Method::OPTIONS && headers.contains_key(ORIGIN);
    let method = headers.get(ACCESS_CONTROL_REQUEST_METHOD).filter(|_| asks)?;
    Method::from_bytes(method.as_bytes()).ok()
}

fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::from("there is nothing here\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
