//! A limit before authentication, and one after it.
//!
//! Outside, each address has so many requests per minute, which bounds what guessing and verifying
//! costs. Then a token is verified. Inside, each of its subjects has a limit of its own, wherever it
//! calls from, by its plan.
//!
//! ```sh
//! cargo run --example auth --features jwt # it prints a token
//! curl -i -H "authorization: Bearer $TOKEN" http://127.0.0.1:3000/
//! curl -i http://127.0.0.1:3000/
//! ```

use std::{error::Error, net::SocketAddr};

use axum::{Extension, Router, routing::get};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;
use tollgate::{
    Claims, Clock, JwtKeys, JwtLayer, MemoryStore, PeerIp, Quota, RateLimitLayer, SystemClock,
    Tier, auth::AuthError, key,
};

/// In a service of yours, the key of whoever issues the tokens: `JwtKeys::jwks`, or a public key.
const SECRET: &[u8] = b"a secret for this example only, of 32 bytes or more";
const ISSUER: &str = "https://id.example";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let token = token("alice", SystemClock.now().as_secs_ceil() + 3_600)?;
    println!("try: curl -i -H 'authorization: Bearer {token}' http://{}/", listener.local_addr()?);
    let app = app(&MemoryStore::new(), SystemClock)?;
    // The limiter needs the addresses of the clients.
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

fn app(store: &MemoryStore, clock: impl Clock) -> Result<Router, AuthError> {
    let auth = JwtLayer::<Claims>::new(JwtKeys::hs256(SECRET))
        .issuer(ISSUER)
        .audience("api")
        .clock(clock)
        .tier(|claims| Tier::new(claims.text("plan").unwrap_or("free")))
        .build()?;
    let subject = key::claim(|claims: &Claims| &claims.sub);

    Ok(Router::new()
        .route("/", get(hello))
        .layer(RateLimitLayer::new(subject, Quota::per_minute(5), store.clone()))
        .layer(auth)
        .layer(RateLimitLayer::new(PeerIp, Quota::per_minute(20), store.clone())))
}

async fn hello(Extension(claims): Extension<Claims>, Extension(tier): Extension<Tier>) -> String {
    format!("hello {}, on the plan {}\n", claims.sub, tier.as_str())
}

/// What an issuer does. `expires` is in seconds since 1970.
fn token(subject: &str, expires: u64) -> Result<String, jsonwebtoken::errors::Error> {
    let claims =
        json!({"sub": subject, "iss": ISSUER, "aud": "api", "exp": expires, "plan": "pro"});
    encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{
        body::{Body, to_bytes},
        extract::connect_info::MockConnectInfo,
        http::{Request, Response},
    };
    use tollgate::ManualClock;
    use tower::ServiceExt as _;

    use super::*;

    /// A service that is called from one address.
    struct Service {
        app: Router,
        clock: ManualClock,
    }

    impl Service {
        fn new() -> Self {
            let clock = ManualClock::new();
            let store = MemoryStore::builder().clock(clock.clone()).build();
            let peer = MockConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711)));
            Self { app: app(&store, clock.clone()).unwrap().layer(peer), clock }
        }

        /// A token that is valid for ten minutes.
        fn token(&self, subject: &str) -> String {
            token(subject, self.clock.now().as_secs_ceil() + 600).unwrap()
        }

        async fn get(&self, token: &str) -> Response<Body> {
            let request = Request::get("/").header("authorization", format!("Bearer {token}"));
            self.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
        }

        /// The statuses of so many requests.
        async fn statuses(&self, token: &str, requests: usize) -> Vec<u16> {
            let mut statuses = Vec::new();
            for _ in 0..requests {
                statuses.push(self.get(token).await.status().as_u16());
            }
            statuses
        }
    }

    #[tokio::test]
    async fn handlers_know_who_calls() {
        let service = Service::new();
        let response = service.get(&service.token("alice")).await;
        let body = to_bytes(response.into_body(), 1_000).await.unwrap();
        assert_eq!(body, "hello alice, on the plan pro\n");
    }

    #[tokio::test]
    async fn each_subject_has_a_limit_of_its_own() {
        let service = Service::new();
        let alice = service.token("alice");
        assert_eq!(service.statuses(&alice, 6).await, [200, 200, 200, 200, 200, 429]);
        assert_eq!(service.statuses(&service.token("bob"), 1).await, [200]);
        service.clock.advance(Duration::from_secs(12));
        assert_eq!(service.statuses(&alice, 2).await, [200, 429]);
    }

    #[tokio::test]
    async fn guesses_are_counted_before_they_are_verified() {
        let service = Service::new();
        let statuses = service.statuses("guess", 25).await;
        assert_eq!(statuses[..20], [401; 20]);
        assert_eq!(statuses[20..], [429; 5]);
        // A limit by subject alone would not have seen them.
        assert_eq!(service.statuses(&service.token("alice"), 1).await, [429]);
    }

    #[tokio::test]
    async fn a_token_expires() {
        let service = Service::new();
        let alice = service.token("alice");
        service.clock.advance(Duration::from_secs(660));
        let response = service.get(&alice).await;
        assert_eq!(response.status(), 401);
        let challenge = &response.headers()["www-authenticate"];
        assert!(challenge.to_str().unwrap().contains("the token has expired"));
    }
}
