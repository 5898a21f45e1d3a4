//! Key sets (RFC 7517), as issuers publish them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;

use super::{JwtAlgorithm, JwtKey, algorithm::Family};
use crate::auth::AuthError;

/// What is read of a key.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    k: Option<String>,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// The keys of a set that can verify tokens.
///
/// Others, such as those for encryption or of unknown types, are left out (RFC 7517 §5).
pub(super) fn keys(text: &str) -> Result<Vec<JwtKey>, AuthError> {
    let set: Set = serde_json::from_str(text)
        .map_err(|error| AuthError::new(format!("this is no JSON Web Key Set: {error}")))?;
    let mut keys = Vec::new();
    for (at, value) in set.keys.into_iter().enumerate() {
        let jwk: Jwk = serde_json::from_value(value)
            .map_err(|error| AuthError::new(format!("key {at} of the key set: {error}")))?;
        let name = jwk.kid.as_ref().map_or_else(|| at.to_string(), |kid| format!("{kid:?}"));
        let key = jwk
            .key()
            .map_err(|error| AuthError::new(format!("key {name} of the key set: {error}")))?;
        keys.extend(key);
    }
    Ok(keys)
}

impl Jwk {
    /// The key, if it is one that can verify tokens.
    fn key(self) -> Result<Option<JwtKey>, AuthError> {
        let signs = self.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let ops = self.key_ops.as_deref();
        let verifies = ops.is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        let algorithm = match self.alg.as_deref().map(JwtAlgorithm::named) {
            Some(None) => return Ok(None),
            Some(known) => known,
            None => None,
        };
        let family = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Family::Rsa,
            ("EC", Some("P-256")) => Family::P256,
            ("EC", Some("P-384")) => Family::P384,
            ("OKP", Some("Ed25519")) => Family::Ed25519,
            ("oct", _) => Family::Hmac,
            _ => return Ok(None),
        };
        if !(signs && verifies) {
            return Ok(None);
        }
        if let Some(algorithm) = algorithm
            && algorithm.family() != family
        {
            let kty = self.kty;
            return Err(AuthError::new(format!("{algorithm} does not fit the type {kty:?}")));
        }
        let field = |name: &str, value: Option<&String>| {
            let text = value.ok_or_else(|| AuthError::new(format!("there is no {name:?}")))?;
            BASE64_URL_SAFE_NO_PAD
                .decode(text)
                .map_err(|error| AuthError::new(format!("{name:?} is not base64url: {error}")))
        };
        let key = match family {
            Family::Rsa => DecodingKey::from_rsa_raw_components(
                &field("n", self.n.as_ref())?,
                &field("e", self.e.as_ref())?,
            ),
            Family::P256 | Family::P384 => {
                // An uncompressed point (SEC 1 §2.3.3).
                let point = [vec![4], field("x", self.x.as_ref())?, field("y", self.y.as_ref())?];
                DecodingKey::from_ec_der(&point.concat())
            }
            Family::Ed25519 => DecodingKey::from_ed_der(&field("x", self.x.as_ref())?),
            Family::Hmac => {
                // Which hash it is for says how long it has to be.
                let algorithm =
                    algorithm.ok_or_else(|| AuthError::new("a secret needs an \"alg\""))?;
                let key = JwtKey::secret(algorithm, field("k", self.k.as_ref())?)?;
                return Ok(Some(name(key, self.kid)));
            }
        };
        let key = JwtKey::checked(family, algorithm, key)?;
        Ok(Some(name(key, self.kid)))
    }
}

fn name(key: JwtKey, kid: Option<String>) -> JwtKey {
    match kid {
        Some(kid) => key.kid(kid),
        None => key,
    }
}
