//! What the upstream is told, and what the client.

use super::support::{Mirror, exchange, gateway, http2, rest, statuses, upstream};
use crate::support::Gateway;

/// What the upstream is told, in small letters.
fn told(gateway: &Gateway, fields: &str) -> String {
    let answer = exchange(
        gateway,
        format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}Connection: close\r\n\r\n"),
    );
    assert_eq!(statuses(&answer), [200], "{answer}");
    let (_, head) = answer.split_once("\r\n\r\n").expect("a body");
    head.to_ascii_lowercase()
}

/// The value of a field that is there once.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut values = lines.filter(|line| line.0 == name).map(|line| line.1);
    let value = values.next();
    assert_eq!(values.next(), None, "{name} is there twice: {head}");
    value
}

#[test]
fn what_belongs_to_a_connection_ends_with_it() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let fields = "Connection: keep-alive, X-Hop ,x-other\r\nConnection: X-Third\r\nKeep-Alive: 5\r\n\
                  Proxy-Connection: x\r\nX-Hop: 1\r\nX-Other: 1\r\nX-Third: 1\r\nX-Kept: 1\r\n\
                  TE: gzip\r\nHTTP2-Settings: x\r\nProxy-Authorization: x\r\nExpect: 100-continue\r\n";
    let head = told(&gateway, fields);
    for gone in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "x-hop",
        "x-other",
        "x-third",
        "te",
        "http2-settings",
        "proxy-authorization",
        "expect",
        "upgrade",
    ] {
        assert_eq!(field(&head, gone), None, "{head}");
    }
    assert_eq!(field(&head, "x-kept"), Some("1"));
    assert_eq!(field(&head, "via"), Some("1.1 tollgate"));
    let head = told(&gateway, "TE: trailers, gzip\r\n");
    assert_eq!((field(&head, "te"), field(&head, "connection")), (Some("trailers"), Some("te")));
}

#[test]
// The id of a request is random, and may have a shorter number in it.
fn what_a_client_claims_is_dropped() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let claims = [
        "",
        "X-Forwarded-For: 6.6.6.6\r\n",
        "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 127.0.0.1\r\n",
        "X_Forwarded_For: 6.6.6.6\r\n",
        "Forwarded: for=6.6.6.6\r\n",
        "X-Forwarded-Proto: evil\r\n",
        "X-Forwarded-Host: evil\r\n",
        "X-Forwarded-Port: 66600666\r\n",
        "X-Forwarded-Prefix: /evil\r\n",
        "X-Real-IP: 6.6.6.6\r\n",
        "True-Client-IP: 6.6.6.6\r\n",
        "X-Original-URL: /evil\r\n",
        "X-Rewrite-URL: /evil\r\n",
        "Proxy: evil\r\n",
        "Content_Length: 66600666\r\n",
        "Connection: X-Forwarded-For, Forwarded, X-Forwarded-Proto, Via, Host\r\n",
        "X-Forwarded-For: 6.6.6.6\r\nConnection: close, X-Forwarded-For\r\n",
    ];
    for claim in claims {
        let head = told(&gateway, claim);
        assert!(
            !head.contains("6.6.6") && !head.contains("evil") && !head.contains("66600666"),
            "{head}"
        );
        assert_eq!(field(&head, "x-forwarded-for"), Some("127.0.0.1"), "{claim}");
        assert_eq!(field(&head, "x-forwarded-proto"), Some("http"), "{claim}");
        assert_eq!(field(&head, "x-forwarded-host"), Some("a.example"), "{claim}");
        let forwarded = "for=127.0.0.1;host=\"a.example\";proto=http";
        assert_eq!(field(&head, "forwarded"), Some(forwarded), "{claim}");
        assert_eq!(field(&head, "host"), Some("a.example"), "{claim}");
        assert_eq!(field(&head, "via"), Some("1.1 tollgate"), "{claim}");
    }
}

#[test]
fn a_trusted_proxy_is_believed_as_far_as_it_can_know() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &["--trust", "127.0.0.0/8", "--trust", "10.0.0.0/8"]);
    for (given, chain) in [
        ("", "127.0.0.1"),
        ("192.0.2.1", "192.0.2.1, 127.0.0.1"),
        ("6.6.6.6, 192.0.2.1", "192.0.2.1, 127.0.0.1"),
        ("6.6.6.6, 192.0.2.1, 10.0.0.1", "192.0.2.1, 10.0.0.1, 127.0.0.1"),
        ("6.6.6.6\r\nX-Forwarded-For: 192.0.2.1", "192.0.2.1, 127.0.0.1"),
        ("192.0.2.1, nonsense, 10.0.0.1", "10.0.0.1, 127.0.0.1"),
        ("[2001:db8::1]:443", "2001:db8::1, 127.0.0.1"),
        ("::ffff:192.0.2.1", "192.0.2.1, 127.0.0.1"),
        ("10.0.0.9", "10.0.0.9, 127.0.0.1"),
    ] {
        let head =
            told(&gateway, &format!("X-Forwarded-For: {given}\r\nForwarded: for=6.6.6.6\r\n"));
        assert_eq!(field(&head, "x-forwarded-for"), Some(chain), "{given}");
        assert!(!head.contains("6.6.6.6"), "{head}");
    }
    let head = told(
        &gateway,
        "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n",
    );
    assert_eq!(field(&head, "x-forwarded-proto"), Some("https"));
    assert_eq!(field(&head, "x-forwarded-host"), Some("shop.example"));
    let forwarded = "for=\"[2001:db8::1]\";host=\"shop.example\";proto=https, \
                     for=127.0.0.1;host=\"a.example\";proto=http";
    assert_eq!(field(&head, "forwarded"), Some(forwarded));
    let head =
        told(&gateway, "X-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a\", for=6.6.6.6\r\n");
    assert_eq!(field(&head, "x-forwarded-proto"), Some("http"));
    assert_eq!(field(&head, "x-forwarded-host"), Some("a.example"));
}

#[test]
fn a_host_may_be_rewritten() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &["--host", "inner.example:81"]);
    let head = told(&gateway, "");
    assert_eq!(field(&head, "host"), Some("inner.example:81"));
    assert_eq!(field(&head, "x-forwarded-host"), Some("a.example"));
}

/// HTTP/1.0 need not name a host.
#[test]
fn without_a_host_the_upstream_is_told_its_own() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let answer = exchange(&gateway, "GET / HTTP/1.0\r\n\r\n").to_ascii_lowercase();
    assert_eq!(statuses(&answer.to_ascii_uppercase()), [200]);
    assert!(answer.contains(&format!("\r\nhost: {}", &mirror.url["http://".len()..])), "{answer}");
    assert!(
        answer.contains("via: 1.0 tollgate") && !answer.contains("x-forwarded-host"),
        "{answer}"
    );
}

#[test]
fn what_the_upstream_says_of_its_connection_ends_as_well() {
    let mirror =
        Mirror::answering("Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-Kept: 1\r\n");
    let gateway = gateway(&mirror.url, &[]);
    let answer = exchange(&gateway, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (head, _) = answer.split_once("\r\n\r\n").expect("a head");
    let head = head.to_ascii_lowercase();
    assert_eq!(field(&head, "x-kept"), Some("1"));
    for gone in ["connection", "x-hop", "keep-alive", "via"] {
        assert_eq!(field(&head, gone), None, "{head}");
    }
}

#[test]
fn an_answer_of_two_framings_has_one_or_is_none() {
    let both =
        Mirror::answering("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\na\r\n0\r\n");
    let answer = exchange(&gateway(&both.url, &[]), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(statuses(&answer), [200], "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("content-length"), "{answer}");
    let coded = Mirror::answering("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n");
    let answer = exchange(&gateway(&coded.url, &[]), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(statuses(&answer), [502], "{answer}");
}

#[test]
fn who_comes_round_too_often_is_stopped() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let asked = |hops: usize| {
        let via = "Via: 1.1 tollgate\r\n".repeat(hops);
        statuses(&exchange(&gateway, format!("GET / HTTP/1.1\r\nHost: a\r\n{via}\r\n")))
    };
    assert_eq!(asked(7), [200]);
    assert_eq!(asked(8), [508]);
}

#[tokio::test]
async fn from_http2_to_http1() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let request = hyper::Request::get("http://b.example/x")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(axum::body::Body::empty());
    let response = http2(&gateway).await.send_request(request.expect("a request")).await;
    let response = response.expect("a response");
    assert_eq!(response.status(), 200);
    let head = String::from_utf8_lossy(&rest(response.into_body()).await).to_ascii_lowercase();
    assert!(head.starts_with("get /x http/1.1\r\n"), "{head}");
    assert_eq!(field(&head, "host"), Some("b.example"));
    assert_eq!(field(&head, "cookie"), Some("a=1; b=2"));
    assert_eq!(field(&head, "via"), Some("2 tollgate"));
}

/// Answers that have a length, and no body.
#[tokio::test(flavor = "multi_thread")]
async fn lengths_without_bodies() {
    let address = upstream(async |request: hyper::Request<hyper::body::Incoming>| {
        let status = request.uri().path()[1..].parse().expect("a status");
        let mut response = hyper::Response::new(axum::body::Body::empty());
        *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
        if status == 200 {
            response.headers_mut().insert("content-length", 3.into());
        }
        response
    })
    .await;
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &[]);
        for (line, status, length) in
            [("HEAD /200", 200, true), ("GET /304", 304, false), ("GET /204", 204, false)]
        {
            let text = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
            // The second is read where the first ends.
            let answer = exchange(&gateway, text.repeat(2)).to_ascii_lowercase();
            assert_eq!(statuses(&answer.to_ascii_uppercase()), [status; 2], "{scheme}: {answer}");
            assert_eq!(answer.contains("content-length: 3"), length, "{scheme}: {answer}");
        }
    }
}
