//! Several limits for one request, different limits for different routes, and one in a handler.
//!
//! ```sh
//! cargo run --example policies
//! curl -i -d guess http://127.0.0.1:3000/login
//! curl -i -X POST -H 'authorization: Bearer alice' http://127.0.0.1:3000/api/mails
//! ```

use std::{env, error::Error, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use tollgate::{
    ApiKey, Decision, KeyExtractor as _, Limit, Limiter, Lockout, MemoryStore, OnFailure, PeerIp,
    Policy, PolicyError, Quota, RateLimitLayer, RedisStore, Store, key,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = match env::var("REDIS_URL") {
        Ok(url) => Arc::new(RedisStore::connect(url).await?),
        Err(_) => Arc::new(MemoryStore::new()),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("try: curl -i -d guess http://{}/login", listener.local_addr()?);
    let service = app(store)?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}

fn app(store: impl Store) -> Result<Router, PolicyError> {
    // One for all layers: they share its store, and what it knows of the store's health.
    let limiter = Limiter::new(store);

    // All limits are charged together, in one round trip, or none is. Nobody has checked the keys here, so
    // the limit by address is for those who invent some.
    let api = Policy::new("api")
        .limit(ApiKey::header("x-api-key").or(PeerIp), Limit::new("burst", Quota::per_second(20)))
        .limit(PeerIp, Limit::new("address", Quota::per_second(100)))
        .limit(key::claim(|c: &Claims| &c.sub), Limit::new("daily", Quota::per_day(10_000)))
        .on_failure(OnFailure::Local { share: 0.25 })
        .build()?;

    // Guessing passwords must not become cheap when the store is down. Who fails a sixth time in
    // a minute is out for an hour.
    let lockout = Lockout::new(Duration::from_secs(3_600)).status(StatusCode::FORBIDDEN);
    let login = Policy::new("login")
        .limit(PeerIp, Limit::new("tries", Quota::per_minute(5)).lockout(lockout))
        .on_failure(OnFailure::Deny)
        .build()?;

    let mailer =
        Mailer { limiter: limiter.clone(), per_user: Limit::new("mails", Quota::per_hour(50)) };
    let routes = Router::new()
        .route("/mails", post(send_mail))
        .with_state(mailer)
        .layer(RateLimitLayer::with_policy(api, &limiter))
        // Added later, so it stands outside: the limiter reads the claims that it verified.
        .layer(middleware::from_fn(authenticate));

    Ok(Router::new()
        .route("/login", post(sign_in).layer(RateLimitLayer::with_policy(login, &limiter)))
        .nest("/api", routes))
}

/// Only what fails counts: the right password gets its try back.
async fn sign_in(Extension(decision): Extension<Decision>, password: String) -> StatusCode {
    if password != "open sesame" {
        return StatusCode::UNAUTHORIZED;
    }
    // Whoever knows the password may come in, whatever became of the try.
    let _ = decision.refund().await;
    StatusCode::NO_CONTENT
}

#[derive(Clone)]
struct Mailer {
    limiter: Limiter,
    per_user: Limit,
}

/// Has a limit of its own, which no layer knows. Here it is up to the handler what to answer, also
/// when the store fails.
async fn send_mail(
    State(mailer): State<Mailer>,
    Extension(claims): Extension<Claims>,
) -> (StatusCode, &'static str) {
    match mailer.limiter.check(&mailer.per_user, &claims.sub).await {
        Ok(decision) if decision.is_allowed() => (StatusCode::ACCEPTED, "sent\n"),
        Ok(_) => (StatusCode::TOO_MANY_REQUESTS, "no more mails for now\n"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "try again later\n"),
    }
}

#[derive(Clone)]
struct Claims {
    sub: String,
}

/// Stands for a layer that verifies tokens. This one believes everybody.
async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| value.strip_prefix("Bearer "));
    let sub = token.ok_or(StatusCode::UNAUTHORIZED)?.to_owned();
    request.extensions_mut().insert(Claims { sub });
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::connect_info::MockConnectInfo};
    use tollgate::ManualClock;
    use tower::ServiceExt as _;

    use super::*;

    fn app() -> Router {
        at(&ManualClock::new())
    }

    fn at(clock: &ManualClock) -> Router {
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
        super::app(store).unwrap().layer(MockConnectInfo(peer))
    }

    async fn sign_in(app: &Router, password: &'static str) -> u16 {
        let request = Request::post("/login").body(Body::from(password)).unwrap();
        app.clone().oneshot(request).await.unwrap().status().as_u16()
    }

    fn mail(user: &str, api_key: usize) -> Request {
        Request::post("/api/mails")
            .header("authorization", format!("Bearer {user}"))
            .header("x-api-key", api_key)
            .body(Body::empty())
            .unwrap()
    }

    #[tokio::test]
    async fn the_sixth_wrong_password_locks_for_an_hour() {
        let clock = ManualClock::new();
        let app = at(&clock);
        for status in [401, 401, 401, 401, 401, 403] {
            assert_eq!(sign_in(&app, "guess").await, status);
        }
        clock.advance(Duration::from_secs(3_599));
        assert_eq!(sign_in(&app, "open sesame").await, 403);
        clock.advance(Duration::from_secs(1));
        assert_eq!(sign_in(&app, "open sesame").await, 204);
    }

    #[tokio::test]
    async fn the_right_password_costs_nothing() {
        let app = app();
        for _ in 0..20 {
            assert_eq!(sign_in(&app, "open sesame").await, 204);
        }
    }

    #[tokio::test]
    async fn twenty_at_once_for_each_api_key() {
        let app = app();
        for _ in 0..20 {
            assert_eq!(app.clone().oneshot(mail("alice", 1)).await.unwrap().status(), 202);
        }
        assert_eq!(app.clone().oneshot(mail("alice", 1)).await.unwrap().status(), 429);
        assert_eq!(app.clone().oneshot(mail("alice", 2)).await.unwrap().status(), 202);
    }

    #[tokio::test]
    async fn fifty_mails_for_each_user() {
        let app = app();
        for api_key in 0..50 {
            assert_eq!(app.clone().oneshot(mail("alice", api_key)).await.unwrap().status(), 202);
        }
        assert_eq!(app.clone().oneshot(mail("alice", 50)).await.unwrap().status(), 429);
        assert_eq!(app.clone().oneshot(mail("bob", 50)).await.unwrap().status(), 202);
    }

    #[tokio::test]
    async fn nobody_is_nobody() {
        let request = Request::post("/api/mails").body(Body::empty()).unwrap();
        assert_eq!(app().oneshot(request).await.unwrap().status(), 401);
    }
}
