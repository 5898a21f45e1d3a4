//! Where requests go.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    ops::Range,
    sync::{Arc, OnceLock},
};

use axum::{Router, routing::any};
use ipnet::IpNet;
use tollgate::config::ClientIpConfig;
use toml::Spanned;

use super::limits::no_such;
use crate::{
    config::{Config, FileError, Text, UpstreamConfig},
    demo::{self, Demo},
    proxy::{Proxy, Upstream},
};

/// The page that is built in.
const DEMO: &str = "demo:";

/// All upstreams, by their names.
pub(super) struct Upstreams {
    all: BTreeMap<String, (UpstreamConfig, To)>,
    trusted: Vec<IpNet>,
}

#[derive(Clone)]
enum To {
    Demo { page: Arc<OnceLock<SocketAddr>> },
    Proxy(Proxy),
}

impl Upstreams {
    /// Those that are as they were `before` keep their connections.
    pub(super) fn build(
        config: &Config,
        page: &Arc<OnceLock<SocketAddr>>,
        before: Option<&Self>,
    ) -> Result<Self, FileError> {
        let trusted = trusted(config.file.client_ip.as_ref());
        let mut all = BTreeMap::new();
        for (name, own) in &config.file.upstream {
            let same = before.filter(|before| before.trusted == trusted).and_then(|before| {
                let (was, to) = before.all.get(name)?;
                (was == own).then(|| to.clone())
            });
            let fault = |what: String| {
                config.fault_at(place(own, &what), format!("upstream `{name}`: {what}"))
            };
            let to = match (same, own.url.get_ref() == DEMO) {
                (Some(to), _) => to,
                (None, demo) => {
                    let proxy = proxy(config, own, &trusted).map_err(fault)?;
                    if demo { To::Demo { page: Arc::clone(page) } } else { To::Proxy(proxy) }
                }
            };
            all.insert(name.clone(), (own.clone(), to));
        }
        Ok(Self { all, trusted })
    }

    /// The proxies that may say where a request comes from.
    pub(super) fn trusted(&self) -> &[IpNet] {
        &self.trusted
    }

    pub(super) fn are_used(&self, config: &Config) -> Result<(), FileError> {
        let routes = || config.file.route.iter().map(|route| route.get_ref().upstream.get_ref());
        let unused = config.file.upstream.iter().find(|(name, _)| !routes().any(|it| it == *name));
        let Some((name, own)) = unused else { return Ok(()) };
        Err(config.fault(&own.url, format!("upstream `{name}`: no route names it")))
    }

    /// The innermost service of a route.
    pub(super) fn service(&self, config: &Config, name: &Text) -> Result<Router, FileError> {
        let Some((_, to)) = self.all.get(name.get_ref()) else {
            let what = no_such("upstream", name.get_ref(), self.all.keys().map(String::as_str));
            return Err(config.fault(name, what));
        };
        Ok(match to.clone() {
            To::Demo { page } => {
                let keys = config.file.api_keys.values();
                let keys = keys.filter_map(|own| own.get_ref().header.clone()).collect();
                let demo = Demo { live: page, keys };
                Router::new().fallback(any(demo::page)).with_state(demo)
            }
            To::Proxy(proxy) => Router::new().fallback(move |request| proxy.forward(request)),
        })
    }
}

/// Where in the file it stands that a message is about.
fn place(own: &UpstreamConfig, what: &str) -> Range<usize> {
    let url = own.url.span();
    let [connect, response, body] =
        [&own.connect_timeout, &own.response_timeout, &own.body_timeout]
            .map(|it| it.as_ref().map(Spanned::span));
    let host = own.host.as_ref();
    let field = match what {
        _ if what.starts_with("a connect timeout") => connect,
        _ if what.starts_with("a response timeout") => response,
        _ if what.starts_with("a body timeout") => body,
        _ if what.starts_with("a body of") => own.max_body.as_ref().map(Spanned::span),
        _ => host.filter(|host| what.contains(&format!("{:?}", host.get_ref()))).map(Spanned::span),
    };
    field.unwrap_or(url)
}

fn proxy(config: &Config, own: &UpstreamConfig, trusted: &[IpNet]) -> Result<Proxy, String> {
    let url = own.url.get_ref();
    // What else is said of the demo is checked, too.
    let mut upstream = Upstream::new(if url == DEMO { "http://demo" } else { url });
    for (setting, given) in [
        (&mut upstream.connect_timeout, &own.connect_timeout),
        (&mut upstream.response_timeout, &own.response_timeout),
        (&mut upstream.body_timeout, &own.body_timeout),
    ] {
        if let Some(time) = given {
            *setting = time.get_ref().0;
        }
    }
    if let Some(size) = &own.max_body {
        upstream.max_body = size.get_ref().0;
    }
    upstream.ca = own.ca.as_ref().map(|path| config.beside(path));
    upstream.host = own.host.as_ref().map(|host| host.get_ref().clone());
    upstream.trusted = trusted.to_vec();
    upstream.build().map_err(|error| error.to_string())
}

/// A wrong one is found with the policies.
fn trusted(config: Option<&ClientIpConfig>) -> Vec<IpNet> {
    let texts = config.into_iter().flat_map(|config| &config.trusted);
    texts.filter_map(|text| network(text.trim())).collect()
}

/// A socket of Unix, which is a proxy as well, is nothing that is listened on here.
fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse().ok().map(|address: IpAddr| address.to_canonical().into());
    text.parse().ok().or_else(address)
}
