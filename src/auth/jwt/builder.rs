use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use super::{
    JwtAlgorithm, JwtKeys, JwtLayer, KeySource,
    algorithm::list,
    layer::{Grant, Shared},
};
use crate::{
    auth::AuthError,
    http::respond::{Respond, Text},
    key::Tier,
    time::{Clock, SystemClock, micros},
};

/// "Usually no more than a few minutes" (RFC 7519 §4.1.4).
const MAX_LEEWAY: Duration = Duration::from_secs(600);

/// Builds a [`JwtLayer`].
#[must_use]
pub struct JwtLayerBuilder<C> {
    keys: Keys,
    algorithms: Option<Box<[JwtAlgorithm]>>,
    issuers: Vec<Box<str>>,
    audiences: Vec<Box<str>>,
    leeway: Duration,
    clock: Arc<dyn Clock>,
    optional: bool,
    max_bytes: usize,
    patience: Duration,
    grant: Option<Grant<C>>,
    respond: Arc<dyn Respond>,
}

#[derive(Debug)]
pub(super) enum Keys {
    Known(JwtKeys),
    Source(Box<dyn KeySource>),
}

impl<C> JwtLayerBuilder<C> {
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            algorithms: None,
            issuers: Vec::new(),
            audiences: Vec::new(),
            leeway: Duration::from_secs(60),
            clock: Arc::new(SystemClock),
            optional: false,
            max_bytes: 16 * 1_024,
            patience: Duration::from_secs(1),
            grant: None,
            respond: Arc::new(Text),
        }
    }

    /// Which algorithms are accepted; no token has a say in it. Default: those that the keys serve.
    ///
    /// Each must fit one of the keys, if they are known beforehand. With a [`KeySource`], there is no
    /// default.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = JwtAlgorithm>) -> Self {
        self.algorithms = Some(algorithms.into_iter().collect());
        self
    }

    /// Accepts only tokens whose `iss` is this; called again, also those of that issuer. Default: any,
    /// as whoever holds the keys says who issues.
    ///
    /// Each of the keys may sign for each of the issuers. If they must not speak for one another, count
    /// by both claims, as [`key::claim`](crate::key::claim) shows, and look up keys for one issuer only.
    pub fn issuer(mut self, issuer: impl Into<Box<str>>) -> Self {
        self.issuers.push(issuer.into());
        self
    }

    /// Accepts only tokens whose `aud` is this or has it among others; called again, also those for
    /// that audience. Default: only tokens without `aud`, as one that has it is for somebody, and
    /// nobody has said that this is us (RFC 7519 §4.1.3).
    pub fn audience(mut self, audience: impl Into<Box<str>>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// By how much clocks may differ: for so long a token is accepted after its `exp` and before its
    /// `nbf`. Default: a minute; at most ten.
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// What tells the time. Default: [`SystemClock`].
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Lets requests without a token pass, without claims. A token that is refused is still answered
    /// 401.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The most bytes of a token: longer ones are refused before anything is decoded. Default: 16 KiB.
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// How long a [`KeySource`] may take before requests are answered 503. Default: a second.
    pub fn lookup_timeout(mut self, timeout: Duration) -> Self {
        self.patience = timeout;
        self
    }

    /// Grants each caller the tier that this function reads from the claims, or none.
    pub fn tier<F, T>(mut self, tier: F) -> Self
    where
        F: Fn(&C) -> T + Send + Sync + 'static,
        T: Into<Option<Tier>>,
    {
        self.grant = Some(Box::new(move |claims| tier(claims).into()));
        self
    }

    /// How requests are answered that do not reach the service. Default: [`Text`]. The challenge is
    /// added to it.
    pub fn respond(mut self, respond: impl Respond) -> Self {
        self.respond = Arc::new(respond);
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// If a key cannot be used, no algorithm is accepted, or one that fits no key; if the leeway is
    /// longer than ten minutes; if an issuer or an audience is empty.
    pub fn build(self) -> Result<JwtLayer<C>, AuthError> {
        let (source, served): (Box<dyn KeySource>, _) = match self.keys {
            Keys::Known(keys) => {
                let keys = keys.check()?;
                let served = keys.algorithms();
                (Box::new(keys), Some(served))
            }
            Keys::Source(source) => (source, None),
        };
        let algorithms = self.algorithms.or_else(|| served.clone()).unwrap_or_default();
        if algorithms.is_empty() {
            return Err(AuthError::new("no algorithms are accepted: say which, by `algorithms`"));
        }
        if let Some(served) = served
            && let Some(stray) = algorithms.iter().find(|one| !served.contains(one))
        {
            let served = list(served);
            return Err(AuthError::new(format!(
                "{stray} fits none of the keys, which are for {served}"
            )));
        }
        if self.leeway > MAX_LEEWAY {
            let (leeway, most) = (self.leeway, MAX_LEEWAY);
            return Err(AuthError::new(format!("a leeway of {leeway:?} is more than {most:?}")));
        }
        for (what, names) in [("issuer", &self.issuers), ("audience", &self.audiences)] {
            if names.iter().any(|name| name.is_empty()) {
                return Err(AuthError::new(format!("the {what} \"\" is empty")));
            }
        }
        Ok(JwtLayer::of(Shared {
            source,
            algorithms,
            issuers: self.issuers.into(),
            audiences: self.audiences.into(),
            leeway: micros(self.leeway),
            clock: self.clock,
            optional: self.optional,
            max_bytes: self.max_bytes,
            patience: self.patience,
            grant: self.grant,
            respond: self.respond,
            failing: false.into(),
            of: PhantomData,
        }))
    }
}

impl<C> fmt::Debug for JwtLayerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtLayerBuilder")
            .field("keys", &self.keys)
            .field("algorithms", &self.algorithms)
            .field("issuers", &self.issuers)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}
