//! Serving, with bounds on what clients may do, and ending without breaking off what is in flight.

mod linger;
mod signal;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::ConnectInfo, http::Request};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto::Builder,
        graceful::{GracefulShutdown, Watcher},
    },
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{sleep, timeout},
};
use tower_service::Service as _;

/// How long requests in flight may take to end, once the process is asked to.
const DRAIN: Duration = Duration::from_secs(10);

/// For how long the head of a request may be on its way, and a connection without one.
const HEAD: Duration = Duration::from_secs(10);
const MOST_FIELDS: usize = 100;
const MOST_HEAD: u32 = 64 << 10;

/// Requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 100;
/// What a client may send ahead of an upstream that does not read, and for all such at once: enough
/// that none holds others up.
const STREAM_WINDOW: u32 = 256 << 10;

/// Finds out about clients that vanish without a word.
const ALIVE: Duration = Duration::from_secs(20);

/// Kept by what must end before the process does, and is no request.
#[derive(Clone)]
pub(crate) struct Held(
    #[expect(dead_code, reason = "it is there until it is dropped")] mpsc::Sender<()>,
);

/// Serves until SIGINT or SIGTERM, and then until all requests that have begun are answered.
pub(crate) async fn until_signal(listener: TcpListener, app: Router) -> io::Result<()> {
    let mut stop = std::pin::pin!(signal::asked_to_stop()?);
    let graceful = GracefulShutdown::new();
    let server = Arc::new(server());
    let (held, mut released) = mpsc::channel(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = Connection { app: app.clone(), peer, held: Held(held.clone()) };
                tokio::spawn(connection.serve(stream, Arc::clone(&server), graceful.watcher()));
            }
            // Gone before it was taken.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
    tracing::info!("ending, after the requests in flight");
    drop((listener, held));
    let ended = async {
        graceful.shutdown().await;
        released.recv().await;
    };
    if timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("some requests have not ended within {DRAIN:?}");
    }
    Ok(())
}

fn server() -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(MOST_FIELDS)
        .max_buf_size(MOST_HEAD as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MOST_HEAD)
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW * STREAMS)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE);
    server
}

struct Connection {
    app: Router,
    peer: SocketAddr,
    held: Held,
}

impl Connection {
    async fn serve(self, stream: TcpStream, server: Arc<Builder<TokioExecutor>>, watcher: Watcher) {
        let _ = stream.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let heard = AtomicBool::new(false);
        let heard = Arc::new(heard);
        let hears = Arc::clone(&heard);
        let service = service_fn(move |mut request: Request<Incoming>| {
            hears.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(ConnectInfo(self.peer));
            request.extensions_mut().insert(self.held.clone());
            self.app.clone().call(linger::wrap(request))
        });
        let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let served = watcher.watch(connection.into_owned());
        tokio::select! {
            ended = served => if let Err(error) = ended {
                tracing::debug!(error, peer = %self.peer, "a connection has broken");
            },
            () = unheard(&heard) => {
                tracing::debug!(peer = %self.peer, "a connection without a request is closed");
            }
        }
    }
}

/// Ends if no request comes in time. Until the version of HTTP is known, nothing else sees to that.
async fn unheard(heard: &AtomicBool) {
    sleep(HEAD).await;
    if heard.load(Ordering::Relaxed) {
        std::future::pending().await
    }
}
