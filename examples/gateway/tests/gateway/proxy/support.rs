//! Upstreams in the process of the test, and clients that say what no library would.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use hyper::{
    Request, Response, body::Incoming, client::conn::http2::SendRequest, service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};

use crate::support::Gateway;

/// A gateway in front of an upstream, with a limit that no test meets by chance.
pub(crate) fn gateway(url: &str, args: &[&str]) -> Gateway {
    Gateway::start(&[&["--limit", "1000000/s", "--upstream", url], args].concat())
}

/// An upstream that is a function, over HTTP/1.1 and HTTP/2.
pub(crate) async fn upstream<F, R>(answer: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answered = answer(request);
                async { Ok::<_, std::convert::Infallible>(answered.await) }
            });
            tokio::spawn(async move {
                let mut server = Builder::new(TokioExecutor::new());
                server.http2().timer(TokioTimer::new());
                let _ = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

/// A connection of HTTP/2 to the gateway, without TLS.
pub(crate) async fn http2(gateway: &Gateway) -> SendRequest<Body> {
    let stream = tokio::net::TcpStream::connect(gateway.address).await.expect("it accepts");
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

/// One of HTTP/1.1.
pub(crate) async fn http1(gateway: &Gateway) -> hyper::client::conn::http1::SendRequest<Body> {
    let stream = tokio::net::TcpStream::connect(gateway.address).await.expect("it accepts");
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.expect("a connection");
    tokio::spawn(connection);
    sender
}

/// What is left of a body.
pub(crate) async fn rest(body: Incoming) -> Bytes {
    body.collect().await.expect("a whole body").to_bytes()
}

/// A body that a test writes bit by bit.
pub(crate) fn channel() -> (tokio::sync::mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    (sender, Body::new(Channel(receiver)))
}

struct Channel(tokio::sync::mpsc::Receiver<Bytes>);

impl hyper::body::Body for Channel {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|data| data.map(|data| Ok(hyper::body::Frame::data(data))))
    }
}

/// An upstream that shows the head of each request as the body of its answer, and keeps all it got.
pub(crate) struct Mirror {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Mirror {
    pub(crate) fn start() -> Self {
        Self::answering("")
    }

    /// With these lines in the heads of its answers.
    pub(crate) fn answering(fields: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || reflect(stream, fields, &all));
            }
        });
        Self { url, seen }
    }

    /// All that has reached it, of all connections.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("a lock")).into_owned()
    }
}

fn reflect(mut stream: TcpStream, fields: &str, all: &Mutex<Vec<u8>>) {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(size @ 1..) = stream.read(&mut buffer) {
        all.lock().expect("a lock").extend(&buffer[..size]);
        text.extend(&buffer[..size]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = whole.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let complete = match length {
            Some(length) => body.len() >= length.parse().expect("a length"),
            None => !head.contains("chunked") || body.ends_with("0\r\n\r\n"),
        };
        if complete {
            let shown = if fields.contains("ength") { "" } else { head };
            let length = if fields.contains("ength") || fields.contains("chunked") {
                String::new()
            } else {
                format!("content-length: {}\r\n", shown.len())
            };
            let answer = format!("HTTP/1.1 200 OK\r\n{length}{fields}\r\n{shown}");
            let _ = stream.write_all(answer.as_bytes());
            text.clear();
        }
    }
}

/// Sends a text as it is, and returns all that comes until the connection is closed, or nothing has come
/// for a second.
pub(crate) fn exchange(gateway: &Gateway, text: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(gateway.address).expect("the gateway accepts");
    stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    // The gateway may close before it has read all.
    let _ = stream.write_all(text.as_ref());
    read(&mut stream)
}

pub(crate) fn read(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(size) => text.extend(&buffer[..size]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&text)),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The statuses of all responses in a text.
pub(crate) fn statuses(text: &str) -> Vec<u16> {
    let heads = text.split("HTTP/1.1 ").skip(1).chain(text.split("HTTP/1.0 ").skip(1));
    heads.filter_map(|head| head.get(..3)?.parse().ok()).collect()
}
