use http::{HeaderName, header::AUTHORIZATION};

use super::{KeyError, RequestHead};

/// Where in a request a secret of the caller stands.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// `Authorization: Bearer` (RFC 6750, section 2.1).
    Bearer,
    /// The whole value of a header.
    Header(HeaderName),
}

impl Credential {
    /// The secret, which is not empty; `None` if there is none.
    ///
    /// It is an error if it was sent twice, or if a lenient reader would see another one.
    pub(crate) fn read<'a>(&self, head: RequestHead<'a>) -> Result<Option<&'a [u8]>, KeyError> {
        let secret = match self {
            Self::Header(name) => head.line(name)?,
            Self::Bearer => head.line(AUTHORIZATION)?.map_or(Ok(None), bearer_token)?,
        };
        Ok(secret.filter(|secret| !secret.is_empty()))
    }

    /// The error of a request without it.
    pub(crate) const fn absent(&self) -> KeyError {
        let challenge = match self {
            Self::Bearer => "Bearer",
            Self::Header(_) => "ApiKey",
        };
        KeyError::unauthenticated("the request carries no API key", challenge)
    }
}

fn bearer_token(credentials: &[u8]) -> Result<Option<&[u8]>, KeyError> {
    let end = credentials.iter().position(u8::is_ascii_whitespace).unwrap_or(credentials.len());
    let (scheme, token) = credentials.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    let token = token.trim_ascii();
    // With a space inside, a lenient verifier would see another token than was counted.
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(KeyError::invalid("the bearer token is malformed"));
    }
    Ok(Some(token))
}
