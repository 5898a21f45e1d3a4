//! Tokens that somebody has made up.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use serde_json::json;
use tollgate::{
    JwtKeys,
    auth::{JwtAlgorithm, JwtKey},
};

use super::{
    ED25519_PUBLIC, Inner, Lines, P256_PUBLIC, RSA_PUBLIC, SECRET, alice, bearing, builder, encode,
    hmac, is_refusal, layer, p256, passes, refuses, request, rsa, send, signed, token,
};

const ALGORITHM: &str = "the token is signed by an algorithm that is not accepted";
const MALFORMED: &str = "the token is malformed";
const SIGNATURE: &str = "the signature of the token is wrong";

fn each_kind() -> [JwtKeys; 4] {
    [
        JwtKeys::hs256(SECRET),
        JwtKeys::rs256(RSA_PUBLIC),
        JwtKeys::es256(P256_PUBLIC),
        JwtKeys::ed25519(ED25519_PUBLIC),
    ]
}

#[tokio::test]
async fn a_token_that_is_not_signed_is_refused() {
    for keys in each_kind() {
        let layer = layer(keys);
        for name in ["none", "None", "NONE", "", "hs256", "HS256 ", "ES512", "RS1"] {
            let message = format!("{}.{}", encode(&json!({"alg": name})), encode(&alice()));
            for signature in ["", "AA"] {
                refuses(&layer, &format!("{message}.{signature}"), ALGORITHM).await;
            }
        }
    }
}

#[tokio::test]
async fn a_public_key_is_no_secret() {
    let key = || JwtKey::pem(JwtAlgorithm::Rs256, RSA_PUBLIC).unwrap();
    let alone = layer(JwtKeys::new([key()]));
    // Where HMAC is accepted, too, by a secret.
    let beside = layer(JwtKeys::new([key(), JwtKey::secret(JwtAlgorithm::Hs256, SECRET).unwrap()]));
    for secret in [RSA_PUBLIC, RSA_PUBLIC.trim_end()] {
        for (layer, why) in [(&alone, ALGORITHM), (&beside, SIGNATURE)] {
            let sign = |name, algorithm| {
                token(&json!({"alg": name}), &alice(), &hmac(secret.as_bytes()), algorithm)
            };
            refuses(layer, &sign("HS256", Algorithm::HS256), why).await;
            // One that says what it is not.
            refuses(layer, &sign("RS256", Algorithm::HS256), SIGNATURE).await;
        }
    }
}

#[tokio::test]
async fn a_key_serves_no_other_algorithm_than_it_is_for() {
    let cases =
        [("RS384", Algorithm::RS384), ("RS512", Algorithm::RS512), ("PS256", Algorithm::PS256)];
    for (name, algorithm) in cases {
        let token = token(&json!({"alg": name}), &alice(), &rsa(), algorithm);
        refuses(&layer(JwtKeys::rs256(RSA_PUBLIC)), &token, ALGORITHM).await;
    }
    // Each layer, with a token that would be good for another.
    for keys in each_kind() {
        let served = keys.clone();
        let layer = layer(keys);
        let mut refused = 0;
        for (name, key, algorithm) in [
            ("HS256", hmac(SECRET), Algorithm::HS256),
            ("RS256", rsa(), Algorithm::RS256),
            ("ES256", p256(), Algorithm::ES256),
            ("EdDSA", super::ed25519(), Algorithm::EdDSA),
        ] {
            let token = token(&json!({"alg": name}), &alice(), &key, algorithm);
            if format!("{served:?}").contains(name) {
                passes(&layer, &token).await;
            } else {
                refuses(&layer, &token, ALGORITHM).await;
                refused += 1;
            }
        }
        assert_eq!(refused, 3);
    }
}

#[tokio::test]
async fn a_token_that_was_changed_is_refused() {
    let layer = layer(JwtKeys::hs256(SECRET));
    let good = signed(&alice());
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts")
    };
    let mallory = encode(&super::but("sub", json!("mallory")));
    refuses(&layer, &format!("{header}.{mallory}.{signature}"), SIGNATURE).await;
    let other = encode(&json!({"alg": "HS256", "kid": "other"}));
    refuses(&layer, &format!("{other}.{payload}.{signature}"), SIGNATURE).await;
    refuses(&layer, &format!("{header}.{payload}."), SIGNATURE).await;
    let wrong = token(&json!({"alg": "HS256"}), &alice(), &hmac(&[0; 32]), Algorithm::HS256);
    refuses(&layer, &wrong, SIGNATURE).await;
    passes(&layer, &good).await;
}

#[tokio::test]
async fn a_token_that_is_cut_anywhere_is_refused() {
    let layer = layer(JwtKeys::hs256(SECRET));
    let good = signed(&alice());
    let inner = Inner::default();
    for len in 1..good.len() {
        let answer = send(&layer, &inner, bearing(&good[..len])).await;
        assert_eq!(answer.status, 401, "{len} of {}", good.len());
        is_refusal(&answer, &answer.body);
    }
    assert_eq!(inner.calls(), 0);
}

#[tokio::test]
async fn garbage_is_refused() {
    let layer = layer(JwtKeys::hs256(SECRET));
    let good = signed(&alice());
    let (message, _) = good.rsplit_once('.').unwrap();
    let json = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let cases = [
        "x".to_owned(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        format!("{good}."),
        format!(".{good}"),
        format!("{good}.{good}"),
        format!("{good}="),
        good.replace('.', "!"),
        "!!!.???.***".to_owned(),
        format!("{message}.+/+/"),
        format!("{}.{}.AA", json("not json"), json("{}")),
        format!("{}.{}.AA", json("[]"), json("{}")),
        format!("{}.{}.AA", json("{}"), json("{}")),
        format!("{}.{}.AA", json(r#"{"alg":["HS256"]}"#), json("{}")),
        format!("{}.{}.AA", json(r#"{"alg":"HS256","alg":"none"}"#), json("{}")),
        format!("{}.{}.AA", json(r#"{"alg":"HS256","kid":7}"#), json("{}")),
        format!("{}.{}.AA", json(&"[".repeat(5_000)), json("{}")),
    ];
    for case in cases {
        refuses(&layer, &case, MALFORMED).await;
    }
}

#[tokio::test]
async fn an_extension_that_must_be_understood_is_not() {
    let layer = layer(JwtKeys::hs256(SECRET));
    for crit in [json!(["b64"]), json!(["exp"]), json!([]), json!(null)] {
        let header = json!({"alg": "HS256", "b64": true, "crit": crit});
        let token = token(&header, &alice(), &hmac(SECRET), Algorithm::HS256);
        refuses(&layer, &token, MALFORMED).await;
    }
}

#[tokio::test]
async fn a_long_token_is_refused_before_anything_is_decoded() {
    const TOO_LONG: &str = "the token is too long";
    let padded = |len: usize| signed(&super::but("pad", json!("x".repeat(len))));
    let standard = layer(JwtKeys::hs256(SECRET));
    let huge = padded(75_000);
    assert!(huge.len() > 100_000);
    refuses(&standard, &huge, TOO_LONG).await;
    // Not even a look: this is malformed as well.
    refuses(&standard, &"x".repeat(16_385), TOO_LONG).await;
    refuses(&standard, &"x".repeat(16_384), MALFORMED).await;
    passes(&standard, &padded(12_000)).await;

    let good = signed(&alice());
    let exact = builder(JwtKeys::hs256(SECRET)).max_bytes(good.len()).build().unwrap();
    passes(&exact, &good).await;
    let less = builder(JwtKeys::hs256(SECRET)).max_bytes(good.len() - 1).build().unwrap();
    refuses(&less, &good, TOO_LONG).await;
}

#[tokio::test]
async fn two_tokens_are_a_bad_request_also_if_both_are_good() {
    let good = format!("Bearer {}", signed(&alice()));
    let spaced = format!("{good} {good}");
    let cases: [Lines<'_>; 4] = [
        &[("authorization", &good), ("authorization", &good)],
        &[("authorization", &good), ("authorization", "Basic YTpi")],
        &[("authorization", ""), ("authorization", &good)],
        &[("authorization", &spaced)],
    ];
    let strict = builder(JwtKeys::hs256(SECRET)).build().unwrap();
    let optional = builder(JwtKeys::hs256(SECRET)).optional().build().unwrap();
    for layer in [strict, optional] {
        for lines in cases {
            let inner = Inner::default();
            let answer = send(&layer, &inner, request(lines)).await;
            assert_eq!((answer.status.as_u16(), inner.calls()), (400, 0), "{lines:?}");
            assert_eq!(answer.challenge(), Some("Bearer error=\"invalid_request\""));
        }
    }
}
