//! Who may take a route.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE},
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use tollgate::{ApiKeyLayer, ApiKeys, Claims, Tier, key::KnownKey};
use toml::Spanned;

use super::{jwt::Issuer, limits::no_such};
use crate::config::{ApiKeysConfig, Config, FileError, RouteConfig};

const BEARER: &str = "Bearer";

/// All ways to authenticate, by their names.
pub(super) struct Auth {
    issuers: BTreeMap<String, Issuer>,
    /// And whether they are read as bearers.
    api_keys: BTreeMap<String, (ApiKeyLayer, bool)>,
}

impl Auth {
    /// Issuers that are as they were `before` keep the keys that they have looked up.
    pub(super) fn build(config: &Config, before: Option<&Self>) -> Result<Self, FileError> {
        let mut issuers = BTreeMap::new();
        for (name, own) in &config.file.jwt {
            let same = before.and_then(|before| before.issuers.get(name));
            let same = same.filter(|before| before.is(own.get_ref()));
            let issuer = Issuer::build(config, name, own.get_ref(), same);
            let issuer = issuer.map_err(|what| config.fault(own, format!("jwt.{name}: {what}")))?;
            issuers.insert(name.clone(), issuer);
        }
        let mut api_keys = BTreeMap::new();
        for (name, own) in &config.file.api_keys {
            if config.file.jwt.contains_key(name) {
                let what = format!("`jwt.{name}` has this name too, by which routes ask for it");
                return Err(config.fault(own, what));
            }
            let layer = known(own.get_ref());
            let layer =
                layer.map_err(|what| config.fault(own, format!("api_keys.{name}: {what}")))?;
            let bearer = own.get_ref().header.as_ref() == Some(&AUTHORIZATION);
            api_keys.insert(name.clone(), (layer, bearer));
        }
        Ok(Self { issuers, api_keys })
    }

    /// The service of a route, behind those of its ways to authenticate.
    pub(super) fn around(
        &self,
        inner: Router,
        config: &Config,
        route: &Spanned<RouteConfig>,
    ) -> Result<Router, FileError> {
        let own = route.get_ref();
        let Some(auth) = &own.auth else {
            if own.anonymous {
                let what =
                    "without `auth`, all are anonymous: take `anonymous` away, or add `auth`";
                return Err(config.fault(route, what));
            }
            return Ok(inner);
        };
        let names = &auth.get_ref().0;
        // Of several, each lets pass what is for another.
        let optional = own.anonymous || names.len() > 1;
        let mut router = inner;
        if optional && !own.anonymous {
            let challenges: Arc<_> = names.iter().filter_map(|name| self.challenge(name)).collect();
            router = router.layer(from_fn_with_state(challenges, somebody));
        }
        let mut bearers = 0;
        for name in names.iter().rev() {
            if let Some(issuer) = self.issuers.get(name) {
                let layer = issuer.layer(optional);
                router =
                    router.layer(layer.map_err(|error| config.fault(auth, error.to_string()))?);
            } else if let Some((keys, _)) = self.api_keys.get(name) {
                let keys = keys.clone();
                router = router.layer(if optional { keys.optional() } else { keys });
            } else {
                let there = self.issuers.keys().chain(self.api_keys.keys()).map(String::as_str);
                return Err(config.fault(auth, format!("auth: {}", no_such("way", name, there))));
            }
            bearers += usize::from(self.challenge(name) == Some(BEARER));
        }
        match (bearers, names.len()) {
            (_, 0) => Err(config.fault(auth, "auth: it must name at least one")),
            (2.., _) => {
                let what = "auth: two of them read `Authorization: Bearer`, and each would refuse what \
                            is for the other";
                Err(config.fault(auth, what))
            }
            _ => Ok(router),
        }
    }

    fn challenge(&self, name: &str) -> Option<&'static str> {
        if self.issuers.contains_key(name) {
            return Some(BEARER);
        }
        let (_, bearer) = self.api_keys.get(name)?;
        Some(if *bearer { BEARER } else { "ApiKey" })
    }

    /// Whether each way is that of a route.
    pub(super) fn are_used(config: &Config) -> Result<(), FileError> {
        let named = config.file.route.iter().filter_map(|route| route.get_ref().auth.as_ref());
        let named: Vec<&String> = named.flat_map(|auth| &auth.get_ref().0).collect();
        if let Some((name, own)) = config.file.jwt.iter().find(|(name, _)| !named.contains(name)) {
            return Err(config.fault(own, format!("jwt.{name}: no route names it")));
        }
        let unused = config.file.api_keys.iter().find(|(name, _)| !named.contains(name));
        match unused {
            Some((name, own)) => {
                Err(config.fault(own, format!("api_keys.{name}: no route names it")))
            }
            None => Ok(()),
        }
    }
}

fn known(own: &ApiKeysConfig) -> Result<ApiKeyLayer, String> {
    if own.keys.is_empty() {
        return Err("there is no key, so nobody could pass".to_owned());
    }
    let keys = own.keys.iter().map(Spanned::get_ref).fold(ApiKeys::builder(), |keys, key| {
        keys.key(&key.digest, key.owner.as_str(), key.tier.as_deref().map(Tier::new))
    });
    let layer = ApiKeyLayer::new(keys.build().map_err(|error| error.to_string())?);
    Ok(match &own.header {
        Some(name) if name == AUTHORIZATION => layer.bearer(),
        Some(name) => layer.header(name.clone()),
        None => layer,
    })
}

/// Turns away who has shown nothing to any of several layers outside.
async fn somebody(
    State(challenges): State<Arc<[&'static str]>>,
    request: Request,
    next: Next,
) -> Response {
    let extensions = request.extensions();
    if extensions.get::<Claims>().is_some() || extensions.get::<KnownKey>().is_some() {
        return next.run(request).await;
    }
    let text = "a token or an API key is needed\n";
    let mut response = (StatusCode::UNAUTHORIZED, text).into_response();
    let headers = response.headers_mut();
    for challenge in challenges.iter() {
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
