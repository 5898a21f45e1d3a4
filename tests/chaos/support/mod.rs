//! What the tests against real servers stand on, as far as it is used here.

#![expect(dead_code, reason = "the other tests use more of it")]

#[path = "../../servers/support/binary.rs"]
mod binary;
#[path = "../../servers/support/launch.rs"]
mod launch;
#[path = "../../servers/support/port.rs"]
mod port;
#[path = "../../servers/support/process.rs"]
mod process;
#[path = "../../servers/support/proxy/mod.rs"]
mod proxy;
#[path = "../../servers/support/resp.rs"]
mod resp;
#[path = "../../servers/support/server.rs"]
mod server;

pub(crate) use self::{proxy::Proxy, resp::Connection, server::RedisServer};
