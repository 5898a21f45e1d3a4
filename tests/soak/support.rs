//! The servers of `tests/servers`.

#![allow(dead_code, reason = "a part of it is enough here")]

#[path = "../servers/support/binary.rs"]
mod binary;
#[path = "../servers/support/launch.rs"]
mod launch;
#[path = "../servers/support/port.rs"]
mod port;
#[path = "../servers/support/process.rs"]
mod process;
#[path = "../servers/support/resp.rs"]
mod resp;
#[path = "../servers/support/server.rs"]
mod server;

pub(crate) use self::server::RedisServer;
