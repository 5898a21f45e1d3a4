//! Connections to the upstream.

use std::{
    error::Error,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{
        Request, Response, Uri, Version,
        uri::{Authority, Scheme},
    },
};
use http_body::{Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::{
    client::legacy::{Client as Pool, connect::Connection as _},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::{sync::Mutex, time::timeout};
use tower_service::Service;

use super::{
    answer::Refusal,
    body::Sent,
    connect::{ALIVE, Connector},
    upstream::Protocol,
};

/// Shorter than the five seconds after which some servers close a connection that nobody uses, so that
/// no request goes out over one that is about to be closed.
const IDLE: Duration = Duration::from_secs(4);
const MOST_IDLE: usize = 128;

/// Requests that share one connection of HTTP/2: as many as servers ought to take.
const STREAMS: usize = 100;
/// What may come for a client that does not read, and for all such: enough that none holds others up.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS as u32 * 2;

/// Sends requests to one upstream.
pub(super) enum Client {
    Http1(Pool<Connector, Sent>),
    Http2(Shared),
}

impl Client {
    pub(super) fn new(protocol: Protocol, origin: &Authority, connector: Connector) -> Self {
        if protocol.http2 {
            let (scheme, origin) = (protocol.scheme(), origin.clone());
            return Self::Http2(Shared {
                connector,
                scheme,
                origin,
                connections: Mutex::default(),
            });
        }
        let mut pool = Pool::builder(TokioExecutor::new());
        pool.pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .set_host(false);
        Self::Http1(pool.build(connector))
    }

    pub(super) const fn version(&self) -> Version {
        match self {
            Self::Http1(_) => Version::HTTP_11,
            Self::Http2(_) => Version::HTTP_2,
        }
    }

    pub(super) async fn send(&self, request: Request<Sent>) -> Result<Response<Received>, Failure> {
        match self {
            Self::Http1(pool) => {
                let response = pool.request(request).await.map_err(|error| Failure {
                    refusal: if error.is_connect() { unreachable(&error) } else { Refusal::BROKEN },
                    cause: Box::new(error),
                })?;
                Ok(response.map(|body| Received::new(body, None)))
            }
            Self::Http2(shared) => shared.send(request).await,
        }
    }
}

/// What the client is told, and what the log is.
pub(super) struct Failure {
    pub(super) refusal: Refusal,
    pub(super) cause: Box<dyn Error + Send + Sync>,
}

fn unreachable(error: &(dyn Error + 'static)) -> Refusal {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
        {
            return Refusal::UNCONNECTED;
        }
        cause = error.source();
    }
    Refusal::UNREACHABLE
}

/// Connections of HTTP/2 to one origin, each shared by many requests.
pub(super) struct Shared {
    connector: Connector,
    scheme: Scheme,
    origin: Authority,
    connections: Mutex<Vec<Connection>>,
}

struct Connection {
    sender: SendRequest<Sent>,
    /// Held by each request that is on it.
    streams: Arc<()>,
}

impl Shared {
    async fn send(&self, mut request: Request<Sent>) -> Result<Response<Received>, Failure> {
        loop {
            let (mut sender, stream, new) = self.connection().await?;
            match sender.try_send_request(request).await {
                Ok(response) => {
                    return Ok(response.map(|body| Received::new(body, Some(stream))));
                }
                Err(mut error) => match error.take_message() {
                    // It has closed since, and nothing was sent.
                    Some(unsent) if !new => request = unsent,
                    _ => {
                        let cause = Box::new(error.into_error());
                        return Err(Failure { refusal: Refusal::BROKEN, cause });
                    }
                },
            }
        }
    }

    /// A connection with room, and whether it is a new one. Nobody waits longer than for one of their own.
    async fn connection(&self) -> Result<(SendRequest<Sent>, Arc<()>, bool), Failure> {
        let found = timeout(self.connector.timeout, async {
            let mut connections = self.connections.lock().await;
            connections.retain(|connection| !connection.sender.is_closed());
            let room = |connection: &&Connection| Arc::strong_count(&connection.streams) <= STREAMS;
            if let Some(connection) = connections.iter().find(room) {
                return Ok((connection.sender.clone(), Arc::clone(&connection.streams), false));
            }
            let sender = self.connect().await?;
            let streams = Arc::new(());
            connections.push(Connection { sender: sender.clone(), streams: Arc::clone(&streams) });
            Ok((sender, streams, true))
        });
        let late = |_| Failure { refusal: Refusal::UNCONNECTED, cause: "a timeout".into() };
        found.await.map_err(late)?
    }

    async fn connect(&self) -> Result<SendRequest<Sent>, Failure> {
        let (scheme, origin) = (self.scheme.clone(), self.origin.clone());
        let uri = Uri::builder().scheme(scheme).authority(origin).path_and_query("/");
        let failure =
            |cause: Box<dyn Error + Send + Sync>| Failure { refusal: unreachable(&*cause), cause };
        let uri = uri.build().map_err(|error| failure(error.into()))?;
        let io = self.connector.clone().call(uri).await.map_err(failure)?;
        // Some servers pass over what they are offered, and go on in HTTP/1.1.
        if self.scheme == Scheme::HTTPS && !io.connected().is_negotiated_h2() {
            return Err(failure("it does not speak HTTP/2 over TLS".into()));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE);
        let (sender, connection) =
            builder.handshake(io).await.map_err(|error| failure(error.into()))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the upstream has ended");
            }
        });
        Ok(sender)
    }
}

/// The body of a response, which holds its place on a shared connection.
pub(super) struct Received {
    body: Incoming,
    sized: bool,
    _stream: Option<Arc<()>>,
}

impl Received {
    const fn new(body: Incoming, stream: Option<Arc<()>>) -> Self {
        Self { body, sized: true, _stream: stream }
    }

    /// With its length, if that may be told.
    pub(super) fn into_body(self, sized: bool) -> Body {
        Body::new(Self { sized, ..self })
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { self.body.size_hint() } else { SizeHint::default() }
    }
}
