//! Serving, with bounds on what clients may do, and ending without breaking off what is in flight.

mod heads;
mod linger;
mod signal;

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, time::Duration};

use axum::{
    Router,
    extract::ConnectInfo,
    http::{HeaderValue, Request, StatusCode, Version, header::CONNECTION},
};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tower_service::Service as _;

use self::heads::{Heads, Watched};
pub(crate) use self::signal::{asked_to_reload, asked_to_stop};

/// How long requests in flight may take to end, once the process is asked to.
const DRAIN: Duration = Duration::from_secs(10);

/// For how long connections are accepted, at the end.
const LATE: Duration = Duration::from_millis(100);

/// For how long a connection that is there already may take to bring its first request, or another, at
/// the end.
const FIRST: Duration = Duration::from_millis(500);

/// For how long the head of a request may be on its way, and a connection without one.
const HEAD: Duration = Duration::from_secs(10);
const MOST_FIELDS: usize = 100;
const MOST_HEAD: u32 = 64 << 10;

/// Requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 100;
/// What may come on one connection for requests that are over, in all of its time, which may be days if
/// it is a proxy's.
const MOST_RESETS: usize = 8 << 10;
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

/// Serves until asked to `stop`, and then until all requests that have begun are answered. Returns
/// whether they were, in time.
pub(crate) async fn until(
    stop: impl Future<Output = ()>,
    listener: TcpListener,
    app: Router,
) -> bool {
    let mut stop = pin!(stop);
    let (ending, ends) = watch::channel(());
    let (held, mut released) = mpsc::channel(1);
    let serve = |stream, peer| {
        let connection = Connection { app: app.clone(), peer, held: Held(held.clone()) };
        tokio::spawn(connection.serve(stream, ends.clone()));
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => serve(stream, peer),
            // Gone before it was taken.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
    tracing::info!("ending, after the requests in flight");
    // The system has accepted some for us, and may have requests of theirs.
    let late = async {
        while let Ok((stream, peer)) = listener.accept().await {
            serve(stream, peer);
        }
    };
    let _ = timeout(LATE, late).await;
    drop((listener, held, ending));
    let ended = timeout(DRAIN, released.recv()).await.is_ok();
    if !ended {
        tracing::warn!("some requests have not ended within {DRAIN:?}");
    }
    ended
}

fn server(heads: Heads) -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(heads)
        .header_read_timeout(HEAD)
        .max_headers(MOST_FIELDS)
        .max_buf_size(MOST_HEAD as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MOST_HEAD)
        .max_concurrent_streams(STREAMS)
        .max_local_error_reset_streams(MOST_RESETS)
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
    async fn serve(self, stream: TcpStream, mut ends: watch::Receiver<()>) {
        let _ = stream.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
        let heard = watch::Sender::new(false);
        let mut first = heard.subscribe();
        let heads = Heads::new();
        let known = heads.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let kept = request.version() < Version::HTTP_2;
            if kept {
                known.heard();
            }
            heard.send_replace(true);
            request.extensions_mut().insert(ConnectInfo(self.peer));
            request.extensions_mut().insert(self.held.clone());
            let answer = self.app.clone().call(linger::wrap(request, &known));
            let known = known.clone();
            async move {
                let mut answer = answer.await?;
                let stays = answer.status() != StatusCode::SWITCHING_PROTOCOLS;
                if kept && stays && known.is_ending() {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let server = server(heads.clone());
        let io = TokioIo::new(Watched { stream, heads: heads.clone() });
        let connection = server.serve_connection_with_upgrades(io, service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = unheard(first.clone()) => return,
            // Ends when its sender is dropped.
            _ = ends.changed() => {
                heads.end();
                let first = timeout(FIRST, first.wait_for(|heard| *heard));
                let early = tokio::select! {
                    ended = connection.as_mut() => Some(ended),
                    _ = first => None,
                };
                match early {
                    Some(ended) => ended,
                    None => {
                        // It would close one whose next request is in the buffer of its socket.
                        if !heads.will_end() {
                            connection.as_mut().graceful_shutdown();
                        }
                        connection.await
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error, peer = %self.peer, "a connection has broken");
        }
    }
}

/// Ends if no request comes in time. Until the version of HTTP is known, nothing else sees to that.
async fn unheard(first: watch::Receiver<bool>) {
    sleep(HEAD).await;
    if *first.borrow() {
        std::future::pending().await
    }
}
