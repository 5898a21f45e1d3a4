//! What a file looks like.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use tollgate::{
    auth::JwtAlgorithm,
    config::{ClientIpConfig, PolicyConfig},
};
use toml::Spanned;

use super::values::{Names, Size, Time, address, algorithms, header};
use crate::{admin::Place, log::Format};

/// A text of the file, which knows where it stands.
pub(crate) type Text = Spanned<String>;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default = "here", deserialize_with = "address")]
    pub(crate) listen: SocketAddr,
    #[serde(default = "yes")]
    pub(crate) checks: bool,
    #[serde(default)]
    pub(crate) admin: AdminConfig,
    #[serde(default)]
    pub(crate) log: LogConfig,
    #[serde(default)]
    pub(crate) redis: RedisConfig,
    pub(crate) client_ip: Option<ClientIpConfig>,
    #[serde(default)]
    pub(crate) upstream: BTreeMap<String, UpstreamConfig>,
    #[serde(default)]
    pub(crate) jwt: BTreeMap<String, Spanned<JwtConfig>>,
    #[serde(default)]
    pub(crate) api_keys: BTreeMap<String, Spanned<ApiKeysConfig>>,
    #[serde(default)]
    pub(crate) route: Vec<Spanned<RouteConfig>>,
    #[serde(default)]
    pub(crate) policy: Vec<Spanned<PolicyConfig>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdminConfig {
    pub(crate) listen: Option<Spanned<Place>>,
    pub(crate) token_file: Option<Spanned<PathBuf>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogConfig {
    #[serde(default)]
    pub(crate) format: Format,
    #[serde(default)]
    pub(crate) requests: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedisConfig {
    pub(crate) url: Option<Text>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamConfig {
    pub(crate) url: Text,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) host: Option<Text>,
    pub(crate) connect_timeout: Option<Spanned<Time>>,
    pub(crate) response_timeout: Option<Spanned<Time>>,
    pub(crate) body_timeout: Option<Spanned<Time>>,
    pub(crate) max_body: Option<Spanned<Size>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JwtConfig {
    pub(crate) jwks: Option<Text>,
    pub(crate) jwks_ca: Option<PathBuf>,
    pub(crate) jwks_refresh: Option<Time>,
    pub(crate) jwks_stale: Option<Time>,
    pub(crate) jwks_timeout: Option<Time>,
    pub(crate) jwks_pause: Option<Time>,
    pub(crate) public_key_file: Option<Spanned<PathBuf>>,
    pub(crate) secret_file: Option<Spanned<PathBuf>>,
    #[serde(default, deserialize_with = "algorithms")]
    pub(crate) algorithms: Vec<JwtAlgorithm>,
    #[serde(default)]
    pub(crate) issuer: Names,
    #[serde(default)]
    pub(crate) audience: Names,
    pub(crate) leeway: Option<Time>,
    pub(crate) tier_claim: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiKeysConfig {
    #[serde(default, deserialize_with = "header")]
    pub(crate) header: Option<axum::http::HeaderName>,
    pub(crate) keys: Vec<Spanned<ApiKeyConfig>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiKeyConfig {
    pub(crate) digest: String,
    pub(crate) owner: String,
    pub(crate) tier: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteConfig {
    #[serde(default, rename = "match")]
    pub(crate) matches: Vec<Text>,
    #[serde(default)]
    pub(crate) otherwise: bool,
    pub(crate) upstream: Text,
    pub(crate) timeout: Option<Spanned<Time>>,
    pub(crate) before_auth: Option<Text>,
    pub(crate) auth: Option<Spanned<Names>>,
    #[serde(default)]
    pub(crate) anonymous: bool,
    pub(crate) policy: Option<Text>,
    pub(crate) cors: Option<CorsConfig>,
}

/// Whose scripts may read the answers: `"any"`, or a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CorsConfig {
    Any,
    Some(CorsTable),
}

impl<'de> Deserialize<'de> for CorsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = CorsConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"any\", or a table with `origins`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CorsConfig, E> {
                let any = (text == "any").then_some(CorsConfig::Any);
                any.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<CorsConfig, A::Error> {
                CorsTable::deserialize(MapAccessDeserializer::new(fields)).map(CorsConfig::Some)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorsTable {
    pub(crate) origins: Vec<String>,
    #[serde(default)]
    pub(crate) methods: Vec<String>,
    #[serde(default)]
    pub(crate) headers: Vec<String>,
    #[serde(default)]
    pub(crate) expose: Vec<String>,
    #[serde(default)]
    pub(crate) credentials: bool,
    pub(crate) max_age: Option<Time>,
}

const fn here() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080)
}

const fn yes() -> bool {
    true
}
