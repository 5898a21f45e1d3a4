//! Tokens of an issuer, as the configuration describes it.

use std::env;

use tollgate::{
    Claims, JwtKeys, JwtLayer, Tier,
    auth::{AuthError, JwtAlgorithm, JwtKey},
};

use crate::{
    config::{Config, JwtConfig},
    file,
    jwks::{Jwks, Settings},
};

/// Bytes of a key or a secret.
const MOST: u64 = 64 << 10;

/// Whoever issues tokens.
#[derive(Clone)]
pub(super) struct Issuer {
    own: JwtConfig,
    keys: Keys,
}

#[derive(Clone)]
enum Keys {
    Known(JwtKeys),
    LookedUp(Jwks),
}

impl Issuer {
    pub(super) fn build(
        config: &Config,
        name: &str,
        own: &JwtConfig,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let issuer = Self { own: own.clone(), keys: keys(config, name, own, before)? };
        // What is wrong is said of it, and not of the routes that use it.
        if own.algorithms.is_empty() && !matches!(issuer.keys, Keys::Known(_)) {
            return Err(
                "`algorithms` must say what the keys are for, such as [\"RS256\"]".to_owned()
            );
        }
        issuer.layer(false).map_err(|error| error.to_string())?;
        Ok(issuer)
    }

    /// Whether this is how it is described.
    pub(super) fn is(&self, own: &JwtConfig) -> bool {
        self.own == *own
    }

    /// The layer that verifies its tokens; if `optional`, it lets requests pass that have none.
    pub(super) fn layer(&self, optional: bool) -> Result<JwtLayer<Claims>, AuthError> {
        let own = &self.own;
        let mut layer = match &self.keys {
            Keys::Known(keys) => JwtLayer::new(keys.clone()),
            Keys::LookedUp(jwks) => {
                JwtLayer::with_source(jwks.clone(), own.algorithms.iter().copied())
            }
        };
        layer = own.issuer.0.iter().fold(layer, |layer, name| layer.issuer(name.as_str()));
        layer = own.audience.0.iter().fold(layer, |layer, name| layer.audience(name.as_str()));
        if let Some(leeway) = own.leeway {
            layer = layer.leeway(leeway.0);
        }
        if let Some(claim) = own.tier_claim.clone() {
            layer = layer.tier(move |claims: &Claims| claims.text(&claim).map(Tier::new));
        }
        if optional {
            layer = layer.optional();
        }
        layer.build()
    }
}

fn keys(
    config: &Config,
    name: &str,
    own: &JwtConfig,
    before: Option<&Issuer>,
) -> Result<Keys, String> {
    let variable = format!("TOLLGATE_JWT_{}_SECRET", name.to_ascii_uppercase().replace('-', "_"));
    let from_environment = env::var(&variable).ok();
    let given = [own.jwks.is_some(), own.public_key_file.is_some(), own.secret_file.is_some()];
    match (given.iter().filter(|given| **given).count(), from_environment) {
        (0, Some(secret)) => return secret_of(own, secret.as_bytes(), &variable),
        (1, None) => {}
        (1, Some(secret)) if own.secret_file.is_some() => {
            return secret_of(own, secret.as_bytes(), &variable);
        }
        _ => {
            return Err(format!(
                "there must be one of `jwks`, `public_key_file`, `secret_file`, and the environment \
                 variable {variable}"
            ));
        }
    }
    let read = |path: &std::path::Path| {
        let path = config.beside(path);
        file::read(&path, MOST).map_err(|cause| format!("cannot read {}: {cause}", path.display()))
    };
    if let Some(path) = &own.secret_file {
        let path = path.get_ref();
        let text = read(path)?;
        return secret_of(own, text.trim_ascii(), &path.display().to_string());
    }
    if let Some(path) = &own.public_key_file {
        let pem = read(path.get_ref())?;
        if own.algorithms.is_empty() {
            return Err("`algorithms` must say what the key is for, such as [\"RS256\"]".to_owned());
        }
        return Ok(Keys::Known(each(own, None, |algorithm| JwtKey::pem(algorithm, &pem))?));
    }
    if let Some(Issuer { keys: Keys::LookedUp(jwks), .. }) = before {
        return Ok(Keys::LookedUp(jwks.clone()));
    }
    let location = own.jwks.as_ref().map(|text| text.get_ref().as_str()).unwrap_or_default();
    let location = match location.contains("://") {
        true => location.to_owned(),
        false => {
            let path = config.beside(location);
            let text = String::from_utf8_lossy(&read(&path)?).into_owned();
            let fault = |error: AuthError| format!("{}: {error}", path.display());
            JwtKeys::jwks(text).check().map_err(fault)?;
            path.display().to_string()
        }
    };
    let mut settings = Settings::new(&location).map_err(|error| error.to_string())?;
    settings.ca = own.jwks_ca.as_ref().map(|path| config.beside(path));
    for (setting, given) in [
        (&mut settings.refresh, own.jwks_refresh),
        (&mut settings.stale, own.jwks_stale),
        (&mut settings.timeout, own.jwks_timeout),
        (&mut settings.pause, own.jwks_pause),
    ] {
        if let Some(time) = given {
            *setting = time.0;
        }
    }
    settings.build().map(Keys::LookedUp).map_err(|error| error.to_string())
}

fn secret_of(own: &JwtConfig, secret: &[u8], place: &str) -> Result<Keys, String> {
    let keys = each(own, Some(JwtAlgorithm::Hs256), |algorithm| JwtKey::secret(algorithm, secret));
    keys.map(Keys::Known).map_err(|what| format!("{place}: {what}"))
}

fn each(
    own: &JwtConfig,
    otherwise: Option<JwtAlgorithm>,
    key: impl Fn(JwtAlgorithm) -> Result<JwtKey, AuthError>,
) -> Result<JwtKeys, String> {
    let algorithms: Vec<_> = match &own.algorithms[..] {
        [] => otherwise.into_iter().collect(),
        given => given.to_vec(),
    };
    let keys: Result<Vec<_>, _> = algorithms.into_iter().map(key).collect();
    keys.map(JwtKeys::new).map_err(|error| error.to_string())
}
