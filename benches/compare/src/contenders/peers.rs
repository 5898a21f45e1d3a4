//! Layers of others, around the same service and by the same key.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{body::Body, extract::ConnectInfo};
use http::{Request, Response};
use redis_0_32::Client;
use tower::Layer as _;
use tower_governor::{GovernorLayer, governor::GovernorConfigBuilder};
use tower_rate_limit_redis::{KeyResolver, RateLimitLayer};

use super::{
    Contender, Room,
    service::{Layered, bare},
};

/// A limit of its type, and below it the requests after which a wide bucket is left for a new one.
const MOST: u64 = 65_535;
const FULL: u64 = 60_000;

/// Draws the key: the address that a request comes from.
#[derive(Clone)]
struct ByPeer {
    prefix: &'static str,
    /// Requests so far, where one key has more of them than the widest bucket holds: then it changes
    /// its name in time, so that it is as hot as ever and is not denied.
    asked: Option<Arc<AtomicU64>>,
}

impl KeyResolver for ByPeer {
    type Key = String;
    type ErrorBody = Body;

    fn key<T>(&self, request: &Request<T>) -> Result<String, Response<Body>> {
        let peer = request.extensions().get::<ConnectInfo<std::net::SocketAddr>>();
        let ip = peer.expect("each request has a peer").ip();
        Ok(match &self.asked {
            None => format!("{}:{ip}", self.prefix),
            Some(asked) => {
                format!("{}:{ip}:{}", self.prefix, asked.fetch_add(1, Ordering::Relaxed) / FULL)
            }
        })
    }
}

/// The crate of that name: one connection, and one call per request. A feature of its client turns
/// Nagle's algorithm off, as it is in this crate.
pub(crate) async fn tower_rate_limit_redis(
    url: &str,
    room: Room,
    prefix: &'static str,
) -> impl Contender + use<> {
    let client = Client::open(url).expect("a valid URL");
    let connection = client.get_multiplexed_async_connection().await;
    let asked = (room.burst > MOST * 100).then(Arc::default);
    let layer = RateLimitLayer::builder()
        .conn(connection.expect("the server was started"))
        .key_resolver(ByPeer { prefix, asked })
        .capacity(room.burst.min(MOST) as u16)
        .emission_interval(room.every)
        .build();
    Layered(layer.layer(bare()))
}

/// `tower_governor`, in memory, as it comes.
pub(crate) fn governor(room: Room) -> impl Contender {
    let config =
        GovernorConfigBuilder::default().period(room.every).burst_size(room.burst as u32).finish();
    Layered(GovernorLayer::new(config.expect("a valid quota")).layer(bare()))
}

/// The same with `X-RateLimit` fields on its answers.
pub(crate) fn governor_with_headers(room: Room) -> impl Contender {
    let config = GovernorConfigBuilder::default()
        .period(room.every)
        .burst_size(room.burst as u32)
        .use_headers()
        .finish();
    Layered(GovernorLayer::new(config.expect("a valid quota")).layer(bare()))
}
