//! Looking at a key, giving it units back, and resetting it.

use std::{borrow::Cow, net::IpAddr};

use axum::{Json, extract::State, http::StatusCode, response::IntoResponse};
use serde::{Deserialize, Serialize};
use tollgate::{Key, Limit, PeerIp, StoreError, Tier};

use super::Panel;

/// Whom to ask about.
#[derive(Deserialize)]
pub(super) struct Whom {
    policy: String,
    limit: String,
    key: Named,
    #[serde(default)]
    tier: String,
    /// To be given back.
    #[serde(default)]
    units: Option<Units>,
}

/// A number, also as the text that a form has.
#[derive(Deserialize)]
#[serde(untagged)]
enum Units {
    Number(u64),
    Other(serde_json::Value),
}

impl Units {
    fn number(&self) -> Option<u64> {
        let number = match self {
            Self::Number(number) => *number,
            Self::Other(other) => other.as_str()?.trim().parse().ok()?,
        };
        (number > 0).then_some(number)
    }
}

/// A key: one text, or an array, of which a text may tell as well, where a limit counts by several
/// things at once.
#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    One(String),
    All(Vec<String>),
}

impl Named {
    fn key(&self) -> Option<Key> {
        match self {
            Self::One(text) if text.trim_start().starts_with('[') => {
                Self::All(serde_json::from_str(text).ok()?).key()
            }
            Self::One(text) => key(text),
            Self::All(texts) => {
                let keys: Option<Vec<Key>> = texts.iter().map(|text| key(text)).collect();
                keys?.into_iter().reduce(Key::and)
            }
        }
    }
}

/// Where a key stands with a limit.
#[derive(Serialize)]
struct Stands {
    key: String,
    remaining: u64,
    of: u64,
    /// Until all is back, and, if nothing is left, until a unit is.
    reset_seconds: f64,
    wait_seconds: Option<f64>,
    locked_seconds: Option<f64>,
}

/// Why not.
pub(super) struct Problem(StatusCode, Cow<'static, str>);

#[derive(Serialize)]
struct Told<'a> {
    error: &'a str,
}

pub(super) async fn look(
    State(panel): State<Panel>,
    Json(whom): Json<Whom>,
) -> Result<impl IntoResponse, Problem> {
    let (limit, key) = find(&panel, &whom)?;
    stands(&panel, &limit, key).await
}

/// Gives back so many units of what the key has taken.
pub(super) async fn refund(
    State(panel): State<Panel>,
    Json(whom): Json<Whom>,
) -> Result<impl IntoResponse, Problem> {
    let units = whom.units.as_ref().and_then(Units::number).ok_or(NO_UNITS)?;
    let (limit, key) = find(&panel, &whom)?;
    panel.limiter.give_back(&limit, key.clone(), units).await.map_err(failed)?;
    tracing::info!(
        policy = whom.policy,
        limit = whom.limit,
        units,
        ?key,
        "a key was given units back"
    );
    stands(&panel, &limit, key).await
}

/// Gives back all that the key has taken, and lifts its lock.
pub(super) async fn reset(
    State(panel): State<Panel>,
    Json(whom): Json<Whom>,
) -> Result<impl IntoResponse, Problem> {
    let (limit, key) = find(&panel, &whom)?;
    panel.limiter.reset(&limit, key.clone()).await.map_err(failed)?;
    tracing::info!(policy = whom.policy, limit = whom.limit, ?key, "a key was reset");
    stands(&panel, &limit, key).await
}

async fn stands(panel: &Panel, limit: &Limit, key: Key) -> Result<Json<Stands>, Problem> {
    let shown = key.as_str().to_owned();
    let look = panel.limiter.look(limit, key).await.map_err(failed)?;
    // Also of a shadow, which binds nobody.
    let verdict = look.verdicts().first().ok_or(NOT_THERE)?;
    let standing = verdict.standing();
    Ok(Json(Stands {
        key: shown,
        remaining: standing.remaining(),
        of: verdict.quota().capacity(),
        reset_seconds: standing.reset().as_secs_f64(),
        wait_seconds: standing.wait().map(|wait| wait.as_secs_f64()),
        locked_seconds: verdict.locked().map(|left| left.as_secs_f64()),
    }))
}

const NOT_THERE: Problem =
    Problem(StatusCode::NOT_FOUND, Cow::Borrowed("no such limit applies to this key"));

const NO_UNITS: Problem = Problem(
    StatusCode::BAD_REQUEST,
    Cow::Borrowed("units to give back are a whole number above 0"),
);

const FORM: &str = "a key is an address, or a kind and an identity, such as tenant:acme, or an array of \
                    them, such as [\"ip:192.0.2.7\", \"route:/login\"], for a limit that counts by as many";

/// The limit that applies to the key, and the key.
fn find(panel: &Panel, whom: &Whom) -> Result<(Limit, Key), Problem> {
    let key = whom.key.key().ok_or(Problem(StatusCode::BAD_REQUEST, Cow::Borrowed(FORM)))?;
    let policies = panel.policies.load();
    let policy = policies.policy(&whom.policy).ok_or(NOT_THERE)?;
    let tier = (!whom.tier.is_empty()).then(|| Tier::new(whom.tier.clone()));
    let limit = panel.limiter.limit_for(policy, &whom.limit, tier.as_ref(), &key);
    Ok((limit.ok_or(NOT_THERE)?, key))
}

/// The key that is meant by `text`: an address as extractors count it, an IPv6 one by its /64.
fn key(text: &str) -> Option<Key> {
    let text = text.trim();
    let address = text.strip_prefix("ip:").unwrap_or(text);
    if let Ok(address) = address.parse::<IpAddr>() {
        return Some(PeerIp::key(address));
    }
    let (kind, identity) = text.split_once(':')?;
    (!kind.is_empty() && !identity.is_empty()).then(|| Key::new(kind, identity))
}

fn failed(error: StoreError) -> Problem {
    Problem(StatusCode::SERVICE_UNAVAILABLE, error.to_string().into())
}

impl IntoResponse for Problem {
    fn into_response(self) -> axum::response::Response {
        (self.0, Json(Told { error: &self.1 })).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read() {
        for (text, expected) in [
            ("192.0.2.7", "ip:192.0.2.7"),
            (" ip:192.0.2.7 ", "ip:192.0.2.7"),
            ("::ffff:192.0.2.7", "ip:192.0.2.7"),
            ("2001:db8:0:1:2::3", "ip:2001:db8:0:1::/64"),
            ("ip:2001:db8:0:1:2::3", "ip:2001:db8:0:1::/64"),
            ("ip:2001:db8:0:1::/64", "ip:2001:db8:0:1::/64"),
            ("tenant:a{b", "tenant:a%7bb"),
        ] {
            assert_eq!(key(text).unwrap().as_str(), expected, "{text}");
        }
        for text in ["", "bob", ":", "id:", ":bob"] {
            assert!(key(text).is_none(), "{text}");
        }
    }

    #[test]
    fn several_are_one() {
        let named = |json: &str| serde_json::from_str::<Named>(json).ok()?.key();
        for (json, expected) in [
            (r#""ip:192.0.2.7""#, "ip:192.0.2.7"),
            (r#"["192.0.2.7"]"#, "ip:192.0.2.7"),
            (r#"["::1", "route:/a/{b}"]"#, "ip:::/64,route:/a/%7bb%7d"),
            (r#"" [\"192.0.2.7\", \"id:a,b\"] ""#, "ip:192.0.2.7,id:a%2cb"),
        ] {
            assert_eq!(named(json).unwrap().as_str(), expected, "{json}");
        }
        for json in
            ["[]", r#"["bob"]"#, r#"["id:a", ""]"#, r#""[""#, r#""[::1]""#, r#""[[]]""#, "7"]
        {
            assert!(named(json).is_none(), "{json}");
        }
    }
}
