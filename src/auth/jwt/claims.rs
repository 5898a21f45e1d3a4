use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Number, Value};

use crate::{
    key::{Key, KeyError, KeyExtractor, Keys, RequestHead},
    time::{MICROS_PER_SEC, Timestamp},
};

/// The claims of a token (RFC 7519 §4.1), for services that need no type of their own.
///
/// A text that the token does not have is empty, which [`key::claim`](crate::key::claim) takes for
/// a missing key.
///
/// ```
/// use tollgate::{Claims, key};
///
/// let caller = key::claim(|claims: &Claims| &claims.sub);
///
/// let mut claims = Claims::default();
/// claims.rest.insert("plan".into(), "pro".into());
/// assert_eq!(claims.text("plan"), Some("pro"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Claims {
    /// Who issued the token.
    #[serde(default)]
    pub iss: String,
    /// Whom it is about: unique for its issuer only.
    #[serde(default)]
    pub sub: String,
    /// Whom it is for.
    #[serde(default, deserialize_with = "audience")]
    pub aud: Vec<String>,
    /// When it expires.
    #[serde(deserialize_with = "date")]
    pub exp: Timestamp,
    /// Before when it is not valid.
    #[serde(default, deserialize_with = "some_date")]
    pub nbf: Option<Timestamp>,
    /// When it was issued.
    #[serde(default, deserialize_with = "some_date")]
    pub iat: Option<Timestamp>,
    /// The name of this token.
    #[serde(default)]
    pub jti: String,
    /// All other claims.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Claims {
    /// The claim of this name, if the token has it, and it is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let text = match name {
            "iss" => &self.iss,
            "sub" => &self.sub,
            "jti" => &self.jti,
            _ => self.rest.get(name)?.as_str()?,
        };
        (!text.is_empty()).then_some(text)
    }
}

/// Counts by a claim of [`Claims`], a text, by its name; for names that come from a configuration.
/// [`key::claim`](crate::key::claim) reads any type, and claims of other forms.
///
/// The kind of the keys is `claim.` and the name. A token without the claim is a
/// [missing](KeyError::missing) key with the status 401.
///
/// ```
/// use tollgate::auth;
///
/// let caller = (auth::claim("iss"), auth::claim("sub"));
/// ```
#[must_use]
pub fn claim(name: &str) -> NamedClaim {
    NamedClaim { name: name.into(), kind: format!("claim.{name}").into() }
}

/// An extractor made by [`claim`].
#[derive(Clone, Debug)]
pub struct NamedClaim {
    name: Box<str>,
    kind: Box<str>,
}

impl KeyExtractor for NamedClaim {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        const ABSENT: KeyError =
            KeyError::unauthenticated("the request is not authenticated", "Bearer");
        let claims = head.extension::<Claims>().ok_or(ABSENT)?;
        let text = claims.text(&self.name).ok_or(ABSENT)?;
        Ok(Key::new(&self.kind, text).into())
    }
}

/// The claims that decide whether a token is accepted. One that is there twice is an error.
#[derive(Deserialize)]
pub(super) struct Registered<'a> {
    #[serde(default, deserialize_with = "some_date")]
    pub(super) exp: Option<Timestamp>,
    #[serde(default, deserialize_with = "some_date")]
    pub(super) nbf: Option<Timestamp>,
    #[serde(borrow, default)]
    pub(super) iss: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) aud: Option<Audience<'a>>,
}

/// One, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Audience<'a> {
    One(#[serde(borrow)] Cow<'a, str>),
    Several(Vec<String>),
}

impl Audience<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Several(several) => several.iter().any(|one| one == name),
        }
    }
}

fn audience<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(one) => vec![one.into_owned()],
        Audience::Several(several) => several,
    })
}

/// A `NumericDate` (RFC 7519 §2): a number of seconds, also with a fraction. A text is none.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let secs = Number::deserialize(deserializer)?;
    let micros = match (secs.as_u64(), secs.as_f64()) {
        (Some(secs), _) => secs.saturating_mul(MICROS_PER_SEC),
        // Past the end of time is the end of time.
        (None, Some(secs)) if secs >= 0.0 => (secs * MICROS_PER_SEC as f64) as u64,
        _ => return Err(D::Error::custom("this is no time")),
    };
    Ok(Timestamp::from_micros(micros))
}

fn some_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    date(deserializer).map(Some)
}
