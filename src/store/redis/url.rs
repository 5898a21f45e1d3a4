//! The server's URL. No error shows it, as it may hold a password.

use std::sync::Arc;

use deadpool_redis::redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisResult, io::tcp::TcpSettings,
    parse_redis_url,
};

use super::{
    error::{self, misconfigured},
    tls,
};
use crate::store::StoreError;

const TCP: [&str; 2] = ["redis", "valkey"];
const TLS: [&str; 2] = ["rediss", "valkeys"];
const SENTINEL: [&str; 4] =
    ["redis+sentinel", "rediss+sentinel", "valkey+sentinel", "valkeys+sentinel"];
const UNIX: [&str; 3] = ["unix", "redis+unix", "valkey+unix"];

const TCP_FORM: &str = "[user][:password@]host[:port][/database]";
const UNIX_FORM: &str = "/path[?db=number&user=name&pass=password]";

/// A peer that acknowledges nothing for so long is gone, whatever the kernel hopes.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const USER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3);

pub(super) fn connection_info(url: &str) -> Result<ConnectionInfo, StoreError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(wrong(format!(
            "must begin with a scheme, as in `redis://` or `redis://{TCP_FORM}`"
        )));
    };
    let scheme = scheme.to_ascii_lowercase();
    let known = |schemes: &[&str]| schemes.contains(&scheme.as_str());
    let unix = known(&UNIX);
    if known(&TLS) && !tls::AVAILABLE {
        return Err(wrong(format!(
            "has the scheme `{scheme}`, for which tollgate needs its cargo feature `tls`"
        )));
    }
    if !unix && !known(&TCP) && !known(&TLS) {
        let of =
            if is_scheme(&scheme) { format!("the scheme `{scheme}`") } else { "no scheme".into() };
        return Err(wrong(format!(
            "has {of}: `redis://`, `rediss://` (TLS), `redis+unix://`, `redis+cluster://`, `redis+sentinel://`, \
             or the same with `valkey`, is expected"
        )));
    }
    if rest.contains('#') {
        return Err(wrong(
            "has a `#`, which in a password is written as `%23`; no setting follows it, and certificates \
             are checked in any case"
                .into(),
        ));
    }
    if has_bad_escape(rest) {
        return Err(wrong(
            "has a `%` that is not followed by two hexadecimal digits; `%` itself is written as `%25`"
                .into(),
        ));
    }
    let info = parse(url, unix).map_err(|fault| {
        let form = if unix { UNIX_FORM } else { TCP_FORM };
        wrong(format!(
            "{fault}; it has the form `{scheme}://{form}`, and in a user and a password, characters \
             such as `@ : / ? # %` are written as `%40 %3A %2F %3F %23 %25`"
        ))
    })?;
    let info = info.map_err(|cause| wrong(format!("cannot be used: {cause}")))?;
    let login = info.redis_settings().clone();
    if login.db() < 0 {
        return Err(wrong(format!("has the database {}: it must not be negative", login.db())));
    }
    // Without a password the client would not name the user either.
    let nameless = login.username().is_some() && login.password().is_none();
    let login = if nameless { login.set_password("") } else { login };
    let tcp = TcpSettings::default().set_nodelay(true);
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    let tcp = tcp.set_user_timeout(USER_TIMEOUT);
    Ok(info.set_redis_settings(login).set_tcp_settings(tcp))
}

/// The scheme of the URL of a cluster, and what stands behind it.
pub(super) fn cluster_scheme(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let of = scheme.strip_suffix("+cluster")?;
    (TCP.contains(&of) || TLS.contains(&of)).then_some((scheme, rest))
}

/// The scheme of a URL that names sentinels, in small letters, and what is behind it.
pub(super) fn of_sentinels(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    SENTINEL.contains(&&*scheme).then_some((scheme, rest))
}

/// What is known of the way to a server, for a hint where it fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Tls,
    /// A socket of the system, or the way of somebody else's pool.
    Other,
}

/// The way to a server, and where that is.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) transport: Transport,
    /// `host:port`, or nothing, where somebody else's pool knows.
    pub(super) place: Option<Arc<str>>,
}

impl Way {
    pub(super) fn to(info: &ConnectionInfo) -> Self {
        let transport = match info.addr() {
            ConnectionAddr::Tcp(..) => Transport::Tcp,
            ConnectionAddr::TcpTls { .. } => Transport::Tls,
            _ => Transport::Other,
        };
        let place = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                host_and_port(host, *port)
            }
            other => other.to_string(),
        };
        Self { transport, place: Some(error::one_line(&place).into()) }
    }

    pub(super) fn of_pool() -> Self {
        Self { transport: Transport::Other, place: None }
    }

    /// How the URL begins of what is there, such as `+cluster`, or nothing for a single server.
    pub(super) fn scheme(&self, of: &str) -> String {
        let plain = if self.transport == Transport::Tls { "rediss" } else { "redis" };
        format!("{plain}{of}://")
    }

    /// What may be wrong with a server from which nothing comes.
    pub(super) const fn hint(&self) -> &'static str {
        match self.transport {
            // A server without TLS waits for the end of what it takes for a command.
            Transport::Tls => "; is TLS spoken there?",
            _ => "",
        }
    }
}

/// An address as in a URL.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// What the client makes of a URL, or what is wrong with its form: the client ignores what it does not
/// know.
fn parse(url: &str, unix: bool) -> Result<RedisResult<ConnectionInfo>, &'static str> {
    let Some(url) = parse_redis_url(url) else {
        return Err("has no host, or a port that is no number up to 65535");
    };
    let names: &[&str] = if unix { &["db", "user", "pass", "protocol"] } else { &["protocol"] };
    if !url.query_pairs().all(|(name, _)| names.contains(&&*name)) {
        return Err("has an unknown setting behind its `?`");
    }
    if unix && (url.has_host() || url.path().len() < 2) {
        return Err("has no path of a socket");
    }
    if !unix && !url.has_host() {
        return Err("has no host");
    }
    let database = url.path().trim_matches('/');
    if !unix && !database.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("has a database that is not a number");
    }
    Ok(url.into_connection_info())
}

fn has_bad_escape(text: &str) -> bool {
    text.split('%').skip(1).any(|after| {
        let digits = after.as_bytes();
        digits.len() < 2 || !digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'))
}

pub(super) fn wrong(message: String) -> StoreError {
    misconfigured(format!("the URL of the Redis server {message}"))
}
