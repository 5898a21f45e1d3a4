//! Ending without breaking off what is in flight.

use std::{
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
use hyper::{Request, Response, body::Incoming};

use super::support::{Mirror, channel, gateway, read, statuses, upstream};
use crate::support::{Gateway, eventually};

/// Ending waits for an answer that is on its way, and takes no new requests.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_answers_end() {
    let (held, release) = tokio::sync::watch::channel(());
    let address = upstream(move |_: Request<Incoming>| {
        let mut release = release.clone();
        async move {
            let (body, sent) = channel();
            tokio::spawn(async move {
                let _ = body.send(Bytes::from_static(b"begun, ")).await;
                let _ = release.changed().await;
                let _ = body.send(Bytes::from_static(b"ended")).await;
            });
            Response::new(sent)
        }
    })
    .await;
    let gateway = gateway(&format!("http://{address}"), &[]);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    let mut answer = vec![0; 4096];
    let mut size = 0;
    while !String::from_utf8_lossy(&answer[..size]).contains("begun") {
        size += stream.read(&mut answer[size..]).expect("an answer");
    }
    gateway.terminate();
    eventually(|| TcpStream::connect(gateway.address).is_err());
    let _ = held.send(());
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the end");
    assert!(rest.contains("ended") && rest.ends_with("0\r\n\r\n"), "{rest}");
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("have not ended"), "{log}");
}

/// A connection that was there before, and whose request comes after.
#[test]
fn who_has_connected_is_still_served() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    gateway.terminate();
    eventually(|| TcpStream::connect(gateway.address).is_err());
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is open");
    let answer = read(&mut stream);
    assert_eq!(statuses(&answer), [200], "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

/// Each request that the upstream has seen is answered to the end.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_under_load_loses_nothing() {
    let begun = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&begun);
    let address = upstream(move |_: Request<Incoming>| {
        seen.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Response::new(Body::from(vec![b'x'; 100_000]))
        }
    })
    .await;
    let gateway = gateway(&format!("http://{address}"), &[]);
    let to = gateway.address;
    let clients: Vec<_> = (0..8)
        .map(|client| {
            thread::spawn(move || {
                let close = if client % 2 == 0 { "Connection: close\r\n" } else { "" };
                let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{close}\r\n");
                let mut whole = 0;
                while let Ok(mut stream) = TcpStream::connect(to) {
                    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
                    // As many as go over the connection.
                    while stream.write_all(request.as_bytes()).is_ok() && answered(&mut stream) {
                        whole += 1;
                    }
                }
                whole
            })
        })
        .collect();
    eventually(|| begun.load(Ordering::SeqCst) > 100);
    gateway.terminate();
    let whole: usize = clients.into_iter().map(|client| client.join().expect("a number")).sum();
    assert_eq!(whole, begun.load(Ordering::SeqCst));
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("have not ended"), "{log}");
}

/// Whether a whole answer comes.
fn answered(stream: &mut TcpStream) -> bool {
    let (mut text, mut buffer) = (Vec::<u8>::new(), [0; 65_536]);
    loop {
        match stream.read(&mut buffer) {
            Ok(size @ 1..) => text.extend(&buffer[..size]),
            Ok(0) | Err(_) => return false,
        }
        let head = text.windows(4).position(|end| end == b"\r\n\r\n");
        if head.is_some_and(|head| text.len() >= head + 4 + 100_000) {
            return true;
        }
    }
}

/// Not even a request that was under way when the gateway began to end, on a connection that was kept.
#[test]
fn sigterm_closes_no_connection_that_is_busy() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let to = gateway.address;
    let clients: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = TcpStream::connect(to).expect("it accepts");
            stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is open");
                    let (mut text, mut whole) = (String::new(), false);
                    while !whole {
                        let size = stream.read(&mut buffer).expect("an answer");
                        assert_ne!(size, 0, "closed after {text:?}");
                        text.push_str(&String::from_utf8_lossy(&buffer[..size]));
                        // What the mirror shows ends in no line end.
                        whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                            head.contains(&format!("content-length: {}\r", body.len()))
                        });
                    }
                    if text.contains("connection: close") {
                        return;
                    }
                }
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(500));
    gateway.terminate();
    let lost = clients.into_iter().filter_map(|client| client.join().err()).count();
    assert_eq!(lost, 0);
    assert_eq!(gateway.wait().0.code(), Some(0));
}

/// A client that has read a long answer to its end cannot know yet that it was the last.
#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_long_answer_is_answered() {
    let address = upstream(async |request: Request<Incoming>| {
        let (body, sent) = channel();
        let long = request.uri().path() == "/long";
        tokio::spawn(async move {
            let _ = body.send(Bytes::from_static(b"begun, ")).await;
            tokio::time::sleep(Duration::from_millis(if long { 1_500 } else { 0 })).await;
            let _ = body.send(Bytes::from_static(b"ended")).await;
        });
        Response::new(sent)
    })
    .await;
    let gateway = gateway(&format!("http://{address}"), &[]);
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    let mut ask = |path: &str, until: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(if path.is_empty() { b"" } else { request.as_bytes() }).expect("open");
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.contains(until) {
            let size = stream.read(&mut buffer).expect("an answer");
            assert_ne!(size, 0, "closed after {text:?}");
            text.push_str(&String::from_utf8_lossy(&buffer[..size]));
        }
        text
    };
    ask("/long", "begun");
    gateway.terminate();
    ask("", "0\r\n\r\n");
    thread::sleep(Duration::from_millis(100));
    assert!(ask("/", "0\r\n\r\n").contains("connection: close"));
    assert_eq!(gateway.wait().0.code(), Some(0));
}

/// A gateway with a request in flight that takes too long, and has been told to end.
async fn held_up() -> (Gateway, TcpStream) {
    let address = upstream(async |_: Request<Incoming>| std::future::pending().await).await;
    let gateway = gateway(&format!("http://{address}"), &[]);
    let stream = gateway.begin("GET / HTTP/1.1\r\n");
    thread::sleep(Duration::from_millis(200));
    gateway.terminate();
    eventually(|| gateway.logged("ending, after"));
    (gateway, stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cut_off_shows_in_the_status() {
    let (gateway, _stream) = held_up().await;
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("have not ended"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sigterm_ends_at_once() {
    let (gateway, _stream) = held_up().await;
    gateway.terminate();
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(!log.contains("have not ended"), "{log}");
}
