use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use tollgate::{Limiter, ManualClock, Policy, RateLimit, RateLimitLayer, ResponseBody};
use tower::{Layer, Service, ServiceExt};

use super::{Probe, limiter};

/// Sends an empty request to a service.
pub(crate) async fn send<S, R>(service: &mut S) -> Response<R>
where
    S: Service<Request<()>, Response = Response<R>, Error = Infallible>,
{
    let request = Request::new(());
    let Ok(response) =
        service.ready().await.unwrap_or_else(|never| match never {}).call(request).await;
    response
}

/// A client of a limited service in this process.
pub(crate) struct Client {
    pub(crate) service: RateLimit<Probe>,
    pub(crate) clock: ManualClock,
}

impl Client {
    /// Of a service with a limiter of its own, in memory.
    pub(crate) fn of(policy: Policy) -> Self {
        Self::with(policy, |layer| layer)
    }

    pub(crate) fn with(
        policy: Policy,
        change: impl FnOnce(RateLimitLayer) -> RateLimitLayer,
    ) -> Self {
        let (limiter, clock) = limiter();
        let layer = change(RateLimitLayer::with_policy(policy, &limiter));
        Self { service: layer.layer(Probe::new()), clock }
    }

    /// Of a service with this limiter; its clock does nothing.
    pub(crate) fn sharing(limiter: &Limiter, policy: Policy) -> Self {
        let layer = RateLimitLayer::with_policy(policy, limiter);
        Self { service: layer.layer(Probe::new()), clock: ManualClock::new() }
    }

    pub(crate) async fn send(&mut self) -> Response<ResponseBody<String>> {
        send(&mut self.service).await
    }

    /// Sends until a request is not answered 200, and returns how many were, and that answer.
    pub(crate) async fn exhaust(&mut self) -> (u64, Response<ResponseBody<String>>) {
        for passed in 0..10_000 {
            let response = self.send().await;
            if response.status() != StatusCode::OK {
                return (passed, response);
            }
        }
        panic!("nothing limits this client");
    }
}
