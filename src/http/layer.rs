use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, Method, Response, StatusCode,
    header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, RETRY_AFTER},
};
use tower_layer::Layer;

use super::{
    RateLimit, ResponseBody,
    answer::{self, jitter},
    headers::{self, Fields, HeaderFormat, ResetFormat},
    respond::{Respond, Text},
};
use crate::{
    decision::Decision,
    key::{KeyExtractor, RequestHead},
    limiter::{Deciding, Limiter, Rejection},
    policy::{Limit, Policy, PolicyHandle},
    quota::Quota,
    store::Store,
};

/// Limits the requests to a service, by key, across all instances that share a store.
///
/// Not to be confused with `tower::limit::RateLimitLayer`, which lets one service in one process
/// handle so many requests per time, whoever sends them, and keeps the others waiting. This one
/// counts each client on its own, over all instances, and answers at once.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate::{MemoryStore, PeerIp, Quota, RateLimitLayer};
///
/// let app: Router = Router::new()
///     .route("/", get(|| async { "hello" }))
///     .layer(RateLimitLayer::new(PeerIp, Quota::per_minute(100), MemoryStore::new()));
/// ```
///
/// With several limits, other answers, or limits that several layers share:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{
///     HeaderFormat, Limit, Limiter, MemoryStore, PeerIp, Policy, Quota, RateLimitLayer, respond,
/// };
///
/// let limiter = Limiter::new(MemoryStore::new());
/// let policy = Policy::new("api")
///     .limit(PeerIp, Limit::new("burst", Quota::per_second(20)))
///     .limit(PeerIp, Limit::new("daily", Quota::per_day(10_000)))
///     .build()?;
/// let layer = RateLimitLayer::with_policy(policy, &limiter)
///     .headers(HeaderFormat::Draft)
///     .respond(respond::Problem)
///     .retry_jitter(Duration::from_secs(5));
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
///
/// # Order
///
/// Layers that answer or rewrite what every client must see, such as tower-http's `CorsLayer`, go
/// outside; a layer that verifies tokens goes outside a limiter whose key is a claim. One that limits
/// by address goes outside of that, and bounds what verifying costs.
///
/// Where two layers stand around one service, a request is charged to both, but only once to a limit
/// that both have; the response carries one set of headers, the strictest.
#[derive(Clone)]
pub struct RateLimitLayer(Arc<Shared>);

/// What all services of one layer share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) limiter: Limiter,
    pub(super) policies: Policies,
    fields: Fields,
    respond: Arc<dyn Respond>,
    retry_jitter: Duration,
    skip_preflights: bool,
}

/// By what requests are limited.
#[derive(Clone, Debug)]
pub(super) enum Policies {
    One(Policy),
    Routes(PolicyHandle),
}

impl RateLimitLayer {
    /// Limits each key to `quota`, by what `store` says. While the store does not answer, requests
    /// pass; requests without a key are rejected. [`with_policy`](Self::with_policy) has more to say.
    ///
    /// The limit is named after its quota, so layers with one quota, one kind of key and one store
    /// share it.
    #[must_use]
    pub fn new(key: impl KeyExtractor, quota: Quota, store: impl Store) -> Self {
        let policy = Policy::unnamed(key, Limit::new(quota.to_string(), quota));
        Self::with_policy(policy, &Limiter::new(store))
    }

    /// Limits requests by `policy`.
    #[must_use]
    pub fn with_policy(policy: Policy, limiter: &Limiter) -> Self {
        Self::limiting(Policies::One(policy), limiter)
    }

    /// Limits each request by the policy of its route: of a [`PolicySet`](crate::PolicySet), or of a
    /// [`PolicyHandle`], by which they can be changed.
    #[must_use]
    pub fn with_policies(policies: impl Into<PolicyHandle>, limiter: &Limiter) -> Self {
        Self::limiting(Policies::Routes(policies.into()), limiter)
    }

    fn limiting(policies: Policies, limiter: &Limiter) -> Self {
        Self(Arc::new(Shared {
            limiter: limiter.clone(),
            fields: Fields::default(),
            policies,
            respond: Arc::new(Text),
            retry_jitter: Duration::ZERO,
            skip_preflights: false,
        }))
    }

    /// Which header fields tell clients about their limits. Default: [`HeaderFormat::Both`].
    #[must_use]
    pub fn headers(self, format: HeaderFormat) -> Self {
        self.change(|shared| shared.fields.format = format)
    }

    /// How `X-RateLimit-Reset` names its moment. Default: [`ResetFormat::EpochSeconds`].
    #[must_use]
    pub fn reset(self, format: ResetFormat) -> Self {
        self.change(|shared| shared.fields.reset = format)
    }

    /// How requests are answered that do not reach the service. Default: [`Text`].
    #[must_use]
    pub fn respond(self, respond: impl Respond) -> Self {
        self.change(|shared| shared.respond = Arc::new(respond))
    }

    /// Adds a random time up to `longest`, in whole seconds, to the `Retry-After` of each denial, so
    /// that clients which were denied together do not come back together. Default: none.
    #[must_use]
    pub fn retry_jitter(self, longest: Duration) -> Self {
        self.change(|shared| shared.retry_jitter = longest)
    }

    /// Lets preflights of browsers pass, and charges them to nobody: `OPTIONS` with `Origin` and
    /// `Access-Control-Request-Method` (Fetch standard, "CORS-preflight request"). Not needed where a
    /// `CorsLayer` stands outside, as it should, and answers them; and not for services where `OPTIONS`
    /// reaches a handler that does anything else, as any client can send what looks like a preflight. Who is
    /// [denied](crate::PolicyBuilder::deny) is so all the same.
    #[must_use]
    pub fn skip_preflights(self) -> Self {
        self.change(|shared| shared.skip_preflights = true)
    }

    /// The header fields that this layer writes, for `Access-Control-Expose-Headers`: a browser shows
    /// a script no others.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use tollgate::{MemoryStore, PeerIp, Quota, RateLimitLayer};
    /// use tower_http::cors::{Any, CorsLayer};
    ///
    /// let limit = RateLimitLayer::new(PeerIp, Quota::per_minute(100), MemoryStore::new());
    /// let cors = CorsLayer::new().allow_origin(Any).expose_headers(limit.exposed_headers());
    /// // The layer that is added last stands outside: it answers preflights, and marks denials too.
    /// let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(limit).layer(cors);
    /// ```
    #[must_use]
    pub fn exposed_headers(&self) -> Vec<HeaderName> {
        let mut names = vec![RETRY_AFTER];
        names.extend_from_slice(self.0.fields.format.names());
        names
    }

    fn change(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.0);
        change(&mut shared);
        Self(Arc::new(shared))
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit::new(inner, Arc::clone(&self.0))
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("policies", &self.policies)
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}

/// Marks a response whose fields, if it has any, no limiter wrote.
#[derive(Clone, Copy)]
struct Upstream;

impl Shared {
    pub(super) fn decide(&self, head: RequestHead<'_>) -> Deciding {
        if self.skip_preflights && is_preflight(head) {
            return match &self.policies {
                Policies::One(policy) => self.limiter.preflight(Some(policy), head),
                Policies::Routes(handle) => handle.with(|policies| {
                    let found = policies.find(head);
                    self.limiter.preflight(found.map(|(policy, _)| policy), head)
                }),
            };
        }
        match &self.policies {
            Policies::One(policy) => self.limiter.decide(policy, head),
            Policies::Routes(handle) => {
                handle.with(|policies| self.limiter.decide_by(policies, head))
            }
        }
    }

    /// The response of the service, which learns what is left.
    pub(super) fn admitted<R>(
        &self,
        decision: Decision,
        response: Response<R>,
    ) -> Response<ResponseBody<R>> {
        let mut response = response.map(ResponseBody::service);
        let extensions = response.extensions();
        let inner = extensions.get::<Decision>();
        let upstream = extensions.get::<Upstream>().is_some();
        let ours = inner.is_some() && !upstream;
        let binding = match inner {
            Some(inner) if !decision.is_stricter_than(inner) => inner.clone(),
            _ => decision,
        };
        // What an upstream says when it denies a request is stricter than that we admitted it.
        let denied = response.status() == StatusCode::TOO_MANY_REQUESTS && binding.is_allowed();
        if denied || !self.fields.write(&binding, ours, response.headers_mut()) {
            response.extensions_mut().insert(Upstream);
        } else if upstream {
            response.extensions_mut().remove::<Upstream>();
        }
        response.extensions_mut().insert(binding);
        response
    }

    /// The answer to a request that does not reach the service.
    pub(super) fn rejected(&self, rejection: Rejection, head: RequestHead<'_>) -> Response<Bytes> {
        let mut response = self.respond.respond(&rejection, head);
        response.headers_mut().reserve(self.fields.format.fields() + headers::FINISH);
        let mut retry_after = None;
        if let Rejection::Limited(decision) = &rejection {
            self.fields.write(decision, true, response.headers_mut());
            let secs = decision.retry_after_secs();
            retry_after = secs.map(|secs| secs + jitter(self.retry_jitter.as_secs()));
            response.extensions_mut().insert(decision.clone());
        }
        answer::finish(rejection, retry_after, &mut response);
        response
    }
}

fn is_preflight(head: RequestHead<'_>) -> bool {
    let has = |name| head.headers().contains_key(name);
    head.method() == Method::OPTIONS && has(ORIGIN) && has(ACCESS_CONTROL_REQUEST_METHOD)
}
