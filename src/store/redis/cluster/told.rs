//! What a node tells of the cluster: the answer to `CLUSTER SLOTS`.

use deadpool_redis::redis::{RedisError, Value, aio::MultiplexedConnection};

use super::{address::Address, slot::SLOTS};
use crate::store::{
    StoreError, StoreErrorKind,
    redis::{error, mode::Mode, url::Way},
};

/// Slots, first and last, and the address of their primary.
pub(super) type Range = (u16, u16, Address);

/// The ranges of slots that a node tells, asked at `asked`. Nodes whose address it does not know are left
/// out.
pub(super) fn ranges(value: &Value, asked: &Address) -> Result<Vec<Range>, StoreError> {
    let Value::Array(ranges) = value else { return Err(unexpected()) };
    let mut told = Vec::with_capacity(ranges.len());
    for range in ranges {
        let Value::Array(parts) = range else { return Err(unexpected()) };
        let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice()
        else {
            return Err(unexpected());
        };
        let (first, last) = (slot(*first)?, slot(*last)?);
        if let Some(address) = address(primary, asked)? {
            told.push((first, last, address));
        }
    }
    if told.is_empty() {
        return Err(StoreError::new(
            StoreErrorKind::Unreachable,
            "no node of the Redis Cluster serves a slot",
        ));
    }
    Ok(told)
}

/// A node is told by its host, port, id, and from Redis 7.0 on by what else is known of it.
fn address(node: &[Value], asked: &Address) -> Result<Option<Address>, StoreError> {
    let [host, Value::Int(port), more @ ..] = node else { return Err(unexpected()) };
    let port = u16::try_from(*port).map_err(|_| unexpected())?;
    let host = match host {
        Value::Nil => "",
        host => text(host).ok_or_else(unexpected)?,
    };
    let told = Address::told(host, port, asked);
    Ok(told.or_else(|| Address::told(field(more.get(1)?, "ip")?, port, asked)))
}

fn field<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    match of {
        Value::Array(values) => {
            let mut pairs = values.chunks_exact(2);
            text(&pairs.find(|pair| text(&pair[0]) == Some(name))?[1])
        }
        Value::Map(pairs) => text(&pairs.iter().find(|(key, _)| text(key) == Some(name))?.1),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn slot(number: i64) -> Result<u16, StoreError> {
    u16::try_from(number).ok().filter(|slot| *slot < SLOTS).ok_or_else(unexpected)
}

/// What it means that a node does not tell.
pub(super) async fn refused(
    connection: &mut MultiplexedConnection,
    cause: RedisError,
    way: &Way,
) -> StoreError {
    let alone = cause.detail().is_some_and(|detail| detail.contains("cluster support disabled"));
    let mode = match alone {
        true => Some(Mode::Alone),
        false if error::is_unknown_command(&cause) => Mode::ask(connection).await,
        false => None,
    };
    match mode {
        Some(mode @ (Mode::Alone | Mode::Sentinel)) => {
            mode.instead_of("a node of a cluster", way).with_source(cause)
        }
        _ => error::classify(cause),
    }
}

fn unexpected() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unexpected,
        "Redis answered `CLUSTER SLOTS` in a form that is not known",
    )
}
