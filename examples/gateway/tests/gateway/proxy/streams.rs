//! Bodies that go through as they come, and what is more than a body.

use std::{
    env,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, Request, Response, body::Incoming, header::HeaderValue};
use tokio::time::timeout;

use super::support::{Mirror, channel, exchange, gateway, http1, http2, rest, statuses, upstream};

const SOON: Duration = Duration::from_secs(10);

async fn echo(request: Request<Incoming>) -> Response<Body> {
    Response::new(Body::new(request.into_body()))
}

/// What comes next in a body.
async fn next(body: &mut Incoming) -> Bytes {
    let frame = timeout(SOON, body.frame()).await.expect("it is not held back");
    frame.expect("more").expect("no error").into_data().expect("data")
}

/// Each part is answered before the next is sent.
#[tokio::test(flavor = "multi_thread")]
async fn both_ways_at_once() {
    let address = upstream(echo).await;
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &[]);
        for version in [1, 2] {
            let (sender, body) = channel();
            let request = Request::post("http://a/").header("host", "a");
            let request = request.body(body).expect("a request");
            sender.send(Bytes::from_static(b"0")).await.expect("it is sent");
            let response = match version {
                1 => timeout(SOON, http1(&gateway).await.send_request(request)).await,
                _ => timeout(SOON, http2(&gateway).await.send_request(request)).await,
            };
            let response = response.expect("it is not held back").expect("a response");
            let mut body = response.into_body();
            assert_eq!(next(&mut body).await, "0");
            for part in ["1", "2", "3"] {
                sender.send(Bytes::from_static(part.as_bytes())).await.expect("it is sent");
                assert_eq!(next(&mut body).await, part, "{scheme}, HTTP/{version}");
            }
            drop(sender);
            assert!(rest(body).await.is_empty());
        }
    }
}

/// As a method of gRPC that talks both ways: an answer to each message, and a status in trailers.
#[tokio::test(flavor = "multi_thread")]
async fn grpc() {
    let address = upstream(async |request: Request<Incoming>| {
        assert_eq!(request.headers()["te"], "trailers");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        assert_eq!(request.uri().authority().expect("a host").as_str(), "shop.example");
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let mut messages = request.into_body();
        let (answers, body) = channel();
        let mut message = next(&mut messages).await;
        tokio::spawn(async move {
            while answers.send(message).await.is_ok() {
                let Some(frame) = messages.frame().await else { break };
                message = frame.expect("no error").into_data().expect("data");
            }
        });
        let mut response =
            Response::new(Body::new(body.with_trailers(async { Some(Ok(trailers)) })));
        let kind = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", kind);
        response
    })
    .await;
    let gateway = gateway(&format!("h2c://{address}"), &["--response-timeout", "300ms"]);
    let mut client = http2(&gateway).await;
    let (sender, body) = channel();
    let request = Request::post("http://shop.example/pkg.Service/Method")
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(body);
    // The answer begins with the first message, which may come late.
    let response = tokio::spawn(client.send_request(request.expect("a request")));
    tokio::time::sleep(Duration::from_millis(700)).await;
    sender.send(Bytes::from_static(b"first")).await.expect("it is sent");
    let response = response.await.expect("no panic").expect("a response");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await, "first");
    for number in 0..3_u8 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let message = Bytes::copy_from_slice(&[0, 0, 0, 0, 1, number]);
        sender.send(message.clone()).await.expect("it is sent");
        assert_eq!(next(&mut body).await, message);
    }
    drop(sender);
    let end = body.collect().await.expect("an end");
    assert_eq!(end.trailers().expect("trailers")["grpc-status"], "0");
}

/// Those of requests go on as well, without what could change how the request is read.
#[tokio::test(flavor = "multi_thread")]
async fn trailers() {
    let address = upstream(async |request: Request<Incoming>| {
        let mut response = echo(request).await;
        response.headers_mut().insert("trailer", HeaderValue::from_static("x-sum"));
        response
    })
    .await;
    let mut sent = HeaderMap::new();
    for name in
        ["x-sum", "x-forwarded-for", "x-request-id", "host", "authorization", "content-type"]
    {
        sent.insert(name, HeaderValue::from_static("6"));
    }
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &[]);
        let sent = sent.clone();
        let body = Body::new(Body::from("y").with_trailers(async { Some(Ok(sent)) }));
        let request =
            Request::post("http://a/").header("te", "trailers").header("trailer", "x-sum");
        let response = http2(&gateway).await.send_request(request.body(body).expect("a request"));
        let end = response.await.expect("a response").into_body().collect().await.expect("an end");
        let trailers = end.trailers().expect("trailers");
        assert_eq!(trailers["x-sum"], "6", "{scheme}");
        assert_eq!(trailers.len(), 1, "{scheme}: {trailers:?}");

        let text = "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: te, close\r\nTrailer: X-Sum\r\n\
                    Transfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\nX-Sum: 7\r\n\r\n";
        let answer = exchange(&gateway, text);
        assert!(answer.ends_with("0\r\nx-sum: 7\r\n\r\n"), "{scheme}: {answer}");
    }
}

/// 256 MiB each way, or as many MiB as `TOLLGATE_STREAM` says.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_take_no_memory() {
    const MEGABYTE: usize = 1 << 20;
    let size = env::var("TOLLGATE_STREAM").map_or(256, |size| size.parse().expect("a number"));
    let address = upstream(echo).await;
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &["--max-body", "100g"]);
        let mut client = http1(&gateway).await;
        let (sender, body) = channel();
        let request = Request::post("/").header("host", "a").body(body).expect("a request");
        let sending = tokio::spawn(async move {
            let part = Bytes::from(vec![b'x'; MEGABYTE]);
            for _ in 0..size {
                sender.send(part.clone()).await.expect("it is sent");
            }
        });
        let response = client.send_request(request).await.expect("a response");
        let mut body = response.into_body();
        let (mut got, mut early, mut most) = (0, None, 0);
        while let Some(frame) = body.frame().await {
            let before = got / MEGABYTE;
            got += frame.expect("no error").into_data().expect("data").len();
            if got / MEGABYTE > before {
                most = most.max(gateway.resident());
                if got / MEGABYTE == size / 10 {
                    early = Some(most);
                }
            }
        }
        sending.await.expect("all was sent");
        assert_eq!(got, size * MEGABYTE);
        let early = early.expect("a tenth came");
        let grown = most.saturating_sub(early) / MEGABYTE as u64;
        assert!(grown < 16, "{scheme}: {grown} MiB more than after a tenth");
        assert!(most < 100 * MEGABYTE as u64, "{scheme}: {most}");
    }
}

/// Forty clients that ask for much and read nothing; also those that share a connection to the upstream.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_hold_nobody() {
    let address = upstream(async |request: Request<Incoming>| {
        let size = if request.uri().path() == "/large" { 64 << 20 } else { 3 };
        Response::new(Body::from(vec![b'x'; size]))
    })
    .await;
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &[]);
        let slow: Vec<TcpStream> = (0..40)
            .map(|_| {
                let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
                stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
                stream.read_exact(&mut [0; 12]).expect("an answer begins");
                stream
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut client = http2(&gateway).await;
        // Within one connection of HTTP/2, too.
        let large = Request::get("http://a/large").body(Body::empty()).expect("a request");
        let unread = client.send_request(large).await.expect("a response");
        for _ in 0..20 {
            let request = Request::get("http://a/").body(Body::empty()).expect("a request");
            let response = timeout(SOON, client.send_request(request)).await;
            let response = response.expect("nobody holds it up").expect("a response");
            let body = timeout(SOON, rest(response.into_body())).await;
            assert_eq!(body.expect("nobody holds it up"), "xxx", "{scheme}");
        }
        drop((slow, unread));
    }
}

/// More requests at a time than one connection to the upstream takes.
#[tokio::test(flavor = "multi_thread")]
async fn many_quiet_streams_hold_nobody() {
    let address = upstream(async |request: Request<Incoming>| match request.uri().path() {
        "/quiet" => {
            let (sender, body) = channel();
            tokio::spawn(async move { sender.closed().await });
            Response::new(body)
        }
        _ => Response::new(Body::from("ok")),
    })
    .await;
    let gateway = gateway(&format!("h2c://{address}"), &[]);
    let quiet: Vec<TcpStream> = (0..250)
        .map(|_| {
            let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
            stream.write_all(b"GET /quiet HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
            stream.set_read_timeout(Some(SOON)).expect("a timeout");
            stream.read_exact(&mut [0; 12]).expect("an answer begins");
            stream
        })
        .collect();
    let answer = exchange(&gateway, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(statuses(&answer), [200], "{answer}");
    drop(quiet);
}

/// Agrees to anything, and then says what it hears.
pub(super) fn going_over() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut head = vec![0; 4096];
                let size = stream.read(&mut head).expect("a request");
                let head = String::from_utf8_lossy(&head[..size]).to_ascii_lowercase();
                assert!(head.contains("connection: upgrade\r\n"), "{head}");
                assert!(head.contains("sec-websocket-key: x\r\n"), "{head}");
                let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                              Upgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\nhello";
                stream.write_all(agreed.as_bytes()).expect("it reads");
                let mut other = stream.try_clone().expect("a handle");
                let _ = std::io::copy(&mut stream, &mut other);
            });
        }
    });
    url
}

pub(super) const WEBSOCKET: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                         Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";

#[test]
fn websockets_are_tunnelled_and_waited_for() {
    let gateway = gateway(&going_over(), &[]);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    // Some of it comes with the request.
    stream.write_all(format!("{WEBSOCKET}early").as_bytes()).expect("it reads");
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !text.ends_with("helloearly") {
        let size = stream.read(&mut buffer).expect("an answer");
        assert_ne!(size, 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..size]).to_ascii_lowercase());
    }
    assert!(text.starts_with("http/1.1 101 "), "{text}");
    assert!(text.contains("upgrade: websocket\r\n") && text.contains("sec-websocket-accept: y"));
    assert!(text.contains("x-ratelimit-remaining"), "{text}");
    gateway.terminate();
    for part in ["one", "two", "three"] {
        thread::sleep(Duration::from_millis(200));
        stream.write_all(part.as_bytes()).expect("it is open");
        let size = stream.read(&mut buffer).expect("an echo");
        assert_eq!(&buffer[..size], part.as_bytes());
    }
    drop(stream);
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("have not ended"), "{log}");
}

/// Requests in another HTTP would pass without being looked at.
#[test]
fn http2_does_not_hide_in_a_tunnel() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    for upgrade in ["h2c", "H2C", "HTTP/2.0", "TLS/1.0", "websocket, h2c", "x\r\nUpgrade: h2c"] {
        let text = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
        );
        let answer = exchange(&gateway, text).to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 200"), "{upgrade}: {answer}");
        assert!(!answer.contains("upgrade") && !answer.contains("http2-settings"), "{answer}");
    }
}

/// Only a tunnel that the upstream has agreed to is one.
#[test]
fn an_upgrade_that_is_declined_is_a_request() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let answer =
        exchange(&gateway, format!("{WEBSOCKET}GET //smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(statuses(&answer), [200, 400], "{answer}");
    assert!(!mirror.seen().contains("smuggled"));
}
