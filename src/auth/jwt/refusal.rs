//! Why requests are turned away (RFC 6750 §3).

use http::StatusCode;

use crate::key::KeyError;

const fn refused(message: &'static str, challenge: &'static str) -> KeyError {
    KeyError::invalid(message).with_status(StatusCode::UNAUTHORIZED).with_challenge(challenge)
}

macro_rules! invalid_token {
    ($($name:ident: $message:literal,)+) => {$(
        pub(super) const $name: KeyError = refused(
            $message,
            concat!("Bearer error=\"invalid_token\", error_description=\"", $message, "\""),
        );
    )+};
}

invalid_token! {
    TOO_LONG: "the token is too long",
    MALFORMED: "the token is malformed",
    ALGORITHM: "the token is signed by an algorithm that is not accepted",
    UNKNOWN_KEY: "the token is signed by an unknown key",
    SIGNATURE: "the signature of the token is wrong",
    NO_EXPIRY: "the token has no time at which it expires",
    EXPIRED: "the token has expired",
    NOT_YET: "the token is not valid yet",
    ISSUER: "the token is from another issuer",
    AUDIENCE: "the token is for another audience",
    CLAIMS: "the token lacks claims that are needed here",
}

/// Whoever sends no token is not told of an error.
pub(super) const MISSING: KeyError =
    KeyError::unauthenticated("the request carries no token", "Bearer realm=\"api\"");

/// Two tokens, or one with a space in it.
pub(super) const BAD_REQUEST: KeyError =
    KeyError::invalid("the request must carry one token in one Authorization header")
        .with_challenge("Bearer error=\"invalid_request\"");

/// Not the fault of who calls.
pub(super) const NO_KEYS: KeyError =
    KeyError::invalid("the service cannot verify tokens right now")
        .with_status(StatusCode::SERVICE_UNAVAILABLE);
