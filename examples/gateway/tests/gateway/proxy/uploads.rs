//! Bodies that are too large, or that nobody wants.

use std::{
    convert::Infallible,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use hyper::{Request, Response};

use super::support::{Mirror, exchange, gateway, http2, read, rest, statuses, upstream};
use crate::support::{Gateway, eventually};

const MEGABYTE: usize = 1 << 20;

/// A client that sends all before it reads.
fn upload(gateway: &Gateway, head: &str, size: usize) -> String {
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    stream
        .write_all(format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n").as_bytes())
        .expect("it reads");
    let chunk = vec![b'x'; 64 << 10];
    for _ in 0..size / chunk.len() {
        stream.write_all(&chunk).expect("the gateway reads on");
    }
    read(&mut stream)
}

#[test]
fn a_large_upload_to_an_exhausted_limit_is_shown_its_denial() {
    let mirror = Mirror::start();
    let gateway = Gateway::start(&["--limit", "1/h", "--upstream", &mirror.url]);
    let close = "Connection: close\r\n\r\n";
    assert_eq!(
        statuses(&exchange(&gateway, format!("GET / HTTP/1.1\r\nHost: a\r\n{close}"))),
        [200]
    );
    let seen = mirror.seen();
    let head = format!("Connection: close\r\nContent-Length: {}\r\n", 10 * MEGABYTE);
    for _ in 0..3 {
        let answer = upload(&gateway, &head, 10 * MEGABYTE);
        assert_eq!(statuses(&answer), [429], "{answer}");
        assert!(answer.contains("retry-after"), "{answer}");
    }
    assert_eq!(mirror.seen(), seen, "limits apply before anything goes on");
}

#[test]
fn a_length_beyond_the_bound_is_refused_at_once() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &["--max-body", "1m"]);
    let answer = upload(
        &gateway,
        &format!("Connection: close\r\nContent-Length: {}\r\n", 2 * MEGABYTE),
        2 * MEGABYTE,
    );
    assert_eq!(statuses(&answer), [413], "{answer}");
    assert_eq!(mirror.seen(), "");
    // A client that asks first is told to send nothing.
    let head = format!("Expect: 100-continue\r\nContent-Length: {}\r\n", 2 * MEGABYTE);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    stream
        .write_all(format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n").as_bytes())
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("nothing more is waited for");
    assert_eq!(statuses(&answer), [413], "{answer}");
    let answer =
        upload(&gateway, &format!("Connection: close\r\nContent-Length: {MEGABYTE}\r\n"), MEGABYTE);
    assert_eq!(statuses(&answer), [200], "{answer}");
}

#[test]
fn a_body_that_turns_out_too_large_is_refused_then() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &["--max-body", "1m"]);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let head =
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it reads");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    for _ in 0..32 {
        stream.write_all(chunk.as_bytes()).expect("the gateway reads on");
    }
    stream.write_all(b"0\r\n\r\n").expect("the gateway reads on");
    let answer = read(&mut stream);
    assert_eq!(statuses(&answer), [413], "{answer}");
    assert!(mirror.seen().len() <= MEGABYTE + 65_536);
}

#[tokio::test]
async fn in_http2_as_well() {
    let address = upstream(async |request: Request<hyper::body::Incoming>| {
        Response::new(Body::from(rest(request.into_body()).await))
    })
    .await;
    let gateway = gateway(&format!("http://{address}"), &["--max-body", "1m"]);
    let mut client = http2(&gateway).await;
    for (size, status) in [(2 * MEGABYTE, 413), (MEGABYTE, 200)] {
        let request = Request::post("http://a/").body(Body::from(vec![b'x'; size]));
        let response = client.send_request(request.expect("a request")).await;
        assert_eq!(response.expect("a response").status(), status);
    }
}

/// Over one connection, on which a client sends all of each body, and its answer is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn denials_in_http2_leave_the_connection() {
    const CHUNKS: usize = MEGABYTE >> 14;
    let mirror = Mirror::start();
    let gateway = Gateway::start(&["--limit", "1/h", "--upstream", &mirror.url]);
    assert_eq!(gateway.get("/").status, 200);
    let mut client = http2(&gateway).await;
    for round in 1..=300 {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let chunks = stream::iter(0..CHUNKS).map(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 1 << 14]))
        });
        let request = Request::post("http://a/").body(Body::from_stream(chunks));
        client.ready().await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let response = client.send_request(request.expect("a request")).await;
        let response = response.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(response.status(), 429, "round {round}");
        rest(response.into_body()).await;
        eventually(|| sent.load(Ordering::SeqCst) == CHUNKS);
    }
    assert!(!gateway.logged("reset streams"));
}

/// The time to answer counts from when the upstream has all.
#[test]
fn a_client_may_take_longer_than_the_upstream() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &["--response-timeout", "500ms"]);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\n")
        .expect("it reads");
    for byte in b"hello" {
        thread::sleep(Duration::from_millis(300));
        stream.write_all(&[*byte]).expect("it reads");
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(statuses(&answer), [200], "{answer}");
}

/// An upstream that answers without reading, and closes.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_comes_early_is_passed_on() {
    let address = upstream(async |_| {
        let mut response = Response::new(Body::from("who are you?"));
        *response.status_mut() = hyper::StatusCode::UNAUTHORIZED;
        response
    })
    .await;
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &[]);
        for _ in 0..10 {
            let head = format!("Connection: close\r\nContent-Length: {}\r\n", 4 * MEGABYTE);
            let answer = upload(&gateway, &head, 4 * MEGABYTE);
            assert_eq!(statuses(&answer), [401], "{scheme}: {answer}");
            assert!(answer.ends_with("who are you?"), "{scheme}: {answer}");
        }
    }
}
