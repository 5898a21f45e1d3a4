//! The settings of the proxy.

use std::{borrow::Cow, error::Error, fmt, path::PathBuf, time::Duration};

use axum::http::uri::{Authority, Scheme};
use ipnet::IpNet;

use super::{Proxy, target};
use crate::tls::{self, Trust};

/// Where requests go, and what is asked of both sides.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    /// `http://host:port` or, with TLS, `https://host:port`; `h2c://host:port` for one that speaks
    /// HTTP/2 without TLS, `h2://host:port` with it.
    pub(crate) url: String,
    /// File of certificates in PEM that are trusted instead of those that the system trusts.
    pub(crate) ca: Option<PathBuf>,
    /// For how long a connection may take to be there, with the resolution of the name and the
    /// handshake of TLS.
    pub(crate) connect_timeout: Duration,
    /// For how long the upstream may take nothing more of a body, or not begin to answer.
    pub(crate) response_timeout: Duration,
    /// For how long a client may send nothing of its body, before there is an answer.
    pub(crate) body_timeout: Duration,
    /// Bytes that the body of a request may have.
    pub(crate) max_body: u64,
    /// The `Host` that the upstream is told, if not the client's.
    pub(crate) host: Option<String>,
    /// Proxies whose `X-Forwarded-For`, `-Host` and `-Proto` are believed.
    pub(crate) trusted: Vec<IpNet>,
}

const TIMEOUTS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3_600));
const MOST_BODY: u64 = 1 << 40;

impl Upstream {
    /// One at `url`, with the settings that it has by itself.
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca: None,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(60),
            max_body: 100 << 20,
            host: None,
            trusted: Vec::new(),
        }
    }

    /// Checks all of it. Nothing is connected yet.
    pub(crate) fn build(self) -> Result<Proxy, SettingError> {
        let (protocol, authority) = origin(&self.url)?;
        let fault = |fault: tls::Fault| {
            SettingError(format!("the upstream {:?}: {fault}", shown(&self.url)))
        };
        let tls = Trust::new(protocol.tls, self.ca.as_deref())
            .and_then(|trust| trust.config(protocol.name()))
            .map_err(fault)?;
        timeout("connect timeout", self.connect_timeout)?;
        timeout("response timeout", self.response_timeout)?;
        timeout("body timeout", self.body_timeout)?;
        if self.max_body > MOST_BODY {
            let text = format!("a body of {} bytes: it may be at most {MOST_BODY}", self.max_body);
            return Err(SettingError(text));
        }
        let host = self.host.as_deref().map(|host| authority_of(host, &shown(host))).transpose()?;
        Ok(Proxy::new(self, (protocol, tls), authority, host))
    }
}

/// What is spoken to an upstream.
#[derive(Clone, Copy)]
pub(super) struct Protocol {
    pub(super) http2: bool,
    pub(super) tls: bool,
}

impl Protocol {
    pub(super) fn scheme(self) -> Scheme {
        if self.tls { Scheme::HTTPS } else { Scheme::HTTP }
    }

    /// Its name in ALPN.
    const fn name(self) -> &'static str {
        if self.http2 { "h2" } else { "http/1.1" }
    }
}

fn origin(url: &str) -> Result<(Protocol, Authority), SettingError> {
    let fault = |what: &str| SettingError(format!("the upstream {:?} {what}", shown(url)));
    if url.contains('@') {
        return Err(fault("has a user or a password: none is sent to an upstream"));
    }
    let form = "must be a URL such as http://127.0.0.1:9000, or h2c://127.0.0.1:9000 for HTTP/2; \
                https:// and h2:// are the same with TLS";
    let (scheme, rest) = url.split_once("://").ok_or_else(|| fault(form))?;
    let (http2, tls) = match scheme {
        "http" => (false, false),
        "h2c" => (true, false),
        "https" => (false, true),
        "h2" => (true, true),
        _ => return Err(fault(form)),
    };
    let bare = rest.strip_suffix('/').unwrap_or(rest);
    if bare.contains(['/', '?', '#']) {
        return Err(fault("has a path: paths go on as they come"));
    }
    let authority = authority_of(bare, url)?;
    if tls && !tls::can_be_verified(authority.host()) {
        return Err(fault("has a host that no certificate can be for"));
    }
    Ok((Protocol { http2, tls }, authority))
}

/// Without what stands before an `@`, which may be a password. It may have a slash or an `@` in it.
fn shown(url: &str) -> Cow<'_, str> {
    let Some((_, rest)) = url.rsplit_once('@') else { return url.into() };
    match url.split_once("://") {
        Some((scheme, after)) if after.contains('@') => format!("{scheme}://…@{rest}").into(),
        _ => format!("…@{rest}").into(),
    }
}

fn authority_of(text: &str, shown: &str) -> Result<Authority, SettingError> {
    let authority = target::authority(text).filter(|authority| authority.port_u16() != Some(0));
    let fault = || SettingError(format!("{shown:?} must name a host, and a port if need be"));
    authority.ok_or_else(fault)
}

fn timeout(name: &str, given: Duration) -> Result<(), SettingError> {
    let (least, most) = TIMEOUTS;
    if (least..=most).contains(&given) {
        return Ok(());
    }
    Err(SettingError(format!("a {name} of {given:?}: it must be {least:?} to {most:?}")))
}

/// A setting that cannot be kept; says which, and what would be right.
#[derive(Debug)]
pub(crate) struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for SettingError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(change: impl FnOnce(&mut Upstream)) -> String {
        let mut upstream = Upstream::new("http://127.0.0.1:9000");
        change(&mut upstream);
        upstream.build().err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_bound() {
        assert_eq!(fault(|_| {}), "");
        assert_eq!(fault(|upstream| upstream.url = "h2c://[::1]:9000/".into()), "");
        for url in ["", "up", "127.0.0.1:9000", "ftp://up", "http://", "http://a:b"] {
            let fault = fault(|upstream| upstream.url = url.into());
            assert!(fault.contains(&format!("{url:?}")), "{url}: {fault}");
        }
        for (url, shown) in [
            ("http://u:s3cret@a:1/", "\"http://…@a:1/\" has a user"),
            ("http://u:s3cret/@s3cret@a", "\"http://…@a\" has a user"),
            ("ftp://s3cret@a", "\"ftp://…@a\" has a user"),
            ("s3cret@a://b", "\"…@a://b\" has a user"),
        ] {
            let fault = fault(|upstream| upstream.url = url.into());
            assert!(fault.contains(shown) && !fault.contains("s3cret"), "{url}: {fault}");
        }
        let host = fault(|upstream| upstream.host = Some("s3cret@a".into()));
        assert!(host.contains("\"…@a\"") && !host.contains("s3cret"), "{host}");
        assert!(fault(|upstream| upstream.url = "http://up/base".into()).contains("has a path"));
        assert!(fault(|upstream| upstream.url = "https://a~b".into()).contains("no certificate"));
        let trusting = |url: &str| {
            fault(|upstream| {
                (upstream.url, upstream.ca) = (url.into(), Some("/nowhere/ca.pem".into()));
            })
        };
        for url in ["https://up", "h2://up:8443"] {
            assert!(trusting(url).contains(&format!("{url:?}: the CA file /nowhere")), "{url}");
        }
        assert!(trusting("http://up").contains("has no TLS"));
        assert!(fault(|upstream| upstream.host = Some("a b".into())).contains("\"a b\""));
        assert_eq!(
            fault(|upstream| upstream.connect_timeout = Duration::ZERO),
            "a connect timeout of 0ns: it must be 10ms to 3600s"
        );
        let late = fault(|upstream| upstream.response_timeout = Duration::from_secs(3_601));
        assert!(late.contains("a response timeout of 3601s"), "{late}");
        assert!(fault(|upstream| upstream.max_body = u64::MAX).contains("at most 1099511627776"));
    }
}
