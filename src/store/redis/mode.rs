//! What a server is, where it was given as something else.

use deadpool_redis::redis::{self, Value, aio::MultiplexedConnection};

use super::{error::misconfigured, greeting::field, url::Way};
use crate::store::StoreError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Alone,
    Cluster,
    Sentinel,
}

impl Mode {
    /// What the answer to `HELLO` says, which every user may ask.
    pub(super) fn told(hello: &Value) -> Option<Self> {
        match field(hello, "mode")? {
            "standalone" => Some(Self::Alone),
            "cluster" => Some(Self::Cluster),
            "sentinel" => Some(Self::Sentinel),
            _ => None,
        }
    }

    #[allow(dead_code, reason = "only clusters and sentinels ask a server that lacks a command")]
    pub(super) async fn ask(connection: &mut MultiplexedConnection) -> Option<Self> {
        let hello = connection.send_packed_command(&redis::cmd("HELLO")).await;
        Self::told(&hello.ok()?)
    }

    /// The error for a URL by which it is something else.
    pub(super) fn instead_of(self, wanted: &str, way: &Way) -> StoreError {
        let (is, hint) = match self {
            Self::Alone => ("a single server", format!("its URL has `{}`", way.scheme(""))),
            Self::Cluster => (
                "a node of a cluster",
                format!(
                    "its URL has `{}`, with the cargo feature `redis-cluster`",
                    way.scheme("+cluster")
                ),
            ),
            Self::Sentinel => (
                "a sentinel",
                format!(
                    "its URL has `{}` and the name of the primary, with the cargo feature \
                     `redis-sentinel`",
                    way.scheme("+sentinel")
                ),
            ),
        };
        misconfigured(format!("this is {is}, and not {wanted}: {hint}"))
    }
}
