//! Connecting, and what a connection does that its other end closes.

use std::{
    error::Error,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

/// Finds out about upstreams that vanish without a word.
pub(super) const ALIVE: Duration = Duration::from_secs(20);

/// Connects within a time, over all addresses that a name has, with TLS where the URL says so: a
/// certificate must be for the host of the URL, whatever host a client asks for.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector>,
    pub(super) timeout: Duration,
}

impl Connector {
    pub(super) fn new(tls: ClientConfig, timeout: Duration) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(ALIVE));
        // Shared by the addresses, so that each has its turn.
        http.set_connect_timeout(Some(timeout));
        Self { https: (http, Arc::new(tls)).into(), timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = Upstreaming;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // The handshake of TLS included.
        let connecting = self.https.call(uri);
        let connected = timeout(self.timeout, connecting);
        Box::pin(async {
            let stream = connected.await.map_err(io::Error::from)??;
            Ok(Upstreaming { stream, deaf: false })
        })
    }
}

/// A connection that may still be read when it cannot be written to any more.
///
/// An upstream may answer before it has read all, and close. The library would take the failure to write
/// for that of the request, and not see the answer that is there.
pub(super) struct Upstreaming {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    deaf: bool,
}

impl Upstreaming {
    /// What was written, or thrown away if nobody is there to read it.
    fn written(&mut self, result: Poll<io::Result<usize>>, size: usize) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Err(error)) if is_closed(&error) => {
                self.deaf = true;
                Poll::Ready(Ok(size))
            }
            other => other,
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Read for Upstreaming {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Upstreaming {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Ready(Ok(buffer.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.written(result, buffer.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let size = buffers.iter().map(|buffer| buffer.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(size));
        }
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.written(result, size)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What TLS has encrypted is written late, and fails here.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(Err(error)) if is_closed(&error) => {
                self.deaf = true;
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connection for Upstreaming {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}
