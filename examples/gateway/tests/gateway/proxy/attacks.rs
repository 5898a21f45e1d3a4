//! What two servers could read differently.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::Duration,
};

use axum::body::Body;
use hyper::Request;

use super::support::{Mirror, exchange, gateway, http2, statuses};

/// What a client sends, and the statuses that it gets; then what must not reach the upstream.
const TABLE: [(&str, &str, &[u16]); 31] = [
    ("plain", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[200]),
    (
        "lengths that differ",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        &[400],
    ),
    (
        "a list of lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello",
        &[400],
    ),
    (
        "a length with a sign",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
        &[400],
    ),
    ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", &[400]),
    (
        "a length that is too large",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n",
        &[400],
    ),
    // One framing goes on, and nothing after this request is read.
    (
        "a length, then chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        &[200],
    ),
    (
        "chunks, then a length",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        &[200],
    ),
    ("another coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", &[400]),
    (
        "two codings",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "chunked twice",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "chunked before another",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "almost chunked",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "a space before the colon",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "chunks in HTTP/1.0",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    ("a folded line", "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n", &[400]),
    (
        "a folded coding",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    (
        "a bare carriage return",
        "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\rGET /smuggled HTTP/1.1\r\n\r\n",
        &[400],
    ),
    ("a zero byte", "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n", &[400]),
    ("a space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", &[400]),
    ("no Host", "GET / HTTP/1.1\r\n\r\n", &[400]),
    ("two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", &[400]),
    ("a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", &[400]),
    ("a Host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", &[400]),
    ("a target of this host", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", &[200]),
    ("a target of another host", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
    ("a target with a user", "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n", &[400]),
    ("an asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
    ("a tunnel", "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", &[501]),
    ("a trace", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", &[501]),
    (
        "a line without a colon",
        "GET / HTTP/1.1\r\nHost: a\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        &[400],
    ),
];

#[test]
fn each_trick_has_its_answer() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    thread::scope(|scope| {
        for (name, sent, expected) in TABLE {
            let gateway = &gateway;
            scope.spawn(move || {
                let answer = exchange(gateway, sent);
                assert_eq!(statuses(&answer), expected, "{name}: {answer}");
            });
        }
    });
    let seen = mirror.seen().to_ascii_lowercase();
    assert!(!seen.contains("smuggled"), "{seen}");
    // Of both framings only one.
    let heads = seen.split("\r\n\r\n").filter(|head| head.contains("transfer-encoding"));
    assert!(heads.clone().count() > 0, "{seen}");
    assert!(heads.clone().all(|head| !head.contains("content-length")), "{seen}");
}

#[test]
fn chunks_that_are_none_reach_no_second_request() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    for body in
        ["x\r\n\r\n", "-1\r\nGET /smuggled", "1\r\nab\r\n0\r\n\r\n", "fffffffffffffffff\r\na"]
    {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = exchange(&gateway, format!("{head}{body}"));
        assert_eq!(statuses(&answer), [400], "{body:?}: {answer}");
    }
}

/// The path that is limited is the path that is forwarded; what could be read as another is refused.
#[test]
fn paths_go_on_as_they_are_spelled_or_not_at_all() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let ask = |path: &str| {
        exchange(&gateway, format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    };
    for path in
        ["/", "/a/", "/a?", "/a?b=//%2e%2F;..", "/%C3%A9/%40@", "/a%20b", "/%252e", "/a..b/..."]
    {
        let answer = ask(path);
        assert_eq!(statuses(&answer), [200], "{path}: {answer}");
        assert!(answer.contains(&format!("GET {path} HTTP/1.1\r\n")), "{path}: {answer}");
    }
    for path in [
        "//",
        "//admin",
        "/a//b",
        "/./a",
        "/a/.",
        "/../a",
        "/a/..",
        "/%2e%2e/a",
        "/%2E/a",
        "/.%2e/a",
        "/a%2fb",
        "/a%2Fb",
        "/a%5cb",
        "/a\\b",
        "/a;b=c",
        "/..;/a",
        "/%61dmin",
        "/a%00",
        "/a%0d%0ab",
        "/%",
        "/%zz",
        "/%u0061",
        "/\u{e9}",
        "http://a//b",
        "http://a/../b",
    ] {
        let answer = ask(path);
        assert_eq!(statuses(&answer), [400], "{path}: {answer}");
        if path.is_ascii() {
            assert!(answer.contains("\r\n\r\nthe path "), "{path}: {answer}");
        }
    }
    // Nor are the checks reached by another spelling.
    assert_eq!(statuses(&ask("//healthz")), [400]);
}

#[test]
fn heads_are_bounded() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let lines = |count: usize| "x: y\r\n".repeat(count);
    let many =
        |count| exchange(&gateway, format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", lines(count)));
    assert_eq!(statuses(&many(90)), [200]);
    assert_eq!(statuses(&many(101)), [431]);
    let large = |size: usize| {
        exchange(&gateway, format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "y".repeat(size)))
    };
    assert_eq!(statuses(&large(32 << 10)), [200]);
    assert_eq!(statuses(&large(100 << 10)), [431]);
}

#[tokio::test]
async fn in_http2_as_well() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let ask = async |uri: &str, name: &'static str, value: &'static str, body: &'static str| {
        let request = Request::post(uri).header(name, value).body(Body::from(body));
        let response = http2(&gateway).await.send_request(request.expect("a request")).await;
        response.ok().map(|response| response.status().as_u16())
    };
    assert_eq!(ask("http://a/", "host", "a", "").await, Some(200));
    assert_eq!(ask("http://a/", "host", "b", "").await, Some(400));
    assert_eq!(ask("http://a//b", "x", "y", "").await, Some(400));
    assert_eq!(ask("http://a/%2e%2e/b", "x", "y", "").await, Some(400));
    assert_eq!(ask("http://a@b/", "x", "y", "").await, Some(400));
    // More and less than was announced: no whole request goes on.
    let seen = mirror.seen().len();
    assert_ne!(ask("http://a/", "content-length", "3", "GET /smuggled").await, Some(200));
    assert_ne!(ask("http://a/", "content-length", "30", "short").await, Some(200));
    let seen = mirror.seen()[seen..].to_owned();
    assert!(!seen.contains("smuggled"), "{seen}");
}

/// Ten seconds for a head, however it dribbles in; others are served meanwhile.
#[test]
fn slow_heads_end() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let second = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /";
    let starts = ["", "P", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nHost:", second];
    let slow: Vec<TcpStream> = starts
        .iter()
        .map(|start| {
            let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
            stream.write_all(start.as_bytes()).expect("it reads");
            stream
        })
        .collect();
    thread::sleep(Duration::from_secs(5));
    assert_eq!(statuses(&exchange(&gateway, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")), [200]);
    for (start, mut stream) in starts.iter().zip(slow) {
        stream.set_read_timeout(Some(Duration::from_secs(8))).expect("a timeout");
        match stream.read_to_end(&mut Vec::new()) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => {
                panic!("{start:?} is still waited for: {error}");
            }
            _ => {}
        }
    }
}
