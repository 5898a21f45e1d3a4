//! Keys that are looked up.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::Request;
use jsonwebtoken::Algorithm;
use serde_json::json;
use tokio::task::yield_now;
use tollgate::{
    Claims, JwtKeys, JwtLayer, ManualClock,
    auth::{JwtAlgorithm, JwtKey, KeyLookup, KeySource, KeySourceError},
};
use tower::{Layer, Service, ServiceExt};
use tracing::Level;

use super::{
    Answer, Inner, SECRET, alice, bearing, hmac, passes, refuses, request, send, signed, token,
};
use crate::support::{Log, field};

/// What a source answers, and what it was asked.
#[derive(Clone, Debug)]
struct Remote {
    answer: Arc<Mutex<Mood>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Debug)]
enum Mood {
    Key(Option<JwtKey>),
    Failing,
    Hanging,
}

impl Remote {
    fn new(mood: Mood) -> Self {
        Self { answer: Arc::new(Mutex::new(mood)), asked: Arc::default() }
    }

    fn turn(&self, mood: Mood) {
        *self.answer.lock().unwrap() = mood;
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl KeySource for Remote {
    fn find(&self, algorithm: JwtAlgorithm, kid: Option<&str>) -> KeyLookup {
        self.asked.lock().unwrap().push(format!("{algorithm} {kid:?}"));
        let mood = self.answer.lock().unwrap().clone();
        KeyLookup::later(async move {
            yield_now().await;
            match mood {
                Mood::Key(key) => Ok(key),
                Mood::Failing => Err(KeySourceError::new("connection refused")),
                Mood::Hanging => pending().await,
            }
        })
    }
}

fn secret() -> JwtKey {
    JwtKey::secret(JwtAlgorithm::Hs256, SECRET).unwrap()
}

fn layer(source: impl KeySource) -> JwtLayer<Claims> {
    let builder = JwtLayer::<Claims>::with_source(source, [JwtAlgorithm::Hs256]);
    builder.issuer("https://id.example").audience("api").clock(ManualClock::new()).build().unwrap()
}

#[tokio::test]
async fn a_key_that_comes_later_verifies_as_well() {
    let source = Remote::new(Mood::Key(Some(secret())));
    let layer = layer(source.clone());
    let header = json!({"alg": "HS256", "kid": "2025-12"});
    let good = token(&header, &alice(), &hmac(SECRET), Algorithm::HS256);
    passes(&layer, &good).await;
    assert_eq!(*source.asked.lock().unwrap(), ["HS256 Some(\"2025-12\")"]);
    let expired = signed(&super::but("exp", json!(0)));
    refuses(&layer, &expired, "the token has expired").await;
    let forged = token(&header, &alice(), &hmac(&[0; 32]), Algorithm::HS256);
    refuses(&layer, &forged, "the signature of the token is wrong").await;
    source.turn(Mood::Key(None));
    refuses(&layer, &good, "the token is signed by an unknown key").await;
}

#[tokio::test]
async fn nothing_is_looked_up_for_what_is_refused_anyway() {
    let source = Remote::new(Mood::Key(Some(secret())));
    let layer = layer(source.clone());
    refuses(&layer, "x.y.z", "the token is malformed").await;
    let other = token(&json!({"alg": "HS384"}), &alice(), &hmac(SECRET), Algorithm::HS384);
    let why = "the token is signed by an algorithm that is not accepted";
    refuses(&layer, &other, why).await;
    refuses(&layer, &"x".repeat(20_000), "the token is too long").await;
    assert_eq!(send(&layer, &Inner::default(), request(&[])).await.status, 401);
    assert_eq!(source.asked(), 0);
}

#[tokio::test]
async fn a_key_for_another_algorithm_verifies_nothing() {
    let key = JwtKey::pem(JwtAlgorithm::Rs256, super::RSA_PUBLIC).unwrap();
    let layer = layer(Remote::new(Mood::Key(Some(key))));
    let forged = hmac(super::RSA_PUBLIC.as_bytes());
    let forged = token(&json!({"alg": "HS256"}), &alice(), &forged, Algorithm::HS256);
    refuses(&layer, &forged, "the signature of the token is wrong").await;
}

#[tokio::test]
async fn a_key_set_can_be_a_source() {
    passes(&layer(JwtKeys::hs256(SECRET)), &signed(&alice())).await;
    let broken = layer(JwtKeys::hs256("short"));
    refuses(&broken, &signed(&alice()), "the token is signed by an unknown key").await;
}

fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.challenge(), None);
    assert_eq!(answer.body, "the service cannot verify tokens right now");
    let wait: u64 = field(&answer.headers, "retry-after").unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait), "{wait}");
    assert_eq!(field(&answer.headers, "cache-control"), Some("no-store"));
}

#[tokio::test]
async fn a_source_that_fails_is_no_fault_of_the_caller_and_told_once() {
    let log = Log::start();
    let source = Remote::new(Mood::Failing);
    let (layer, inner) = (layer(source.clone()), Inner::default());
    for _ in 0..5 {
        is_unavailable(&send(&layer, &inner, bearing(&signed(&alice()))).await);
    }
    assert_eq!(inner.calls(), 0);
    source.turn(Mood::Key(Some(secret())));
    for _ in 0..5 {
        passes(&layer, &signed(&alice())).await;
    }
    let notices = log.notices();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert_eq!((notices[0].0, notices[1].0), (Level::WARN, Level::INFO));
    assert!(notices[0].1.contains("connection refused"), "{notices:?}");
    // gRPC clients are told in their way.
    source.turn(Mood::Failing);
    let mut request = bearing(&signed(&alice()));
    request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    let answer = send(&layer, &inner, request).await;
    assert_eq!(field(&answer.headers, "grpc-status"), Some("14"), "UNAVAILABLE");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_source_that_hangs() {
    let inner = Inner::default();
    let hanging = layer(Remote::new(Mood::Hanging));
    let waiting = send(&hanging, &inner, bearing(&signed(&alice())));
    // A second, unless another time is set.
    let answer = tokio::time::timeout(Duration::from_millis(1_001), waiting).await;
    is_unavailable(&answer.unwrap());
    assert_eq!(inner.calls(), 0);
    let source = Remote::new(Mood::Hanging);
    let builder = JwtLayer::<Claims>::with_source(source, [JwtAlgorithm::Hs256]);
    let patient = builder.lookup_timeout(Duration::from_secs(3_600)).build().unwrap();
    let inner = Inner::default();
    let waiting = send(&patient, &inner, bearing(&signed(&alice())));
    let short = tokio::time::timeout(Duration::from_secs(3_599), waiting).await;
    assert!(short.is_err());
}

#[tokio::test]
async fn requests_that_wait_each_keep_the_instance_that_was_ready_for_them() {
    let inner = Inner::default();
    let mut service = layer(Remote::new(Mood::Key(Some(secret())))).layer(inner.clone());
    let first = service.ready().await.unwrap().call(bearing(&signed(&alice())));
    let second = service.ready().await.unwrap().call(bearing(&signed(&alice())));
    drop(service.ready().await.unwrap().call(Request::new(())));
    assert_eq!(inner.calls(), 0);
    let (second, first) = tokio::join!(second, first);
    assert_eq!([first.unwrap().status(), second.unwrap().status()], [200, 200]);
    assert_eq!(inner.calls(), 2);
}
