//! The listener for those who run the gateway, apart from the public one: metrics, checks, and a page
//! that shows what happens and looks up, refunds and resets keys.

mod board;
mod counts;
mod guard;
mod keys;
mod latency;
mod live;
mod top;
mod watch;

use std::{error::Error, future, io::ErrorKind, net::SocketAddr, sync::Arc};

use axum::{
    Router, middleware,
    routing::{get, post},
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};
use tollgate::{Limiter, PolicyHandle};
use toml::Spanned;

pub(crate) use self::watch::{Watch, Watched};
use self::{board::Board, guard::Guard};
use crate::{
    app,
    config::{Config, FileError},
    serve,
};

/// Where it listens, if nobody says otherwise.
const DEFAULT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9090);
/// Seconds: a call to the store takes from below a millisecond to its deadline.
const BUCKETS: [f64; 10] = [0.000_25, 0.000_5, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0];
/// Pages that are open at a time.
const VIEWERS: usize = 32;

/// Where the listener is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    At(SocketAddr),
}

impl Place {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "off" {
            return Ok(Self::Nowhere);
        }
        let address = text.parse().map(Self::At);
        address.map_err(|_| "it must be off, or an address and a port, such as 127.0.0.1:9090")
    }
}

/// Whether the listener could be had, as the configuration describes it.
pub(crate) fn check(config: &Config) -> Result<(), FileError> {
    guard(config).map(drop)
}

fn guard(config: &Config) -> Result<Option<(SocketAddr, Guard)>, FileError> {
    let own = &config.file.admin;
    let address = match own.listen.as_ref().map(Spanned::get_ref) {
        Some(Place::Nowhere) => return Ok(None),
        Some(Place::At(address)) => *address,
        None => DEFAULT,
    };
    let file = own.token_file.as_ref().map(|path| config.beside(path.get_ref()));
    let guard = Guard::new(address, file.as_deref());
    guard.map(|guard| Some((address, guard))).map_err(|error| match &own.token_file {
        Some(path) => config.fault_of_flag(Some(path), ["--admin-token-file", "admin"], error),
        None => config.fault_of_flag(own.listen.as_ref(), ["--admin", "admin"], error),
    })
}

/// What the listener needs, before it listens.
pub(crate) struct Admin {
    address: SocketAddr,
    /// Whether somebody has asked for this address.
    asked: bool,
    guard: Guard,
    board: Arc<Board>,
}

impl Admin {
    /// Checks what the configuration says. From now on metrics are kept, unless there is to be no listener.
    pub(crate) fn prepare(config: &Config) -> Result<Option<Self>, Box<dyn Error>> {
        let Some((address, guard)) = guard(config)? else { return Ok(None) };
        let store_calls = Matcher::Full("tollgate_store_duration_seconds".to_owned());
        let metrics = PrometheusBuilder::new()
            .set_buckets_for_metric(store_calls, &BUCKETS)?
            .install_recorder()?;
        let store = if config.file.redis.url.is_some() { "Redis" } else { "memory" };
        let board = Arc::new(Board::new(metrics, store));
        Ok(Some(Self { address, asked: config.file.admin.listen.is_some(), guard, board }))
    }

    /// Watches layers that limit, for the page.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(&self.board)
    }

    pub(crate) async fn bind(self) -> Result<Listening, Box<dyn Error>> {
        let address = self.address;
        let listener = match TcpListener::bind(address).await {
            // Nobody asked for this one, which a second gateway on the same machine does not get.
            Err(cause) if !self.asked && cause.kind() == ErrorKind::AddrInUse => {
                tracing::warn!("{address} is taken; the admin listener takes a free port");
                TcpListener::bind((address.ip(), 0)).await
            }
            bound => bound,
        };
        let listener =
            listener.map_err(|cause| format!("cannot listen on {address} (--admin): {cause}"))?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address, admin: self })
    }
}

/// The listener, before it serves.
pub(crate) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    admin: Admin,
}

impl Listening {
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the task is aborted: not to the end of what is in flight, as a page that is open
    /// has none.
    pub(crate) fn serve(self, limiter: &Limiter, policies: &PolicyHandle) -> JoinHandle<()> {
        let Self { listener, admin: Admin { guard, board, .. }, .. } = self;
        let (limiter, policies) = (limiter.clone(), policies.clone());
        let viewers = Arc::new(Semaphore::new(VIEWERS));
        let panel = Panel { board, limiter, policies, viewers };
        let app = router(&panel, guard);
        tokio::spawn(async move {
            tokio::select! {
                _ = serve::until(future::pending(), listener, app) => {}
                () = panel.board.keep(&panel.limiter, &panel.policies) => {}
            }
        })
    }
}

/// What its handlers share.
#[derive(Clone)]
struct Panel {
    board: Arc<Board>,
    limiter: Limiter,
    policies: PolicyHandle,
    viewers: Arc<Semaphore>,
}

fn router(panel: &Panel, guard: Guard) -> Router {
    let metrics = panel.board.metrics();
    live::files()
        .route("/", get(live::page))
        .route("/live", get(live::events))
        .route("/live.json", get(live::now))
        .route("/key/look", post(keys::look))
        .route("/key/refund", post(keys::refund))
        .route("/key/reset", post(keys::reset))
        .with_state(panel.clone())
        .route("/metrics", get(async move || ([("content-type", TEXT)], metrics.render())))
        .merge(app::checks(&panel.limiter))
        // Outside of all, also of what is not found.
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::check))
}

/// The text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
