//! Upstreams behind TLS.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use axum::body::Body;
use hyper::{Request, Response, body::Incoming};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::TcpStream,
};

use super::{
    streams::{WEBSOCKET, going_over},
    support::{Mirror, exchange, gateway, http2, rest, statuses, upstream},
};
use crate::{
    authority::Authority,
    support::{Gateway, run, run_with},
};

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

/// A port where `upstream` can be reached through TLS, with a certificate for this name.
async fn secured(
    authority: &Authority,
    name: &str,
    protocols: &[&str],
    upstream: impl ToString,
) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let acceptor = authority.acceptor(name, protocols);
    let upstream = upstream.to_string().replace("http://", "");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                let Ok(mut outer) = acceptor.accept(stream).await else { return };
                let mut inner = TcpStream::connect(upstream).await.expect("it accepts");
                let _ = copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    port
}

fn trusting(url: &str, authority: &Authority) -> Gateway {
    within("5s", url, authority)
}

fn within(timeout: &str, url: &str, authority: &Authority) -> Gateway {
    let ca = authority.path().to_str().expect("a path of text");
    gateway(url, &["--upstream-ca", ca, "--connect-timeout", timeout])
}

/// Asks, and returns what is logged of it.
fn fails(gateway: Gateway, status: u16, reason: &str) -> String {
    let answer = exchange(&gateway, GET);
    assert_eq!(statuses(&answer), [status], "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{reason}\n")), "{answer}");
    gateway.terminate();
    gateway.wait().1
}

async fn show(request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let field = |name: &str| parts.headers[name].to_str().expect("text").to_owned();
    let head = format!("{:?} {} {}", parts.version, parts.uri, field("x-forwarded-for"));
    let body = String::from_utf8(rest(body).await.to_vec()).expect("text");
    Response::new(Body::from(format!("{head} {} {body}", field("x-forwarded-proto"))))
}

#[tokio::test(flavor = "multi_thread")]
async fn http1_within_tls() {
    let authority = Authority::new("the right one");
    let mirror = Mirror::start();
    let port = secured(&authority, "localhost", &["h2", "http/1.1"], &mirror.url).await;
    let gateway = trusting(&format!("https://localhost:{port}"), &authority);
    for _ in 0..2 {
        let answer = exchange(&gateway, GET).to_ascii_lowercase();
        assert!(answer.contains("\r\n\r\nget / http/1.1\r\n"), "{answer}");
        // The client's, though the certificate is for another.
        assert!(answer.contains("host: a.example\r\n"), "{answer}");
        assert!(answer.contains("x-forwarded-for: 127.0.0.1\r\n"), "{answer}");
        // By which the client has come.
        assert!(answer.contains("x-forwarded-proto: http\r\n"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_within_tls() {
    let authority = Authority::new("the right one");
    let address = upstream(show).await;
    let port = secured(&authority, "127.0.0.1", &["h2", "http/1.1"], address).await;
    let gateway = trusting(&format!("h2://127.0.0.1:{port}/"), &authority);
    for body in ["one", "two"] {
        let request = Request::post("http://shop.example/a").body(Body::from(body));
        let response = http2(&gateway).await.send_request(request.expect("a request")).await;
        let text = rest(response.expect("a response").into_body()).await;
        assert_eq!(text, format!("HTTP/2.0 https://shop.example/a 127.0.0.1 http {body}"));
    }
    // A server that knows nothing of ALPN may mean anything.
    for protocols in [&["http/1.1"][..], &[]] {
        let port = secured(&authority, "127.0.0.1", protocols, address).await;
        let gateway = trusting(&format!("h2://127.0.0.1:{port}"), &authority);
        let log = fails(gateway, 502, "the upstream cannot be reached");
        let cause = if protocols.is_empty() { "not speak HTTP/2" } else { "NoApplicationProtocol" };
        assert!(log.contains(cause), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_are_not_trusted() {
    let (authority, other) = (Authority::new("the right one"), Authority::new("another"));
    let address = upstream(show).await;
    for (scheme, protocol) in [("https", "http/1.1"), ("h2", "h2")] {
        let port = secured(&authority, "localhost", &[protocol], address).await;
        let url = |host: &str| format!("{scheme}://{host}:{port}");
        let reason = "the upstream cannot be reached";
        // The system knows others only, if any.
        let mut system = vec![("SSL_CERT_FILE", other.path())];
        let log = fails(with(&url("localhost"), &system), 502, reason);
        assert!(log.contains("UnknownIssuer"), "{log}");
        let log = fails(trusting(&url("localhost"), &other), 502, reason);
        assert!(log.contains("UnknownIssuer"), "{log}");
        // The address is what was asked for, and the client's Host says nothing.
        let log = fails(trusting(&url("127.0.0.1"), &authority), 502, reason);
        assert!(log.contains("not valid for name") && log.contains("127.0.0.1"), "{log}");

        system[0].1 = authority.path();
        let answer = exchange(&with(&url("localhost"), &system), GET);
        assert_eq!(statuses(&answer), [200], "the system's count: {answer}");
    }
}

/// A gateway with this environment.
fn with(url: &str, environment: &[(&str, &std::path::Path)]) -> Gateway {
    Gateway::start_with(&["--upstream", url, "--limit", "1000000/s"], environment)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a timeout is measured")]
fn an_upstream_that_does_not_speak_tls() {
    let authority = Authority::new("the right one");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let quiet = silent.local_addr().expect("an address");
    for scheme in ["https", "h2"] {
        let begun = Instant::now();
        let gateway = trusting(&format!("{scheme}://{address}"), &authority);
        let log = fails(gateway, 502, "the upstream cannot be reached");
        assert!(log.contains("InvalidContentType"), "{log}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        // One that waits for more: the handshake counts as connecting.
        let gateway = within("300ms", &format!("{scheme}://{quiet}"), &authority);
        fails(gateway, 504, "the upstream cannot be reached in time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_within_tls() {
    let authority = Authority::new("the right one");
    let port = secured(&authority, "localhost", &["http/1.1"], going_over()).await;
    let gateway = trusting(&format!("https://localhost:{port}"), &authority);
    let mut stream = TcpStream::connect(gateway.address).await.expect("it accepts");
    stream.write_all(WEBSOCKET.as_bytes()).await.expect("it reads");
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.ends_with("hello") {
        let size = stream.read(&mut buffer).await.expect("an answer");
        assert_ne!(size, 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..size]));
    }
    assert!(text.starts_with("HTTP/1.1 101 "), "{text}");
    stream.write_all(b"over").await.expect("it is open");
    stream.shutdown().await.expect("it can be");
    let mut end = String::new();
    stream.read_to_string(&mut end).await.expect("an echo, and an end");
    assert_eq!(end, "over");
}

/// The answer is there, though writing has failed by then, and TLS writes late.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_early_is_passed_on() {
    let authority = Authority::new("the right one");
    let acceptor = authority.acceptor("localhost", &["http/1.1"]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nwho are you?";
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    });
    let gateway = trusting(&format!("https://localhost:{port}"), &authority);
    let body = "x".repeat(4 << 20);
    for _ in 0..10 {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
        let answer =
            exchange(&gateway, format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        assert_eq!(statuses(&answer), [401], "{answer}");
        assert!(answer.ends_with("who are you?"), "{answer}");
    }
}

#[test]
fn settings_that_cannot_be_kept() {
    let rejected = |args: &[&str], part: &str| {
        let output = run(args);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
    };
    let missing = ["--upstream-ca", "/nowhere/ca.pem", "--upstream"];
    rejected(&[&missing[..], &["https://up"]].concat(), "the CA file /nowhere/ca.pem: No such");
    rejected(&[&missing[..], &["http://up"]].concat(), "the URL has no TLS");
    let mut command = crate::support::gateway(&["--upstream", "https://up"]);
    command.envs([("SSL_CERT_FILE", "/nowhere/ca.pem"), ("SSL_CERT_DIR", "/nowhere")]);
    let output = run_with(command);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("this system has no certificates of authorities"), "{message}");
}
