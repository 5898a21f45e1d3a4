use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{JwtAlgorithm, JwtKey, refusal};
use crate::key::KeyError;

/// A token of which nothing is verified (RFC 7515 §3.1).
pub(super) struct Token<'a> {
    header: Vec<u8>,
    /// What was signed: the header and the payload, as they were sent.
    message: &'a [u8],
    payload: &'a [u8],
    signature: &'a [u8],
}

/// The header: nothing of it may be trusted, as the client could have written it.
#[derive(Deserialize)]
pub(super) struct Header<'a> {
    #[serde(borrow)]
    alg: Cow<'a, str>,
    #[serde(borrow, default)]
    kid: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "present")]
    crit: bool,
}

impl<'a> Token<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, KeyError> {
        let mut parts = text.split(|byte| *byte == b'.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refusal::MALFORMED);
        };
        let message = &text[..header.len() + 1 + payload.len()];
        Ok(Self { header: decode(header)?, message, payload, signature })
    }

    pub(super) fn header(&self) -> Result<Header<'_>, KeyError> {
        let header: Header<'_> =
            serde_json::from_slice(&self.header).map_err(|_| refusal::MALFORMED)?;
        // Extensions that must be understood, of which none is (RFC 7515 §4.1.11).
        if header.crit {
            return Err(refusal::MALFORMED);
        }
        Ok(header)
    }

    /// The payload, once `key` has verified that it was signed.
    pub(super) fn verify(
        &self,
        algorithm: JwtAlgorithm,
        key: &JwtKey,
    ) -> Result<Vec<u8>, KeyError> {
        let signature = decode(self.signature)?;
        if !key.verifies(algorithm, self.message, &signature) {
            return Err(refusal::SIGNATURE);
        }
        decode(self.payload)
    }
}

impl Header<'_> {
    /// The algorithm, if it is one of those that are accepted.
    pub(super) fn algorithm(&self, accepted: &[JwtAlgorithm]) -> Result<JwtAlgorithm, KeyError> {
        let algorithm = accepted.iter().find(|one| one.name() == self.alg);
        algorithm.copied().ok_or(refusal::ALGORITHM)
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }
}

fn decode(part: &[u8]) -> Result<Vec<u8>, KeyError> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| refusal::MALFORMED)
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}
