//! Connections of HTTP/1.1 that are kept for the next request.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use super::support::{Mirror, gateway};
use crate::support::Gateway;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

fn connect(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.address).expect("it accepts");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

/// Sends a request, and reads the head of its answer, and what comes with it.
fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("it is open");
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains("\r\n\r\n") {
        let size = stream.read(&mut buffer).expect("an answer");
        assert_ne!(size, 0, "it has closed after {text:?}");
        text.push_str(&String::from_utf8_lossy(&buffer[..size]));
    }
    text
}

/// The version of an answer is the gateway's own, whatever the upstream speaks.
#[test]
fn an_upstream_of_http_1_0_does_not_end_them() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi");
        }
    });
    let gateway = gateway(&url, &[]);
    let mut stream = connect(&gateway);
    for _ in 0..3 {
        let answer = ask(&mut stream, GET);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hi"), "{answer}");
        assert!(!answer.contains("connection:"), "{answer}");
    }
    // Who speaks it hears it.
    let answer = ask(&mut connect(&gateway), "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.ends_with("hi"), "{answer}");
}

/// Balancers keep connections for a minute. What they then begin must come as soon as ever.
#[test]
#[expect(clippy::disallowed_methods, reason = "a timeout is measured")]
fn they_may_be_idle_for_longer_than_a_head_may_take() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let mut idle = [GET, POST].map(|request| {
        let mut stream = connect(&gateway);
        ask(&mut stream, request);
        stream
    });
    thread::sleep(Duration::from_secs(15));
    for stream in &mut idle {
        ask(stream, GET);
        stream.write_all(b"GET / HTTP").expect("it is open");
    }
    let begun = Instant::now();
    for mut stream in idle {
        let size = stream.read(&mut [0; 4096]).expect("it closes");
        assert_eq!(size, 0);
        let taken = begun.elapsed().as_secs();
        assert!((9..13).contains(&taken), "{taken} s");
    }
}
