//! Tokens that pass.

use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::json;
use tollgate::{
    JwtKeys,
    auth::{JwtAlgorithm, JwtKey},
};

use super::{
    ED25519_PUBLIC, P256_PUBLIC, P384, P384_PUBLIC, RSA_PUBLIC, SECRET, alice, ed25519, hmac,
    layer, p256, passes, refuses, rsa, signed, token,
};

const UNKNOWN: &str = "the token is signed by an unknown key";

#[tokio::test]
async fn tokens_of_each_kind_of_key_reach_the_service_with_their_claims() {
    let cases = [
        (JwtKeys::hs256(SECRET), "HS256", hmac(SECRET), Algorithm::HS256),
        (JwtKeys::rs256(RSA_PUBLIC), "RS256", rsa(), Algorithm::RS256),
        (JwtKeys::es256(P256_PUBLIC), "ES256", p256(), Algorithm::ES256),
        (JwtKeys::ed25519(ED25519_PUBLIC), "EdDSA", ed25519(), Algorithm::EdDSA),
    ];
    for (keys, name, key, algorithm) in cases {
        let good = token(&json!({"alg": name}), &alice(), &key, algorithm);
        passes(&layer(keys), &good).await;
    }
}

#[tokio::test]
async fn what_a_header_says_besides_makes_no_difference() {
    for header in [
        json!({"alg": "HS256", "typ": "JWT"}),
        json!({"alg": "HS256", "typ": "at+jwt", "kid": "any: the key has no name"}),
        json!({"alg": "HS256", "jku": "https://evil.example", "jwk": {"kty": "oct", "k": "AAAA"}}),
    ] {
        let good = token(&header, &alice(), &hmac(SECRET), Algorithm::HS256);
        passes(&layer(JwtKeys::hs256(SECRET)), &good).await;
    }
}

#[tokio::test]
async fn other_hashes_and_pss_pass_where_they_are_configured() {
    let secret = [7; 64];
    let cases = [
        (JwtAlgorithm::Hs384, Algorithm::HS384),
        (JwtAlgorithm::Hs512, Algorithm::HS512),
        (JwtAlgorithm::Rs512, Algorithm::RS512),
        (JwtAlgorithm::Ps256, Algorithm::PS256),
        (JwtAlgorithm::Es384, Algorithm::ES384),
    ];
    for (accepted, algorithm) in cases {
        let pem = |pem| JwtKey::pem(accepted, pem).unwrap();
        let (known, key) = match accepted.name().as_bytes()[0] {
            b'H' => (JwtKey::secret(accepted, secret).unwrap(), hmac(&secret)),
            b'E' => (pem(P384_PUBLIC), EncodingKey::from_ec_pem(P384.as_bytes()).unwrap()),
            _ => (pem(RSA_PUBLIC), rsa()),
        };
        let good = token(&json!({"alg": accepted.name()}), &alice(), &key, algorithm);
        passes(&layer(JwtKeys::new([known])), &good).await;
    }
}

/// A key set as issuers publish it, with what is not for tokens beside.
fn key_set() -> String {
    let (modulus, exponent) = components(RSA_PUBLIC);
    let (x, y) = point(P256_PUBLIC);
    json!({"keys": [
        {"kty": "RSA", "kid": "r", "use": "sig", "n": modulus, "e": exponent},
        {"kty": "RSA", "kid": "e", "use": "enc", "n": modulus, "e": exponent},
        {"kty": "RSA", "kid": "o", "alg": "RSA-OAEP", "n": modulus, "e": exponent},
        {"kty": "EC", "kid": "p", "crv": "P-256", "alg": "ES256", "x": x, "y": y},
        {"kty": "EC", "kid": "s", "crv": "secp256k1", "x": x, "y": y},
        {"kty": "OKP", "kid": "d", "crv": "Ed25519", "x": raw(ED25519_PUBLIC)},
        {"kty": "OKP", "kid": "x", "crv": "X25519", "x": raw(ED25519_PUBLIC)},
        {"kty": "new", "kid": "n"},
    ]})
    .to_string()
}

fn der(pem: &str) -> Vec<u8> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    BASE64_STANDARD.decode(text).unwrap()
}

fn text(bytes: &[u8]) -> String {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Of a key with 2048 bits: 256 bytes stand before a sequence of three, `02 03 01 00 01`.
fn components(pem: &str) -> (String, String) {
    let der = der(pem);
    let end = der.len() - 5;
    (text(&der[end - 256..end]), text(&der[end + 2..]))
}

/// The point is at the end.
fn point(pem: &str) -> (String, String) {
    let der = der(pem);
    let (x, y) = der[der.len() - 64..].split_at(32);
    (text(x), text(y))
}

fn raw(pem: &str) -> String {
    let der = der(pem);
    text(&der[der.len() - 32..])
}

#[tokio::test]
async fn a_key_set_verifies_by_the_key_that_is_named() {
    let layer = layer(JwtKeys::jwks(key_set()));
    let keys = [
        ("r", "RS256", rsa(), Algorithm::RS256),
        ("p", "ES256", p256(), Algorithm::ES256),
        ("d", "EdDSA", ed25519(), Algorithm::EdDSA),
    ];
    for (kid, name, key, algorithm) in &keys {
        let header = json!({"alg": name, "kid": kid});
        passes(&layer, &token(&header, &alice(), key, *algorithm)).await;
        // The only key for its algorithm needs no name.
        let header = json!({"alg": name});
        passes(&layer, &token(&header, &alice(), key, *algorithm)).await;
        for unknown in ["other", "", "e", "o", "x"] {
            let header = json!({"alg": name, "kid": unknown});
            let token = token(&header, &alice(), key, *algorithm);
            refuses(&layer, &token, UNKNOWN).await;
        }
    }
    // One that is for encryption only is for no algorithm.
    let stray = token(&json!({"alg": "HS256"}), &alice(), &hmac(SECRET), Algorithm::HS256);
    refuses(&layer, &stray, "the token is signed by an algorithm that is not accepted").await;
}

#[tokio::test]
async fn of_several_keys_that_could_be_meant_none_is_guessed() {
    let key = |secret: &[u8; 32], kid: &str| {
        JwtKey::secret(JwtAlgorithm::Hs256, secret).unwrap().kid(kid)
    };
    let layer = layer(JwtKeys::new([key(&[1; 32], "new"), key(&[2; 32], "old")]));
    let sign = |secret: &[u8], kid: Option<&str>| {
        let header = match kid {
            Some(kid) => json!({"alg": "HS256", "kid": kid}),
            None => json!({"alg": "HS256"}),
        };
        token(&header, &alice(), &hmac(secret), Algorithm::HS256)
    };
    passes(&layer, &sign(&[1; 32], Some("new"))).await;
    passes(&layer, &sign(&[2; 32], Some("old"))).await;
    refuses(&layer, &sign(&[2; 32], Some("new")), "the signature of the token is wrong").await;
    refuses(&layer, &sign(&[1; 32], None), UNKNOWN).await;
    refuses(&layer, &signed(&alice()), UNKNOWN).await;
}
