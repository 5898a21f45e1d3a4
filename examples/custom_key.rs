//! Keys and answers of your own: a closure, a tuple, a type, and a denial in JSON.
//!
//! ```sh
//! cargo run --example custom_key
//! curl -i -H 'x-tenant: acme' http://127.0.0.1:3000/reports/7
//! curl -i -H 'host: acme.shop.example' http://127.0.0.1:3000/
//! ```

use std::error::Error;

use axum::{
    Router,
    extract::MatchedPath,
    http::{HeaderValue, Response, header::CONTENT_TYPE},
    routing::get,
};
use tollgate::{
    Key, KeyError, KeyExtractor, Keys, Limit, Limiter, MemoryStore, Policy, PolicyError, Quota,
    RateLimitLayer, Rejection, RequestHead, Store, key, respond,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("try: curl -i -H 'x-tenant: acme' http://{}/reports/7", listener.local_addr()?);
    axum::serve(listener, app(MemoryStore::new())?).await?;
    Ok(())
}

fn app(store: impl Store) -> Result<Router, PolicyError> {
    // Text that stands in the request as it is: here a header that a proxy in front sets.
    let tenant = key::from_borrowed(|head| head.header("x-tenant"));
    // Anything else, with a kind of its own. The template, `/reports/{id}`, is one key for all ids.
    let route = key::from_fn(|head| {
        let path = head.extension::<MatchedPath>()?;
        Some(Key::new("route", path.as_str()))
    });

    let limiter = Limiter::new(store);
    // A tuple counts every combination for itself.
    let reports = Policy::new("reports")
        .limit((tenant, route), Limit::new("reports", Quota::per_minute(3)))
        .build()?;
    let shops = Policy::new("shops")
        .limit(Subdomain { of: ".shop.example" }, Limit::new("visits", Quota::per_second(10)))
        .build()?;
    let layer =
        |policy| RateLimitLayer::with_policy(policy, &limiter).respond(respond::from_fn(json));

    Ok(Router::new()
        .route("/reports/{id}", get(|| async { "a report\n" }).layer(layer(reports)))
        .route("/", get(|| async { "a shop\n" }).layer(layer(shops))))
}

/// Counts by the subdomain that was asked for.
struct Subdomain {
    of: &'static str,
}

impl KeyExtractor for Subdomain {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        let host = head.header("host").ok_or(KeyError::missing("the request names no host"))?;
        let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
        match host.strip_suffix(self.of) {
            Some(shop) if !shop.is_empty() => Ok(Key::new("shop", shop).into()),
            _ => Err(KeyError::invalid("there is no such shop")),
        }
    }
}

/// The layer adds `Retry-After` and the other headers.
fn json(rejection: &Rejection, _: RequestHead<'_>) -> Response<String> {
    let reason = match rejection {
        Rejection::Limited(_) => "slow_down",
        Rejection::StoreFailed(_) => "try_again",
        Rejection::NoKey(_) => "who_are_you",
        _ => "rejected",
    };
    let mut response = Response::new(format!("{{\"error\":\"{reason}\"}}\n"));
    *response.status_mut() = respond::status(rejection);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::Request,
    };
    use tollgate::ManualClock;
    use tower::ServiceExt as _;

    use super::*;

    /// The statuses of GET requests for `path`, each with this header.
    async fn statuses(path: &str, name: &str, values: &[&str]) -> Vec<u16> {
        let app = app(MemoryStore::builder().clock(ManualClock::new()).build()).unwrap();
        let mut statuses = Vec::new();
        for value in values {
            let request = Request::get(path).header(name, *value).body(Body::empty()).unwrap();
            statuses.push(app.clone().oneshot(request).await.unwrap().status().as_u16());
        }
        statuses
    }

    #[tokio::test]
    async fn three_for_each_tenant() {
        let tenants = ["acme", "acme", "acme", "acme", "other", ""];
        let statuses = statuses("/reports/7", "x-tenant", &tenants).await;
        assert_eq!(statuses, [200, 200, 200, 429, 200, 400]);
    }

    #[tokio::test]
    async fn shops() {
        let hosts = ["acme.shop.example", "ACME.shop.example:3000", "elsewhere.example"];
        assert_eq!(statuses("/", "host", &hosts).await, [200, 200, 400]);
    }

    #[tokio::test]
    async fn the_answer_is_json() {
        let app = app(MemoryStore::new()).unwrap();
        let request = Request::get("/reports/7").body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 400);
        assert_eq!(response.headers()["content-type"], "application/json");
        let body = to_bytes(response.into_body(), 1_000).await.unwrap();
        assert_eq!(body, "{\"error\":\"who_are_you\"}\n");
    }
}
