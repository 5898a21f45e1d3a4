use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Extensions;
use serde::de::DeserializeOwned;
use tower_layer::Layer;

use super::{
    JwtAlgorithm, JwtKey, JwtKeys, JwtLayerBuilder, KeyLookup, KeySource, KeySourceError,
    builder::Keys, claims::Registered, refusal, token::Token,
};
use crate::{
    auth::{
        Auth,
        gate::{Check, Checked, Gate},
        grant, grant_nothing,
    },
    http::respond::Respond,
    key::{Credential, KeyError, RequestHead, Tier},
    telemetry,
    time::Clock,
};

/// Lets only those requests pass whose `Authorization: Bearer` has a JSON Web Token that it has
/// verified, and puts its claims into their extensions.
///
/// `C` is what the claims are read into: [`Claims`](super::Claims), or a type of your own. A token that
/// lacks what `C` needs is refused.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate::{
///     Claims, JwtKeys, JwtLayer, MemoryStore, PeerIp, Quota, RateLimitLayer, Tier, key,
/// };
///
/// # let secret = [7; 32];
/// let auth = JwtLayer::<Claims>::new(JwtKeys::hs256(secret))
///     .issuer("https://id.example")
///     .audience("api")
///     .tier(|claims| claims.text("plan").map(Tier::new))
///     .build()?;
/// let caller = key::claim(|claims: &Claims| &claims.sub);
///
/// let store = MemoryStore::new();
/// let app: Router = Router::new()
///     .route("/", get(|| async { "hello" }))
///     .layer(RateLimitLayer::new(caller, Quota::per_minute(60), store.clone()))
///     .layer(auth)
///     .layer(RateLimitLayer::new(PeerIp, Quota::per_minute(300), store));
/// # Ok::<(), tollgate::auth::AuthError>(())
/// ```
///
/// # What is verified
///
/// The signature, by one of the configured algorithms and a key that is for it; `exp`, which must be
/// there; `nbf`, if it is there; `iss` and `aud`, as configured. Times are numbers of seconds, also with
/// fractions; from `exp` plus the leeway on, a token has expired. A header that asks for an extension
/// by `crit` is refused.
///
/// # Answers
///
/// | request | answer | `WWW-Authenticate: Bearer` |
/// |---|---|---|
/// | without a token | 401, or passes if this is [`optional`](JwtLayerBuilder::optional) | `realm="api"` |
/// | with a token that is refused | 401 | `error="invalid_token"`, and why |
/// | with two headers, or a space in the token | 400 | `error="invalid_request"` |
/// | while the [`KeySource`] fails | 503, with a short `Retry-After` | |
///
/// A request with another scheme, such as `Basic`, is one without a token. If requests without a token
/// may pass, a `C` that was in the extensions before is removed. For tiers, see the [module](crate::auth).
pub struct JwtLayer<C>(Arc<Shared<C>>);

pub(super) type Grant<C> = Box<dyn Fn(&C) -> Option<Tier> + Send + Sync>;

/// What all services of one layer share.
pub(super) struct Shared<C> {
    pub(super) source: Box<dyn KeySource>,
    pub(super) algorithms: Box<[JwtAlgorithm]>,
    pub(super) issuers: Box<[Box<str>]>,
    pub(super) audiences: Box<[Box<str>]>,
    /// In microseconds.
    pub(super) leeway: u64,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) optional: bool,
    pub(super) max_bytes: usize,
    pub(super) patience: Duration,
    pub(super) grant: Option<Grant<C>>,
    pub(super) respond: Arc<dyn Respond>,
    /// Whether the source failed when it was last asked.
    pub(super) failing: AtomicBool,
    pub(super) of: PhantomData<fn() -> C>,
}

impl<C> JwtLayer<C> {
    /// Begins a layer that verifies by keys which are known beforehand.
    #[expect(clippy::new_ret_no_self, reason = "a layer that exists is valid; this begins one")]
    pub fn new(keys: JwtKeys) -> JwtLayerBuilder<C> {
        JwtLayerBuilder::new(Keys::Known(keys))
    }

    /// Begins a layer that looks keys up, for these algorithms.
    pub fn with_source(
        source: impl KeySource,
        algorithms: impl IntoIterator<Item = JwtAlgorithm>,
    ) -> JwtLayerBuilder<C> {
        JwtLayerBuilder::new(Keys::Source(Box::new(source))).algorithms(algorithms)
    }

    pub(super) fn of(shared: Shared<C>) -> Self {
        Self(Arc::new(shared))
    }
}

impl<S, C> Layer<S> for JwtLayer<C> {
    type Service = Auth<S, Self>;

    fn layer(&self, inner: S) -> Self::Service {
        Auth::new(inner, self.clone())
    }
}

type Found = Result<Option<JwtKey>, KeySourceError>;

impl<C> Gate for JwtLayer<C>
where
    C: DeserializeOwned + Clone + Send + Sync + 'static,
{
    type Identity = C;
    type Found = Found;

    fn check(&self, head: RequestHead<'_>) -> Check<Self> {
        let shared = &*self.0;
        let looked = shared.bearer(head).and_then(|token| {
            let Some(token) = token else { return Ok(None) };
            let header = token.header()?;
            let algorithm = header.algorithm(&shared.algorithms)?;
            Ok(Some((shared.source.find(algorithm, header.kid()), algorithm, token)))
        });
        match looked {
            Ok(Some((KeyLookup::Known(key), algorithm, token))) => {
                Check::Done(shared.verify(&token, algorithm, key).map(Some))
            }
            Ok(Some((KeyLookup::Later(looking), ..))) => {
                let patience = shared.patience;
                Check::Look(Box::pin(async move {
                    let late =
                        |_| Err(KeySourceError::new(format!("no answer within {patience:?}")));
                    tokio::time::timeout(patience, looking).await.unwrap_or_else(late)
                }))
            }
            Ok(None) if shared.optional => Check::Done(Ok(None)),
            Ok(None) => Check::Done(Err(refusal::MISSING)),
            Err(error) => Check::Done(Err(error)),
        }
    }

    fn resume(&self, head: RequestHead<'_>, found: Found) -> Checked<Self> {
        let shared = &*self.0;
        let key = shared.found(found)?;
        let token = shared.bearer(head)?.ok_or(refusal::MISSING)?;
        let algorithm = token.header()?.algorithm(&shared.algorithms)?;
        shared.verify(&token, algorithm, key).map(Some)
    }

    fn admit(&self, claims: Option<C>, extensions: &mut Extensions) {
        match (&self.0.grant, &claims) {
            (Some(tier), Some(claims)) => grant(tier(claims), extensions),
            (Some(_), None) => grant_nothing(extensions),
            (None, _) => {}
        }
        match claims {
            Some(claims) => extensions.insert(claims),
            None => extensions.remove::<C>(),
        };
    }

    fn responder(&self) -> &dyn Respond {
        &*self.0.respond
    }
}

impl<C> Shared<C> {
    /// The token of a request, if it has one.
    fn bearer<'a>(&self, head: RequestHead<'a>) -> Result<Option<Token<'a>>, KeyError> {
        let token = Credential::Bearer.read(head).map_err(|_| refusal::BAD_REQUEST)?;
        match token {
            Some(token) if token.len() > self.max_bytes => Err(refusal::TOO_LONG),
            token => token.map(Token::parse).transpose(),
        }
    }

    /// What the source has found. That it fails is logged once, until it does not.
    fn found(&self, found: Found) -> Result<Option<JwtKey>, KeyError> {
        let failed = self.failing.swap(found.is_err(), Ordering::Relaxed);
        match &found {
            Err(error) if !failed => telemetry::keys_failing(error),
            Ok(_) if failed => telemetry::keys_recovered(),
            _ => {}
        }
        found.map_err(|_| refusal::NO_KEYS)
    }
}

impl<C: DeserializeOwned> Shared<C> {
    fn verify(
        &self,
        token: &Token<'_>,
        algorithm: JwtAlgorithm,
        key: Option<JwtKey>,
    ) -> Result<C, KeyError> {
        let key = key.ok_or(refusal::UNKNOWN_KEY)?;
        let payload = token.verify(algorithm, &key)?;
        let registered: Registered<'_> =
            serde_json::from_slice(&payload).map_err(|_| refusal::MALFORMED)?;
        self.check(&registered)?;
        serde_json::from_slice(&payload).map_err(|_| refusal::CLAIMS)
    }

    fn check(&self, claims: &Registered<'_>) -> Result<(), KeyError> {
        let now = self.clock.now().as_micros();
        let expiry = claims.exp.ok_or(refusal::NO_EXPIRY)?;
        if now >= expiry.as_micros().saturating_add(self.leeway) {
            return Err(refusal::EXPIRED);
        }
        if claims.nbf.is_some_and(|start| now.saturating_add(self.leeway) < start.as_micros()) {
            return Err(refusal::NOT_YET);
        }
        let issuer = claims.iss.as_deref();
        if !self.issuers.is_empty() && !self.issuers.iter().any(|one| Some(&**one) == issuer) {
            return Err(refusal::ISSUER);
        }
        let ours = match &claims.aud {
            Some(audience) => self.audiences.iter().any(|one| audience.has(one)),
            None => self.audiences.is_empty(),
        };
        if ours { Ok(()) } else { Err(refusal::AUDIENCE) }
    }
}

impl<C> Clone for JwtLayer<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> fmt::Debug for JwtLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtLayer")
            .field("source", &self.0.source)
            .field("algorithms", &self.0.algorithms)
            .field("issuers", &self.0.issuers)
            .field("audiences", &self.0.audiences)
            .finish_non_exhaustive()
    }
}
