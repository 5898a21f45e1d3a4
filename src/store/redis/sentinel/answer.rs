//! What sentinels and data servers say about who is the primary.

use deadpool_redis::redis::{self, Pipeline, RedisError, Value, aio::MultiplexedConnection};

use super::super::{
    error::{self, misconfigured},
    greeting::{field, text},
    mode::Mode,
    url::Way,
    wire,
};
use crate::store::{StoreError, StoreErrorKind};

/// Where a sentinel says that the primary is.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: Box<str>,
    pub(super) port: u16,
}

pub(super) struct Told {
    pub(super) place: Place,
    /// Failovers have numbers that grow: of two answers, the one with the larger is newer.
    pub(super) epoch: u64,
}

/// Asks a sentinel.
pub(super) async fn ask(
    connection: &mut MultiplexedConnection,
    name: &str,
    way: &Way,
) -> Result<Told, StoreError> {
    let mut commands = Pipeline::new();
    commands.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    commands.cmd("SENTINEL").arg("MASTER").arg(name);
    let answers = connection.send_packed_commands(&commands, 0, commands.len()).await;
    let answers = answers.map_err(error::classify)?;
    let [address, details] = answers.as_slice() else { return Err(wire::unexpected()) };
    match address {
        Value::Nil => Err(misconfigured(format!("no primary is called `{name}` there"))),
        Value::ServerError(cause) => Err(refused(connection, cause.clone().into(), way).await),
        Value::Array(words) => {
            let place = place(words).ok_or_else(wire::unexpected)?;
            // Who may not ask for details is told the place all the same.
            let epoch = field(details, "config-epoch").and_then(|epoch| epoch.parse().ok());
            Ok(Told { place, epoch: epoch.unwrap_or_default() })
        }
        _ => Err(wire::unexpected()),
    }
}

/// What it means that a sentinel does not tell.
async fn refused(
    connection: &mut MultiplexedConnection,
    cause: RedisError,
    way: &Way,
) -> StoreError {
    let unknown = error::is_unknown_command(&cause);
    match if unknown { Mode::ask(connection).await } else { None } {
        Some(mode @ (Mode::Alone | Mode::Cluster)) => {
            mode.instead_of("a sentinel", way).with_source(cause)
        }
        _ => error::classify(cause),
    }
}

fn place(words: &[Value]) -> Option<Place> {
    let [host, port] = words else { return None };
    let (host, port) = (text(host)?, text(port)?.parse().ok()?);
    // It reaches logs.
    let plain = |byte: u8| byte.is_ascii_graphic();
    let fine = (1..=255).contains(&host.len()) && host.bytes().all(plain) && port > 0;
    fine.then(|| Place { host: host.into(), port })
}

/// Whether a data server calls itself a primary. `HELLO` says the same as `ROLE`, and every user may
/// say it.
pub(super) async fn is_primary(connection: &mut MultiplexedConnection) -> Result<bool, StoreError> {
    let hello = connection.send_packed_command(&redis::cmd("HELLO")).await;
    let hello = hello.and_then(Value::extract_error).map_err(error::classify)?;
    Ok(field(&hello, "role") == Some("master"))
}

pub(super) fn not_primary() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unreachable,
        "no primary: this is a replica, though a sentinel names it",
    )
}
