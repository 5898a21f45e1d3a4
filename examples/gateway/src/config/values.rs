//! Values of the file and of the command line.

use std::{fmt, net::SocketAddr, str::FromStr, time::Duration};

use axum::http::HeaderName;
use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use tollgate::auth::JwtAlgorithm;

use crate::admin::Place;

/// A length of time: `500ms`, `5s`, `2m`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "it must be a number and a unit of ms, s, m or h, such as 500ms or 5s";
        let (number, unit) = split(text).ok_or(FORM)?;
        let time = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.saturating_mul(60)),
            "h" => Duration::from_secs(number.saturating_mul(3_600)),
            _ => return Err(FORM),
        };
        Ok(Self(time))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

/// A number of bytes: `100`, `64k`, `100m`, `2g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "it must be a number of bytes, or one with k, m or g, such as 64k or 100m";
        let (number, unit) = split(text).ok_or(FORM)?;
        let unit = match unit {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            _ => return Err(FORM),
        };
        Ok(Self(number.saturating_mul(unit)))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    Some((whole(digits)?, &text[digits.len()..]))
}

/// A number of digits alone; one that is too large is the largest.
pub(crate) fn whole(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    const FORM: &str =
        "it must be an address and a port, such as \"127.0.0.1:8080\" or \"[::]:80\"";
    String::deserialize(deserializer)?.parse().map_err(|_| de::Error::custom(FORM))
}

pub(super) fn header<'de, D>(deserializer: D) -> Result<Option<HeaderName>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    let name = text.parse().map_err(|_| de::Error::custom(format!("{text:?} names no header")));
    name.map(Some)
}

pub(super) fn algorithms<'de, D>(deserializer: D) -> Result<Vec<JwtAlgorithm>, D::Error>
where
    D: Deserializer<'de>,
{
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().map(|name| name.parse().map_err(de::Error::custom)).collect()
}

/// A text, or an array of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;

        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or an array of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Names, E> {
                Ok(Names(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Names, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Names)
            }
        }

        deserializer.deserialize_any(OneOrMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!("500ms".parse(), Ok(Time(Duration::from_millis(500))));
        assert_eq!("2m".parse(), Ok(Time(Duration::from_secs(120))));
        for odd in ["", "5", "s", "1.5s", "-1s", "5 s", "5d"] {
            assert!(odd.parse::<Time>().is_err(), "{odd}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!("10".parse(), Ok(Size(10)));
        assert_eq!("64k".parse(), Ok(Size(65_536)));
        assert_eq!("99999999999999g".parse(), Ok(Size(u64::MAX)));
        for odd in ["", "k", "1.5k", "-1", "1t", "1kb"] {
            assert!(odd.parse::<Size>().is_err(), "{odd}");
        }
    }
}
