//! What the server's and the client's errors mean for a limit.

use deadpool_redis::{
    PoolError,
    redis::{ErrorKind, RedisError, ServerErrorKind},
};

use super::{
    tls,
    url::{Transport, Way},
};
use crate::store::{StoreError, StoreErrorKind};

/// The most characters of an error's text. What a server sends may be of any length.
const MAX_TEXT: usize = 500;

pub(super) fn misconfigured(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, message)
}

/// The server does not know the script, so nothing ran.
pub(super) fn is_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// The server is another one than it was taken for, or too old.
pub(super) fn is_unknown_command(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default().to_ascii_lowercase();
    detail.starts_with("unknown command") || detail.starts_with("unknown subcommand")
}

/// Whether a new connection may serve better than the one that had this error: it broke, it leads to
/// a server that was demoted, or it is not authenticated.
pub(super) fn breaks_connection(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || (error.is_io_error() && !error.is_timeout())
        || matches!(error.code(), Some("READONLY" | "NOAUTH"))
        || error.to_string().contains("-READONLY ")
}

pub(super) fn classify(error: RedisError) -> StoreError {
    if let Some(message) = tls::fault(&error) {
        return misconfigured(one_line(&message)).with_source(error);
    }
    let message = match (error.code(), error.detail()) {
        _ if error.kind() == ErrorKind::AuthenticationFailed => {
            "Redis refuses the user or the password: wrong, unknown, or switched off".to_owned()
        }
        // A store over a cluster follows these.
        (Some("MOVED" | "ASK"), _) => {
            "Redis: this server is a node of a cluster, whose URL has `redis+cluster://`, with the cargo \
             feature `redis-cluster`"
                .to_owned()
        }
        (Some(code), Some(detail)) => format!("Redis: {code} {detail}"),
        _ => format!("Redis: {error}"),
    };
    StoreError::new(kind(&error), one_line(&message)).with_source(error)
}

pub(super) fn pool(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => classify(error),
        PoolError::Timeout(_) => {
            StoreError::new(StoreErrorKind::Timeout, "the pool gave no connection in time")
        }
        other => StoreError::new(StoreErrorKind::Misconfigured, format!("the pool: {other}")),
    }
}

/// A connection could not be made. One without TLS that is closed at once, or answers in no known
/// form, may be one to a server with TLS.
pub(super) fn connecting(error: PoolError, way: &Way) -> StoreError {
    let closed = |cause: &RedisError| {
        cause.kind() == ErrorKind::Parse
            || (cause.is_connection_dropped() && !cause.is_connection_refusal())
    };
    match error {
        PoolError::Backend(cause) if cause.is_io_error() || closed(&cause) => {
            let hint = if way.transport == Transport::Tcp && closed(&cause) {
                "; the URL of a server with TLS begins with `rediss`, as in `rediss://`"
            } else {
                ""
            };
            if let Some(message) = tls::fault(&cause) {
                return misconfigured(one_line(&message)).with_source(cause);
            }
            let text = one_line(&cause.to_string());
            StoreError::new(kind(&cause), format!("Redis: {text}{hint}")).with_source(cause)
        }
        other => pool(other),
    }
}

/// A key that the script could not use: a text that begins with the server's code.
pub(super) fn fault(text: &[u8]) -> StoreError {
    let text = String::from_utf8_lossy(text);
    let (code, detail) = text.split_once(' ').unwrap_or((&text, ""));
    let kind = match server(code.trim_start_matches('-'), detail) {
        StoreErrorKind::Unexpected => StoreErrorKind::Misconfigured,
        kind => kind,
    };
    StoreError::new(kind, one_line(&format!("Redis: {text}")))
}

/// What a server sends reaches logs, in which it must not begin lines of its own.
pub(super) fn one_line(text: &str) -> String {
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    text.trim().chars().take(MAX_TEXT).map(plain).collect()
}

fn kind(error: &RedisError) -> StoreErrorKind {
    match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
            StoreErrorKind::Misconfigured
        }
        _ if error.is_timeout() => StoreErrorKind::Timeout,
        ErrorKind::Io => StoreErrorKind::Unreachable,
        // The connection was closed within an answer.
        ErrorKind::Parse if error.to_string().contains("Unexpected end of input") => {
            StoreErrorKind::Unreachable
        }
        _ => {
            let detail = error.detail().unwrap_or_default();
            error.code().map_or(StoreErrorKind::Unexpected, |code| server(code, detail))
        }
    }
}

/// What a server's error code means; some servers put the code of a script's inner error into the
/// detail of an outer `ERR`.
fn server(code: &str, detail: &str) -> StoreErrorKind {
    match code {
        "LOADING" | "BUSY" | "CLUSTERDOWN" | "TRYAGAIN" | "MASTERDOWN" => StoreErrorKind::Busy,
        "READONLY" | "NOREPLICAS" | "MISCONF" => StoreErrorKind::ReadOnly,
        "OOM" => StoreErrorKind::OutOfMemory,
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "WRONGTYPE" | "CROSSSLOT" | "MOVED" | "ASK" => {
            StoreErrorKind::Misconfigured
        }
        _ if detail.contains("max number of clients") => StoreErrorKind::Unreachable,
        _ if CONFIGURATION.iter().any(|text| detail.contains(text)) => {
            StoreErrorKind::Misconfigured
        }
        _ => inner(detail).unwrap_or(StoreErrorKind::Unexpected),
    }
}

/// What servers of different versions say to a user without the right to a command, and to a command
/// that they do not have.
const CONFIGURATION: [&str; 6] = [
    "DB index",
    "can't run this command",
    "no permissions",
    "NOPERM",
    "unknown command",
    "invalid username-password",
];

fn inner(detail: &str) -> Option<StoreErrorKind> {
    let (_, after) = detail.split_once(": -")?;
    let code = after.split(' ').next()?;
    match server(code, "") {
        StoreErrorKind::Unexpected => None,
        kind => Some(kind),
    }
}
