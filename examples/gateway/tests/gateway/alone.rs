//! One gateway that counts in memory.

use std::{net::TcpListener, thread, time::Duration};

use crate::support::{Gateway, Response};

#[test]
fn the_banner_has_commands_for_the_real_port() {
    let gateway = Gateway::start(&[]);
    let url = format!("http://{}/", gateway.address);
    assert!(gateway.banner.contains(&format!("curl -i {url}\n")), "{}", gateway.banner);
    assert!(gateway.banner.contains("5 requests per 10s"), "{}", gateway.banner);
    assert!(gateway.banner.contains("in memory"), "{}", gateway.banner);
    assert_eq!(gateway.get("/").number("x-ratelimit-limit"), 5);
}

#[test]
fn five_pass_and_then_denials_say_how_long_to_wait() {
    let gateway = Gateway::start(&["--limit", "5/h"]);
    for left in (0..5).rev() {
        let response = gateway.get("/");
        assert_eq!(response.status, 200);
        assert_eq!(response.number("x-ratelimit-remaining"), left);
        let hello = format!("hello, {left} of 5 requests left\n");
        assert!(response.body.starts_with(&hello), "{}", response.body);
    }
    for _ in 0..2 {
        let response = gateway.get("/");
        assert_eq!(response.status, 429);
        assert_eq!(response.number("x-ratelimit-remaining"), 0);
        // One of five comes back every 720 s, and the test has taken some of that.
        assert!((600..=720).contains(&response.number("retry-after")), "{response:?}");
    }
    assert_eq!(gateway.get("/healthz").status, 200);
}

#[test]
fn the_page_tells_what_it_got() {
    let gateway = Gateway::start(&["--limit", "5/h"]);
    let head = "GET / HTTP/1.1\r\nx-colour: blue\r\nauthorization: Bearer s3cret\r\n\
                x-api-key: s3cret\r\nX-Session-Token: s3cret\r\n";
    let body = gateway.send(head).body;
    for part in [
        "decision   Allowed by policy \"gateway\" (asked: Memory)",
        "limit \"requests\": 4 of 5 left",
        "  x-colour: blue\n",
        "  authorization: (not shown)\n",
        "  x-api-key: (not shown)\n",
        "  x-session-token: (not shown)\n",
    ] {
        assert!(body.contains(part), "{part:?} is missing in:\n{body}");
    }
    assert!(!body.contains("s3cret") && !body.contains("live page"), "{body}");
}

#[test]
fn waiting_as_long_as_told_is_enough() {
    let gateway = Gateway::start(&["--limit", "2/2s"]);
    let denied = loop {
        let response = gateway.get("/");
        if response.status == 429 {
            break response;
        }
    };
    assert_eq!(denied.number("retry-after"), 1);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(gateway.get("/").status, 200);
}

#[test]
fn the_checks_are_not_limited() {
    let gateway = Gateway::start(&["--limit", "1/h"]);
    for (path, body) in [("/healthz", "ok, breaker closed\n"), ("/readyz", "ready\n")] {
        for _ in 0..20 {
            let response = gateway.get(path);
            assert_eq!((response.status, response.body.as_str()), (200, body));
            assert_eq!(response.header("x-ratelimit-remaining"), None);
        }
    }
    assert_eq!(gateway.get("/").status, 200);
}

#[test]
fn a_trusted_proxy_tells_clients_apart() {
    fn as_told(gateway: &Gateway, client: &str) -> u16 {
        gateway.send(&format!("GET / HTTP/1.1\r\nx-forwarded-for: {client}\r\n")).status
    }
    let trusting = Gateway::start(&["--limit", "1/h", "--trust", "127.0.0.1", "--trust", "::1"]);
    assert_eq!(as_told(&trusting, "192.0.2.1"), 200);
    assert_eq!(as_told(&trusting, "6.6.6.6, 192.0.2.1"), 429, "what stands left may be forged");
    assert_eq!(as_told(&trusting, "192.0.2.2"), 200);

    let other = Gateway::start(&["--limit", "1/h"]);
    assert_eq!(as_told(&other, "192.0.2.1"), 200);
    assert_eq!(as_told(&other, "192.0.2.2"), 429, "without trust the header counts for nothing");
}

#[test]
fn browsers_may_read_denials_and_preflights_are_free() {
    let gateway = Gateway::start(&["--limit", "1/h"]);
    let preflight = "OPTIONS / HTTP/1.1\r\norigin: http://shop.example\r\n\
                     access-control-request-method: GET\r\n";
    for _ in 0..3 {
        assert_eq!(gateway.send(preflight).status, 200);
    }
    let get = "GET / HTTP/1.1\r\norigin: http://shop.example\r\n";
    assert_eq!(gateway.send(get).status, 200);
    let denied = gateway.send(get);
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("access-control-allow-origin"), Some("*"));
    let exposed = denied.header("access-control-expose-headers").expect("it is there");
    for name in ["retry-after", "x-ratelimit-remaining", "ratelimit"] {
        assert!(exposed.split(',').any(|item| item.trim() == name), "{exposed}");
    }
}

#[test]
fn sigterm_ends_it() {
    let gateway = Gateway::start(&[]);
    assert_eq!(gateway.get("/").status, 200);
    gateway.terminate();
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// A request is in flight for as long as its limiter waits for a Redis that says nothing.
#[test]
fn sigterm_while_a_request_is_in_flight_lets_it_end() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("redis://{}/", silent.local_addr().expect("an address"));
    let gateway = Gateway::start(&["--redis", &url]);
    let _at_start = silent.accept().expect("the gateway tries to connect");
    let stream = gateway.begin("GET / HTTP/1.1\r\n");
    let _for_the_request = silent.accept().expect("the request has arrived");
    gateway.terminate();
    assert_eq!(Response::read(stream).status, 200);
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("ending, after the requests in flight"), "{log}");
}
