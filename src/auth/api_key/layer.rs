use std::{convert::Infallible, fmt, sync::Arc};

use http::{Extensions, HeaderName};
use tower_layer::Layer;

use super::{ApiKeys, keys::Caller};
use crate::{
    auth::{
        Auth,
        gate::{Check, Checked, Gate},
        grant, grant_nothing,
    },
    http::respond::{Respond, Text},
    key::{Credential, KeyError, KnownKey, RequestHead},
};

/// Tells known API keys from others, and puts a [`KnownKey`] and the owner's
/// [`Tier`](crate::Tier) into the extensions of the request.
///
/// Requests without a known key are answered 401, or pass [without](Self::optional) one. A limit by
/// [`key::known_key`](crate::key::known_key) then counts what passes, and random keys make no keys in
/// the store.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate::{
///     ApiKeyLayer, ApiKeys, KeyExtractor, MemoryStore, PeerIp, Quota, RateLimitLayer, Tier, key,
/// };
///
/// let keys = ApiKeys::builder()
///     .key(ApiKeys::digest("9b0a5c1e7f"), "acme", Tier::new("pro")) // digests, in a configuration
///     .build()?;
/// let caller = key::known_key().or(PeerIp);
///
/// let app: Router = Router::new()
///     .route("/", get(|| async { "hello" }))
///     .layer(RateLimitLayer::new(caller, Quota::per_minute(100), MemoryStore::new()))
///     .layer(ApiKeyLayer::new(keys).optional());
/// # Ok::<(), tollgate::auth::AuthError>(())
/// ```
///
/// A key that is sent on two lines is answered 400. Whatever `KnownKey` was in the extensions before is
/// removed; for tiers, see the [module](crate::auth).
#[derive(Clone)]
pub struct ApiKeyLayer(Arc<Shared>);

#[derive(Clone)]
struct Shared {
    keys: ApiKeys,
    credential: Credential,
    absent: Answer,
    unknown: Answer,
    respond: Arc<dyn Respond>,
}

/// What becomes of a request without a known key.
#[derive(Clone, Copy, Debug)]
enum Answer {
    TurnAway,
    Pass,
}

impl ApiKeyLayer {
    /// Lets only requests pass that have one of these keys in the header `X-Api-Key`.
    #[must_use]
    pub fn new(keys: ApiKeys) -> Self {
        Self(Arc::new(Shared {
            keys,
            credential: Credential::Header(HeaderName::from_static("x-api-key")),
            absent: Answer::TurnAway,
            unknown: Answer::TurnAway,
            respond: Arc::new(Text),
        }))
    }

    /// Reads the key from this header, whose value it is.
    #[must_use]
    pub fn header(self, name: HeaderName) -> Self {
        self.change(|shared| shared.credential = Credential::Header(name))
    }

    /// Reads the key from `Authorization: Bearer` (RFC 6750, section 2.1).
    #[must_use]
    pub fn bearer(self) -> Self {
        self.change(|shared| shared.credential = Credential::Bearer)
    }

    /// Lets requests pass that have no key. One that is unknown is still answered 401.
    #[must_use]
    pub fn optional(self) -> Self {
        self.change(|shared| shared.absent = Answer::Pass)
    }

    /// Lets all requests pass: one with an unknown key as if it had none.
    #[must_use]
    pub fn unknown_as_anonymous(self) -> Self {
        self.change(|shared| {
            shared.absent = Answer::Pass;
            shared.unknown = Answer::Pass;
        })
    }

    /// How requests are answered that do not reach the service. Default: [`Text`]. The challenge is
    /// added to it.
    #[must_use]
    pub fn respond(self, respond: impl Respond) -> Self {
        self.change(|shared| shared.respond = Arc::new(respond))
    }

    fn change(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.0);
        change(&mut shared);
        Self(Arc::new(shared))
    }
}

impl<S> Layer<S> for ApiKeyLayer {
    type Service = Auth<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Auth::new(inner, self.clone())
    }
}

impl Gate for ApiKeyLayer {
    type Identity = Caller;
    type Found = Infallible;

    fn check(&self, head: RequestHead<'_>) -> Check<Self> {
        Check::Done(self.0.check(head))
    }

    fn resume(&self, _: RequestHead<'_>, found: Infallible) -> Checked<Self> {
        match found {}
    }

    fn admit(&self, caller: Option<Caller>, extensions: &mut Extensions) {
        if let Some(Caller { known, tier }) = caller {
            extensions.insert(known);
            grant(tier, extensions);
        } else {
            extensions.remove::<KnownKey>();
            grant_nothing(extensions);
        }
    }

    fn responder(&self) -> &dyn Respond {
        &*self.0.respond
    }
}

impl Shared {
    fn check(&self, head: RequestHead<'_>) -> Checked<ApiKeyLayer> {
        let (answer, error) = match self.credential.read(head)? {
            Some(secret) => match self.keys.find(secret) {
                Some(caller) => return Ok(Some(caller.clone())),
                None => (self.unknown, self.unknown()),
            },
            None => (self.absent, self.credential.absent()),
        };
        match answer {
            Answer::TurnAway => Err(error),
            Answer::Pass => Ok(None),
        }
    }

    const fn unknown(&self) -> KeyError {
        let challenge = match self.credential {
            Credential::Bearer => "Bearer error=\"invalid_token\"",
            Credential::Header(_) => "ApiKey",
        };
        KeyError::invalid("the API key is not known")
            .with_status(http::StatusCode::UNAUTHORIZED)
            .with_challenge(challenge)
    }
}

impl fmt::Debug for ApiKeyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyLayer")
            .field("keys", &self.0.keys)
            .field("credential", &self.0.credential)
            .field("absent", &self.0.absent)
            .field("unknown", &self.0.unknown)
            .finish_non_exhaustive()
    }
}
