//! A hundred requests per minute for each client address.
//!
//! Copies of this program that are started with `REDIS_URL=redis://127.0.0.1/` share the limit;
//! without it each counts for itself, in memory.
//!
//! ```sh
//! cargo run --example hello
//! curl -i http://127.0.0.1:3000/
//! ```

use std::{env, error::Error, net::SocketAddr, sync::Arc};

use axum::{Extension, Router, routing::get};
use tollgate::{Decision, MemoryStore, PeerIp, Quota, RateLimitLayer, RedisStore, Store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = match env::var("REDIS_URL") {
        Ok(url) => Arc::new(RedisStore::connect(url).await?),
        Err(_) => Arc::new(MemoryStore::new()),
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("try: curl -i http://{}/", listener.local_addr()?);
    // The limiter needs the addresses of the clients.
    let service = app(store).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}

fn app(store: impl Store) -> Router {
    Router::new().route("/", get(hello)).layer(RateLimitLayer::new(
        PeerIp,
        Quota::per_minute(100),
        store,
    ))
}

async fn hello(Extension(decision): Extension<Decision>) -> String {
    match decision.remaining() {
        Some(left) => format!("hello, {left} requests left\n"),
        None => "hello\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{body::Body, extract::connect_info::MockConnectInfo, http::Request};
    use tollgate::ManualClock;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_hundred_a_minute() {
        let clock = ManualClock::new();
        let app = app(MemoryStore::builder().clock(clock.clone()).build())
            .layer(MockConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
        let get = async || app.clone().oneshot(Request::new(Body::empty())).await.unwrap();

        for _ in 0..100 {
            assert_eq!(get().await.status(), 200);
        }
        let denied = get().await;
        assert_eq!(denied.status(), 429);
        assert_eq!(denied.headers()["retry-after"], "1");

        clock.advance(Duration::from_secs(1));
        assert_eq!(get().await.status(), 200);
    }
}
