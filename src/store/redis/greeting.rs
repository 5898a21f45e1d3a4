//! What a server is asked over a new connection, before requests go over it.

use deadpool_redis::redis::{self, Pipeline, RedisError, Value, aio::MultiplexedConnection};

use super::{
    error::{self, misconfigured},
    mode::Mode,
    script::{ACQUIRE, REFUND},
    url::Way,
    wire,
};
use crate::store::StoreError;

/// The least version of Redis: major and minor.
const LEAST: (u32, u32) = (6, 2);

/// Loads the scripts, and makes sure that they can be called.
pub(super) async fn greet(
    connection: &mut MultiplexedConnection,
    way: &Way,
) -> Result<(), StoreError> {
    // A server that wants a password first closes on a text as long as the script, without a word
    // about the password.
    let ping = connection.send_packed_command(&redis::cmd("PING")).await;
    let _pong = ping.and_then(Value::extract_error).map_err(error::classify)?;

    let mut commands = Pipeline::new();
    // Every user may say it.
    commands.cmd("HELLO");
    for script in [&ACQUIRE, &REFUND] {
        commands.cmd("SCRIPT").arg("LOAD").arg(script.source());
    }
    // Decides about nothing, and answers with the time.
    commands.cmd("EVALSHA").arg(ACQUIRE.sha()).arg(0);
    // For a server that forgets its scripts.
    commands.cmd("EVAL").arg("return 1").arg(0);
    let answers = connection.send_packed_commands(&commands, 0, commands.len()).await;
    let answers = answers.map_err(error::classify)?;
    let [hello, load, load_refund, decide, eval] = answers.as_slice() else {
        return Err(wire::unexpected());
    };

    if Mode::told(hello) == Some(Mode::Sentinel) {
        return Err(Mode::Sentinel.instead_of("a server with data", way));
    }
    let version = match (version(hello), hello) {
        (None, Value::ServerError(_)) => info(connection).await?,
        (version, _) => version,
    };
    if let Some(version) = &version {
        version.check()?;
    }
    for (name, answer) in
        [("SCRIPT LOAD", load), ("SCRIPT LOAD", load_refund), ("EVALSHA", decide), ("EVAL", eval)]
    {
        let Value::ServerError(cause) = answer else { continue };
        let cause = RedisError::from(cause.clone());
        // What stands before several servers may have loaded the script into another one.
        if !error::is_no_script(&cause) {
            return Err(lacks(name, version.as_ref(), cause));
        }
    }
    match decide {
        Value::ServerError(_no_script) => Ok(()),
        decide => wire::answers(decide, 0).map(drop),
    }
}

/// The version, if the answer to `HELLO` tells one of Redis.
fn version(hello: &Value) -> Option<Version> {
    let version = field(hello, "version");
    Version::parse(version.filter(|_| field(hello, "server") == Some("redis"))?)
}

/// What an answer of names and values says under this name.
pub(super) fn field<'a>(answer: &'a Value, name: &str) -> Option<&'a str> {
    match answer {
        Value::Map(pairs) => {
            pairs.iter().find(|(found, _)| text(found) == Some(name)).and_then(|(_, it)| text(it))
        }
        Value::Array(values) => {
            let mut pairs = values.chunks_exact(2);
            pairs.find(|pair| text(&pair[0]) == Some(name)).and_then(|pair| text(&pair[1]))
        }
        _ => None,
    }
}

/// The version by `INFO`, of a server that does not know `HELLO`. Not every user may ask for it.
async fn info(connection: &mut MultiplexedConnection) -> Result<Option<Version>, StoreError> {
    let info = redis::cmd("INFO").arg("server").take();
    let answer = connection.send_packed_command(&info).await.map_err(error::classify)?;
    let mut lines = text(&answer).unwrap_or_default().lines();
    Ok(lines.find_map(|line| Version::parse(line.strip_prefix("redis_version:")?)))
}

pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

/// An error for a command that was refused.
fn lacks(name: &str, version: Option<&Version>, cause: RedisError) -> StoreError {
    if !error::is_unknown_command(&cause) {
        return error::classify(cause);
    }
    let server = version.map(|version| format!(", Redis {},", version.text)).unwrap_or_default();
    let (major, minor) = LEAST;
    misconfigured(format!(
        "the server{server} lacks `{name}`: tollgate needs its scripts, and at least Redis \
         {major}.{minor}"
    ))
    .with_source(cause)
}

/// The version of a Redis; others have numbers of their own.
struct Version {
    text: String,
    numbers: (u32, u32),
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(str::parse);
        let numbers = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self { text: error::one_line(text), numbers })
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.numbers >= LEAST {
            return Ok(());
        }
        let (text, (major, minor)) = (&self.text, LEAST);
        Err(misconfigured(format!(
            "the server is Redis {text}: tollgate needs at least Redis {major}.{minor}"
        )))
    }
}
