//! Several limits for one request, different limits for different routes, and one in a handler.
//!
//! ```sh
//! cargo run --example policies
//! curl -i -X POST http://127.0.0.1:3000/login
//! curl -i -X POST -H 'authorization: Bearer alice' http://127.0.0.1:3000/api/mails
//! ```

use std::{env, error::Error, net::SocketAddr, sync::Arc};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{self, Next},
    response::Response,
    routing::post,
};
use tollgate::{
    ApiKey, KeyExtractor as _, Limit, Limiter, MemoryStore, OnFailure, PeerIp, Policy, PolicyError,
    Quota, RateLimitLayer, RedisStore, Store, key,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = match env::var("REDIS_URL") {
        Ok(url) => Arc::new(RedisStore::connect(url).await?),
        Err(_) => Arc::new(MemoryStore::new()),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("try: curl -i -X POST http://{}/login", listener.local_addr()?);
    let service = app(store)?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}

fn app(store: impl Store) -> Result<Router, PolicyError> {
    // One for all layers: they share its store, and what it knows of the store's health.
    let limiter = Limiter::new(store);

    // Both limits are charged together, in one round trip, or neither is.
    let api = Policy::new("api")
        .limit(ApiKey::header("x-api-key").or(PeerIp), Limit::new("burst", Quota::per_second(20)))
        .limit(key::claim(|c: &Claims| &c.sub), Limit::new("daily", Quota::per_day(10_000)))
        .on_failure(OnFailure::Local { share: 0.25 })
        .build()?;

    // Guessing passwords must not become cheap when the store is down.
    let login = Policy::new("login")
        .limit(PeerIp, Limit::new("tries", Quota::per_minute(5)))
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

async fn sign_in() -> &'static str {
    "welcome\n"
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
        let store = MemoryStore::builder().clock(ManualClock::new()).build();
        let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
        super::app(store).unwrap().layer(MockConnectInfo(peer))
    }

    fn mail(user: &str, api_key: usize) -> Request {
        Request::post("/api/mails")
            .header("authorization", format!("Bearer {user}"))
            .header("x-api-key", api_key)
            .body(Body::empty())
            .unwrap()
    }

    #[tokio::test]
    async fn five_tries_to_sign_in() {
        let app = app();
        for status in [200, 200, 200, 200, 200, 429] {
            let request = Request::post("/login").body(Body::empty()).unwrap();
            assert_eq!(app.clone().oneshot(request).await.unwrap().status(), status);
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
