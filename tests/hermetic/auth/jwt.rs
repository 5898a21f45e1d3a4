//! JSON Web Tokens.
//!
//! The keys were made for these tests only, by `openssl genpkey -algorithm RSA -pkeyopt
//! rsa_keygen_bits:2048`, `-algorithm EC -pkeyopt ec_paramgen_curve:P-256` or `P-384`, and `-algorithm
//! ed25519`, and their public halves by `openssl pkey -pubout`.

mod answers;
mod build;
mod claims;
mod forged;
mod good;
mod source;
mod time;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::Request;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use serde_json::{Value, json};
use tollgate::{Claims, JwtKeys, JwtLayer, ManualClock, auth::JwtLayerBuilder};

use super::{Answer, Inner, Lines, request, send};

pub(super) const SECRET: &[u8] = b"thirty-two bytes are the minimum";
const RSA: &str = include_str!("keys/rsa.pem");
const RSA_PUBLIC: &str = include_str!("keys/rsa.pub.pem");
const P256: &str = include_str!("keys/p256.pem");
const P256_PUBLIC: &str = include_str!("keys/p256.pub.pem");
const P384: &str = include_str!("keys/p384.pem");
const P384_PUBLIC: &str = include_str!("keys/p384.pub.pem");
const ED25519: &str = include_str!("keys/ed25519.pem");
const ED25519_PUBLIC: &str = include_str!("keys/ed25519.pub.pem");

/// Where a [`ManualClock`] begins, in seconds.
const NOW: u64 = 1_735_689_600;

fn hmac(secret: &[u8]) -> EncodingKey {
    EncodingKey::from_secret(secret).unwrap()
}

fn rsa() -> EncodingKey {
    EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap()
}

fn p256() -> EncodingKey {
    EncodingKey::from_ec_pem(P256.as_bytes()).unwrap()
}

fn ed25519() -> EncodingKey {
    EncodingKey::from_ed_pem(ED25519.as_bytes()).unwrap()
}

fn encode(part: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(part.to_string())
}

/// A token with this header, signed so, whatever the header says.
fn token(header: &Value, claims: &Value, key: &EncodingKey, algorithm: Algorithm) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

/// A token of HS256 with these claims.
pub(super) fn signed(claims: &Value) -> String {
    token(&json!({"alg": "HS256"}), claims, &hmac(SECRET), Algorithm::HS256)
}

/// Claims that are accepted everywhere here.
fn alice() -> Value {
    json!({"sub": "alice", "iss": "https://id.example", "aud": "api", "exp": NOW + 600})
}

/// Those of Alice, but for one.
pub(super) fn but(name: &str, value: Value) -> Value {
    let mut claims = alice();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = alice();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

/// A layer for tokens of these keys.
fn layer(keys: JwtKeys) -> JwtLayer<Claims> {
    builder(keys).build().unwrap()
}

fn builder(keys: JwtKeys) -> JwtLayerBuilder<Claims> {
    let builder = JwtLayer::<Claims>::new(keys).issuer("https://id.example").audience("api");
    builder.clock(ManualClock::new())
}

fn bearing(token: &str) -> Request<()> {
    request(&[("authorization", &format!("Bearer {token}"))])
}

/// Fails unless the token passes.
async fn passes(layer: &JwtLayer<Claims>, token: &str) {
    let inner = Inner::default();
    let answer = send(layer, &inner, bearing(token)).await;
    assert_eq!((answer.status.as_u16(), inner.calls()), (200, 1), "{answer:?}");
    assert_eq!(answer.body, "subject alice");
}

/// Fails unless the token is refused for this reason and nothing reaches the service, also where
/// requests without a token may pass.
async fn refuses(layer: &JwtLayer<Claims>, token: &str, why: &str) {
    let inner = Inner::default();
    let answer = send(layer, &inner, bearing(token)).await;
    is_refusal(&answer, why);
    assert_eq!(inner.calls(), 0, "{why}");
}

fn is_refusal(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 401, "{why}: {answer:?}");
    assert_eq!(answer.body, why);
    let challenge = format!("Bearer error=\"invalid_token\", error_description=\"{why}\"");
    assert_eq!(answer.challenge(), Some(&*challenge));
}
