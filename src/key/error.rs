use std::fmt;

use http::StatusCode;

/// Why no key could be drawn from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    status: StatusCode,
    message: &'static str,
    challenge: Option<&'static str>,
    cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Missing,
    Invalid,
    Setup,
}

impl KeyError {
    /// The request does not carry what the key is made of; `message` tells the client so.
    #[must_use]
    pub const fn missing(message: &'static str) -> Self {
        Self::new(message, Cause::Missing)
    }

    /// The request carries no credential. Where the policy rejects it, the answer is 401 with
    /// `WWW-Authenticate: challenge` (RFC 9110 §15.5.2).
    #[must_use]
    pub const fn unauthenticated(message: &'static str, challenge: &'static str) -> Self {
        Self::missing(message).with_status(StatusCode::UNAUTHORIZED).with_challenge(challenge)
    }

    /// The request carries it, but malformed.
    #[must_use]
    pub const fn invalid(message: &'static str) -> Self {
        Self::new(message, Cause::Invalid)
    }

    /// The service that the limiter stands in does not provide it, whatever a client sends. This is
    /// logged as an error, and `message` says what to add.
    #[must_use]
    pub const fn setup(message: &'static str) -> Self {
        Self::new(message, Cause::Setup)
    }

    /// Answers with `status` instead of 400, where the policy rejects such requests.
    #[must_use]
    pub const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Answers with `WWW-Authenticate: challenge` (RFC 9110 §11.6.1) where the status is 401, or 400
    /// for what is malformed.
    #[must_use]
    pub const fn with_challenge(mut self, challenge: &'static str) -> Self {
        self.challenge = Some(challenge);
        self
    }

    /// The status of the answer, where the policy rejects such requests.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// What to tell the client, or, of an error of set-up, the service's log.
    #[must_use]
    pub const fn message(&self) -> &'static str {
        self.message
    }

    /// The challenge that an answer with status 401 carries, or 400 for what is malformed.
    #[must_use]
    pub const fn challenge(&self) -> Option<&'static str> {
        self.challenge
    }

    /// Whether the request just did not carry a key.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self.cause, Cause::Missing)
    }

    /// Whether the service is set up so that no request can have a key.
    #[must_use]
    pub const fn is_setup(&self) -> bool {
        matches!(self.cause, Cause::Setup)
    }

    const fn new(message: &'static str, cause: Cause) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message, challenge: None, cause }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for KeyError {}
