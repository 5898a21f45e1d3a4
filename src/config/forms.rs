//! What may be written in more than one form.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        Error, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use toml::value::Datetime;

/// Whom a limit counts, or one whom it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum KeyConfig {
    /// `ip`, or `known_key or ip`: the second where a request has no first.
    One(String),
    /// All of these at once: every combination is counted for itself.
    All(Vec<String>),
}

/// Another quota for a tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TierConfig {
    /// `200/s`, or `unlimited`.
    Quota(String),
    /// A quota with a burst of its own.
    WithBurst(BurstConfig),
}

/// A quota with a burst.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `quota` and `burst`")]
#[non_exhaustive]
pub struct BurstConfig {
    /// The quota.
    pub quota: String,
    /// Units that may be taken at once.
    pub burst: u64,
}

/// What happens to requests while the store does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OnFailureConfig {
    /// `allow`, `deny`, `local`, or `local:` and a share.
    Always(String),
    /// The same for [kinds](crate::StoreErrorKind::as_str) of failure; the others do what `otherwise`
    /// says, or `allow`.
    ByKind(BTreeMap<String, String>),
}

impl Default for KeyConfig {
    fn default() -> Self {
        Self::One(String::new())
    }
}

impl From<&str> for KeyConfig {
    fn from(text: &str) -> Self {
        Self::One(text.to_owned())
    }
}

impl From<&str> for TierConfig {
    fn from(text: &str) -> Self {
        Self::Quota(text.to_owned())
    }
}

impl From<&str> for OnFailureConfig {
    fn from(text: &str) -> Self {
        Self::Always(text.to_owned())
    }
}

/// A moment, as text or as TOML's own.
pub(super) fn until<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    from.deserialize_any(Either::<String>(PhantomData)).map(Some)
}

/// What is text, or else something of another form.
trait TextOr: Sized {
    type Other: for<'de> Deserialize<'de>;
    const EXPECTED: &'static str;

    fn text(text: &str) -> Self;
    fn other(other: Self::Other) -> Self;
}

struct Either<T>(PhantomData<T>);

impl<'de, T: TextOr> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::Other::deserialize(SeqAccessDeserializer::new(items)).map(T::other)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::Other::deserialize(MapAccessDeserializer::new(fields)).map(T::other)
    }
}

macro_rules! text_or {
    ($own:ty, $text:path, $other:ty, $make:expr, $expected:literal) => {
        impl TextOr for $own {
            type Other = $other;
            const EXPECTED: &'static str = $expected;

            fn text(text: &str) -> Self {
                $text(text.to_owned())
            }

            fn other(other: Self::Other) -> Self {
                $make(other)
            }
        }
    };
}

text_or!(KeyConfig, Self::One, Vec<String>, Self::All, "a key, or an array of keys");
text_or!(TierConfig, Self::Quota, BurstConfig, Self::WithBurst, "a quota, or a table with a burst");
text_or!(
    OnFailureConfig,
    Self::Always,
    BTreeMap<String, String>,
    Self::ByKind,
    "a text such as `deny`, or a table by the kind of failure"
);
text_or!(String, Self::from, Datetime, |it: Datetime| it.to_string(), "a date and time");

macro_rules! deserialize {
    ($($own:ty)+) => {$(
        impl<'de> Deserialize<'de> for $own {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Either(PhantomData))
            }
        }
    )+};
}

deserialize!(KeyConfig TierConfig OnFailureConfig);
