//! Layers that cannot be built say why.

use std::time::Duration;

use serde_json::json;
use tollgate::{
    Claims, JwtKeys, JwtLayer,
    auth::{JwtAlgorithm, JwtKey, JwtLayerBuilder},
};

use super::{ED25519_PUBLIC, P256, P256_PUBLIC, P384_PUBLIC, RSA, RSA_PUBLIC, SECRET};

const SMALL: &str = include_str!("../keys/rsa-1024.pub.pem");

fn error(builder: JwtLayerBuilder<Claims>) -> String {
    builder.build().unwrap_err().to_string()
}

fn keys(keys: JwtKeys) -> JwtLayerBuilder<Claims> {
    JwtLayer::new(keys)
}

#[test]
fn without_an_algorithm_there_is_no_layer() {
    let none = error(keys(JwtKeys::hs256(SECRET)).algorithms([]));
    assert!(none.contains("no algorithms"), "{none}");
    let none = error(JwtLayer::with_source(JwtKeys::hs256(SECRET), []));
    assert!(none.contains("no algorithms"), "{none}");
    for empty in [JwtKeys::new([]), JwtKeys::jwks(r#"{"keys":[]}"#)] {
        let none = error(keys(empty));
        assert!(none.contains("no key"), "{none}");
    }
}

#[test]
fn an_algorithm_that_fits_no_key_is_named() {
    use JwtAlgorithm::{EdDsa, Es256, Es384, Hs256, Ps256, Rs256};
    let cases = [
        (JwtKeys::rs256(RSA_PUBLIC), Hs256, "HS256", "RS256"),
        (JwtKeys::rs256(RSA_PUBLIC), Ps256, "PS256", "RS256"),
        (JwtKeys::hs256(SECRET), Rs256, "RS256", "HS256"),
        (JwtKeys::es256(P256_PUBLIC), Es384, "ES384", "ES256"),
        (JwtKeys::es256(P256_PUBLIC), EdDsa, "EdDSA", "ES256"),
        (JwtKeys::ed25519(ED25519_PUBLIC), Es256, "ES256", "EdDSA"),
    ];
    for (of, algorithm, stray, served) in cases {
        let error = error(keys(of).algorithms([algorithm]));
        assert!(error.contains(stray) && error.contains(served), "{error}");
    }
}

#[test]
fn no_key_of_one_kind_is_made_for_an_algorithm_of_another() {
    for algorithm in JwtAlgorithm::ALL {
        let secret = JwtKey::secret(*algorithm, [7; 64]);
        let hmac = algorithm.name().starts_with("HS");
        assert_eq!(secret.is_ok(), hmac, "{algorithm}");
        let starts = [("RS", RSA_PUBLIC), ("PS", RSA_PUBLIC), ("ES256", P256_PUBLIC)];
        let starts = starts.iter().chain(&[("ES384", P384_PUBLIC), ("EdDSA", ED25519_PUBLIC)]);
        for (start, pem) in starts {
            let fits = algorithm.name().starts_with(start)
                || *pem == RSA_PUBLIC
                    && algorithm.name()[1..].starts_with('S')
                    && algorithm.name().starts_with(['R', 'P']);
            let key = JwtKey::pem(*algorithm, pem);
            assert_eq!(key.is_ok(), fits, "{algorithm} of the key for {start}");
            if let Err(error) = key {
                assert!(error.to_string().contains(algorithm.name()), "{error}");
            }
        }
        if hmac {
            // A public key where a secret should be would let everybody sign.
            for pem in [RSA_PUBLIC, P256_PUBLIC, SMALL] {
                let error = JwtKey::secret(*algorithm, pem).unwrap_err().to_string();
                assert!(error.contains(algorithm.name()) && error.contains("PEM"), "{error}");
            }
        }
    }
}

#[test]
fn keys_that_are_weak_broken_or_private_are_refused() {
    let cases = [
        (JwtKeys::hs256("short"), "5 bytes"),
        (JwtKeys::hs256(""), "0 bytes"),
        (JwtKeys::hs256(&SECRET[1..]), "31 bytes"),
        (JwtKeys::rs256(SMALL), "1024 bits"),
        (JwtKeys::rs256(""), "RS256"),
        (JwtKeys::rs256(RSA), "RS256"),
        (JwtKeys::es256(P256), "ES256"),
        (JwtKeys::rs256(RSA_PUBLIC.replace("MII", "AAA")), "RS256"),
        (JwtKeys::es256(&P256_PUBLIC[..100]), "ES256"),
        (JwtKeys::jwks("{}"), "keys"),
        (JwtKeys::jwks("nothing"), "Key Set"),
        (JwtKeys::jwks(RSA_PUBLIC), "Key Set"),
    ];
    for (of, named) in cases {
        let error = error(keys(of));
        assert!(error.contains(named), "{named}: {error}");
    }
}

#[test]
fn a_key_of_a_set_that_cannot_be_used_is_named() {
    let x = "A".repeat(43);
    let cases = [
        (json!({"kty": "RSA", "kid": "k1", "n": "AQAB", "e": "AQAB"}), "k1"),
        (json!({"kty": "RSA", "kid": "k1", "e": "AQAB"}), "\"n\""),
        (json!({"kty": "RSA", "kid": "k1", "n": "+/+/", "e": "AQAB"}), "\"n\""),
        (json!({"kty": "RSA", "kid": "k1", "alg": "HS256", "n": "AQAB", "e": "AQAB"}), "HS256"),
        (json!({"kty": "EC", "kid": "k1", "crv": "P-256", "alg": "RS256"}), "RS256"),
        (json!({"kty": "EC", "kid": "k1", "crv": "P-256", "x": x, "y": x}), "k1"),
        (json!({"kty": "OKP", "kid": "k1", "crv": "Ed25519", "x": "AQAB"}), "32 bytes"),
        (json!({"kty": "oct", "kid": "k1", "k": "AQAB"}), "alg"),
        (json!({"kty": "oct", "kid": "k1", "alg": "HS256", "k": "AQAB"}), "3 bytes"),
        (json!({"kid": "k1"}), "kty"),
        (json!("k1"), "key 0"),
    ];
    for (jwk, named) in cases {
        let error = error(keys(JwtKeys::jwks(json!({"keys": [jwk]}).to_string())));
        assert!(error.contains(named), "{jwk}: {error}");
    }
}

#[test]
fn keys_that_cannot_be_told_apart_are_refused() {
    let key = |byte: u8| JwtKey::secret(JwtAlgorithm::Hs256, [byte; 32]).unwrap();
    let unnamed = error(keys(JwtKeys::new([key(1), key(2)])));
    assert!(unnamed.contains("HS256"), "{unnamed}");
    let named = error(keys(JwtKeys::new([key(1).kid("a"), key(2).kid("b"), key(3).kid("a")])));
    assert!(named.contains("\"a\""), "{named}");
    let apart = JwtKeys::new([
        key(1).kid("a"),
        JwtKey::pem(JwtAlgorithm::Rs256, RSA_PUBLIC).unwrap().kid("a"),
    ]);
    assert!(keys(apart).build().is_ok());
}

#[test]
fn settings_that_cannot_be_meant_are_named() {
    let builder = || keys(JwtKeys::hs256(SECRET));
    let leeway = error(builder().leeway(Duration::from_secs(601)));
    assert!(leeway.contains("601s"), "{leeway}");
    assert!(error(builder().issuer("")).contains("issuer"));
    assert!(error(builder().audience("api").audience("")).contains("audience"));
    assert!(builder().leeway(Duration::from_secs(600)).build().is_ok());
}

#[test]
fn algorithms_have_the_names_that_stand_in_tokens() {
    for algorithm in JwtAlgorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(*algorithm));
        assert_eq!(algorithm.to_string(), algorithm.name());
    }
    for name in ["none", "", "hs256", "ES512"] {
        let error = name.parse::<JwtAlgorithm>().unwrap_err().to_string();
        assert!(error.contains(&format!("{name:?}")), "{error}");
    }
}
