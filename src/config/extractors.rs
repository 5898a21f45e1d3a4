use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{error::Fault, forms::KeyConfig, place::Path};
use crate::key::{
    ApiKey, ClientIp, Global, Header, Key, KeyExtractor, Or, PeerIp, known_key, path_param, route,
};

const BUILT_IN: [&str; 10] = [
    "ip",
    "peer",
    "global",
    "route",
    "bearer",
    "known_key",
    "api_key:HEADER",
    "header:HEADER",
    "param:NAME",
    "claim:NAME",
];

/// What a configuration may count by: what is built in, and what the program adds under names of its
/// own.
///
/// | key | counts by | kind of its keys |
/// |---|---|---|
/// | `ip` | the client's address, as `[client_ip]` says | `ip` |
/// | `peer` | the address that the connection comes from | `ip` |
/// | `global` | everybody together | `global` |
/// | `route` | the template of the [route](crate::key::route) | `route` |
/// | `param:shop` | a [parameter of the path](crate::key::path_param) | `param.shop` |
/// | `header:x-tenant` | a [`Header`] that a gateway in front sets | `header.x-tenant` |
/// | `api_key:x-api-key`, `bearer` | a secret, by [`ApiKey`] | `apikey` |
/// | `known_key` | the owner of an API key that an [`ApiKeyLayer`](crate::ApiKeyLayer) outside knows | `owner` |
/// | `claim:sub` | a claim that a `JwtLayer` outside has verified; with the feature `jwt` | `claim.sub` |
///
/// ```
/// use tollgate::{config::Extractors, key};
///
/// #[derive(Clone)]
/// struct Claims { sub: String }
///
/// let extractors = Extractors::new()
///     .with("user", key::claim(|claims: &Claims| &claims.sub))
///     .with("tenant", key::from_fn(|head| head.header("x-tenant").map(str::to_lowercase)));
/// ```
#[derive(Clone, Default)]
pub struct Extractors(BTreeMap<String, Arc<dyn KeyExtractor>>);

impl Extractors {
    /// What is built in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an extractor. A configuration uses it by this name, which has no spaces; it goes before what
    /// is built in.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, extractor: impl KeyExtractor) -> Self {
        self.0.insert(name.into(), Arc::new(extractor));
        self
    }

    /// What draws the key of this name.
    fn find(&self, text: &str, client: &ClientIp) -> Result<Part, String> {
        if let Some(own) = self.0.get(text) {
            return Ok(Part { text: text.to_owned(), extractor: Arc::clone(own), kind: None });
        }
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let malformed = |_| format!("`{text}` does not name a header");
        let (kind, extractor): (_, Arc<dyn KeyExtractor>) = match (name, argument) {
            ("ip", None) => ("ip".into(), Arc::new(client.clone())),
            ("peer", None) => ("ip".into(), Arc::new(PeerIp)),
            ("global", None) => ("global".into(), Arc::new(Global)),
            ("route", None) => ("route".into(), Arc::new(route())),
            ("known_key", None) => ("owner".into(), Arc::new(known_key())),
            ("claim", Some(claim)) if !claim.is_empty() => {
                (format!("claim.{claim}"), by_claim(claim)?)
            }
            ("bearer", None) => ("apikey".into(), Arc::new(ApiKey::bearer())),
            ("api_key", Some(header)) => {
                ("apikey".into(), Arc::new(ApiKey::try_header(header).map_err(malformed)?))
            }
            ("header", Some(header)) => {
                let kind = format!("header.{}", header.to_ascii_lowercase());
                (kind, Arc::new(Header::new(header).map_err(malformed)?))
            }
            ("param", Some(param)) if !param.is_empty() => {
                (format!("param.{param}"), Arc::new(path_param(param)))
            }
            _ => return Err(self.unknown(text)),
        };
        Ok(Part { text: text.to_owned(), extractor, kind: Some(kind) })
    }

    fn unknown(&self, text: &str) -> String {
        let known: Vec<String> = BUILT_IN
            .into_iter()
            .chain(self.0.keys().map(String::as_str))
            .map(|name| format!("`{name}`"))
            .collect();
        format!("there is no key `{text}`; there are {}", known.join(", "))
    }
}

#[cfg(feature = "jwt")]
fn by_claim(claim: &str) -> Result<Arc<dyn KeyExtractor>, String> {
    Ok(Arc::new(crate::auth::claim(claim)))
}

#[cfg(not(feature = "jwt"))]
fn by_claim(claim: &str) -> Result<Arc<dyn KeyExtractor>, String> {
    Err(format!(
        "`claim:{claim}` needs tollgate's cargo feature `jwt`, or an extractor of this name that the \
         program registers"
    ))
}

impl fmt::Debug for Extractors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// One name of a key.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) extractor: Arc<dyn KeyExtractor>,
    /// Of the keys that it draws; an extractor of the program's may draw any.
    pub(super) kind: Option<String>,
}

/// Whom a limit counts: all of these at once, and of each the first that a request has.
pub(super) struct Parts(pub(super) Vec<Vec<Part>>);

impl Parts {
    pub(super) fn parse(
        config: &KeyConfig,
        path: &Path,
        (extractors, client): (&Extractors, &ClientIp),
    ) -> Result<Self, Fault> {
        let one = |text: &str, path: &Path| {
            let names = text.split(" or ").map(|name| extractors.find(name.trim(), client));
            names.collect::<Result<Vec<_>, _>>().map_err(|what| Fault::new(path.clone(), what))
        };
        let all = match config {
            KeyConfig::One(text) => vec![one(text, path)?],
            KeyConfig::All(texts) => {
                let texts = texts.iter().enumerate();
                texts.map(|(at, text)| one(text, &path.item(at))).collect::<Result<_, _>>()?
            }
        };
        if all.is_empty() {
            return Err(Fault::new(path.clone(), "there must be at least one key"));
        }
        Ok(Self(all))
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &Part> {
        self.0.iter().flatten()
    }

    pub(super) fn extractor(&self) -> Arc<dyn KeyExtractor> {
        let first_of = |parts: &Vec<Part>| {
            let parts = parts.iter().map(|part| Arc::clone(&part.extractor));
            parts.reduce(|first, second| Arc::new(Or::new(first, second)))
        };
        let all = self.0.iter().filter_map(first_of);
        all.reduce(|one, other| Arc::new((one, other))).unwrap_or_else(|| Arc::new(Global))
    }

    /// The key that a configuration names: one text, or an array where several are one.
    pub(super) fn key(
        &self,
        named: &KeyConfig,
        path: &Path,
        client: &ClientIp,
    ) -> Result<Key, Fault> {
        let texts: Vec<(&String, Path)> = match named {
            KeyConfig::One(text) => vec![(text, path.clone())],
            KeyConfig::All(texts) => {
                texts.iter().enumerate().map(|(at, text)| (text, path.item(at))).collect()
            }
        };
        if texts.len() != self.0.len() {
            let what = match self.0.len() {
                1 => "the key of this limit is one: write one, not an array".to_owned(),
                count => format!("the key of this limit is an array of {count}: write as many"),
            };
            return Err(Fault::new(path.clone(), what));
        }
        let mut joined: Option<Key> = None;
        for ((text, path), parts) in texts.into_iter().zip(&self.0) {
            let key = key(text, parts, client).map_err(|what| Fault::new(path, what))?;
            match &mut joined {
                Some(joined) => joined.join(&key),
                None => joined = Some(key),
            }
        }
        joined.ok_or_else(|| Fault::new(path.clone(), "there must be at least one key"))
    }
}

/// The key of this text, as one of these draws it.
pub(super) fn key<'p>(
    text: &str,
    parts: impl IntoIterator<Item = &'p Part>,
    client: &ClientIp,
) -> Result<Key, String> {
    let (kind, identity) = text.split_once(':').ok_or(
        "it must be a kind, a colon and an identity, such as `ip:192.0.2.7` or \
         `header.x-tenant:acme`",
    )?;
    // A secret may be named as it is, or by its hash.
    let secret = matches!(kind, "api_key" | "bearer");
    let kind = if secret { "apikey" } else { kind };
    let parts: Vec<&Part> = parts.into_iter().collect();
    let mut kinds: Vec<&str> = parts.iter().filter_map(|part| part.kind.as_deref()).collect();
    let any = kinds.len() < parts.len();
    if !any && !kinds.contains(&kind) {
        kinds.sort_unstable();
        kinds.dedup();
        let kinds: Vec<_> = kinds.iter().map(|kind| format!("`{kind}:…`")).collect();
        return Err(format!("there is no such key here: keys look like {}", kinds.join(" or ")));
    }
    match kind {
        "ip" => {
            let address = identity.parse().map_err(|_| {
                "after `ip:` there must be an address, which stands for all that are counted with it"
            })?;
            let client_ip = parts.iter().any(|part| part.text == "ip") || any;
            Ok(if client_ip { client.key(address) } else { PeerIp::key(address) })
        }
        "apikey" if secret => Ok(ApiKey::bearer().key(identity)),
        _ => Ok(Key::new(kind, identity)),
    }
}
