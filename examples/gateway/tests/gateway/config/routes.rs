//! Several routes and upstreams.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

use super::support::Folder;
use crate::{
    port::free_port,
    proxy::support::{Mirror, exchange, statuses},
    support::Gateway,
};

fn get(gateway: &Gateway, target: &str) -> String {
    exchange(gateway, format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
}

fn status(gateway: &Gateway, target: &str) -> u16 {
    statuses(&get(gateway, target))[0]
}

/// Two upstreams. To the second go three routes, of which one is for `POST` only and none is limited.
fn two(first: &str, second: &str) -> Folder {
    Folder::new(&format!(
        r#"
        listen = "127.0.0.1:0"
        checks = false
        [upstream.first]
        url = "{first}"
        connect_timeout = "500ms"
        [upstream.second]
        url = "{second}"
        [[route]]
        match = ["/a/{{id}}", "GET /b"]
        upstream = "first"
        policy = "strict"
        timeout = "300ms"
        [[route]]
        match = ["/a/open", "POST /b", "/readyz"]
        upstream = "second"
        [[policy]]
        name = "strict"
        limit = [{{ name = "requests", key = ["ip", "route"], quota = "2/h" }}]
        "#
    ))
}

#[test]
fn the_route_that_limits_is_the_route_that_is_forwarded() {
    let (first, second) = (Mirror::start(), Mirror::answering("X-Second: yes\r\n"));
    let gateway = two(&first.url, &second.url).start(&[]);
    for (target, is_second, expected) in [
        ("/a/1", false, [200, 200, 429]),
        // Not the one with a parameter, however it is spelled.
        ("/a/open", true, [200, 200, 200]),
        ("/a/%6Fpen", false, [400, 400, 400]),
        ("/a/./open", false, [400, 400, 400]),
        ("/a//open", false, [400, 400, 400]),
        ("//a/open", false, [400, 400, 400]),
        // These are other paths, for all that see them.
        ("/a/open/", false, [404, 404, 404]),
        ("/a/Open", false, [429, 429, 429]),
        ("/b", false, [200, 200, 429]),
        ("/b?x=/a/open", false, [429, 429, 429]),
        ("/c", false, [404, 404, 404]),
        // The gateway has none of its own here.
        ("/readyz", true, [200, 200, 200]),
        ("/healthz", false, [404, 404, 404]),
    ] {
        for status in expected {
            let answer = get(&gateway, target);
            assert_eq!(statuses(&answer), [status], "{target}: {answer}");
            assert_eq!(answer.contains("X-Second") || answer.contains("x-second"), is_second);
        }
    }
    let post = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert!((0..5).all(|_| statuses(&exchange(&gateway, post)) == [200]));
    assert!(!first.seen().contains("open") && second.seen().contains("POST /b"));
}

#[test]
fn an_upstream_that_is_killed_does_not_trouble_others() {
    let (dead, second) = (format!("http://127.0.0.1:{}", free_port()), Mirror::start());
    let gateway = two(&dead, &second.url).start(&[]);
    thread::scope(|scope| {
        let failing = scope.spawn(|| (0..2).map(|_| status(&gateway, "/a/1")).collect::<Vec<_>>());
        assert!((0..20).all(|_| status(&gateway, "/a/open") == 200));
        assert_eq!(failing.join().expect("it ends"), [502, 502]);
    });
    assert_eq!(status(&gateway, "/a/1"), 429, "what failed was counted all the same");
}

/// One that accepts, and says nothing.
#[test]
fn a_route_has_a_timeout_of_its_own() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let second = Mirror::start();
    let gateway = two(&url, &second.url).start(&[]);
    let answer = get(&gateway, "/a/1");
    assert_eq!(statuses(&answer), [504]);
    assert!(answer.ends_with("there was no answer in time\n"), "{answer}");
    assert!(answer.contains("cache-control: no-store"), "{answer}");

    // An answer that has begun may take longer.
    thread::spawn(move || {
        for mut stream in silent.incoming().flatten() {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfi");
                thread::sleep(Duration::from_millis(700));
                let _ = stream.write_all(b"ne");
            });
        }
    });
    let answer = get(&gateway, "/b");
    assert!(answer.ends_with("fine"), "{answer}");
}

#[test]
fn each_route_has_its_own_cors() {
    let mirror = Mirror::start();
    let folder = Folder::new(&format!(
        r#"
        listen = "127.0.0.1:0"
        [upstream.main]
        url = "{}"
        [[route]]
        match = ["/shop"]
        upstream = "main"
        policy = "one"
        cors = {{ origins = ["https://shop.example"], methods = ["PUT"], headers = ["x-a"],
                  expose = ["x-b"], credentials = true, max_age = "10m" }}
        [[route]]
        match = ["POST,PUT /put"]
        upstream = "main"
        cors = {{ origins = ["https://put.example"] }}
        [[route]]
        otherwise = true
        upstream = "main"
        [[policy]]
        name = "one"
        limit = [{{ name = "requests", key = "ip", quota = "1/h" }}]
        "#,
        mirror.url
    ));
    let gateway = folder.start(&[]);
    let ask = |method: &str, path: &str, origin: &str| {
        let preflight = "Access-Control-Request-Method: PUT\r\n";
        exchange(
            &gateway,
            format!(
                "{method} {path} HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\n{}Connection: close\r\n\r\n",
                if method == "OPTIONS" { preflight } else { "" }
            ),
        )
    };
    for _ in 0..3 {
        let preflight = ask("OPTIONS", "/shop", "https://shop.example");
        for field in [
            "access-control-allow-origin: https://shop.example",
            "access-control-allow-credentials: true",
            "access-control-allow-methods: PUT",
            "access-control-allow-headers: x-a",
            "access-control-max-age: 600",
        ] {
            assert!(preflight.contains(field), "{field}: {preflight}");
        }
    }
    assert_eq!(mirror.seen(), "", "preflights are answered, and not counted");
    let other = ask("OPTIONS", "/shop", "https://evil.example");
    assert!(!other.contains("access-control-allow-origin"), "{other}");
    assert_eq!(statuses(&ask("GET", "/shop", "https://shop.example")), [200]);
    let denied = ask("GET", "/shop", "https://shop.example");
    assert_eq!(statuses(&denied), [429]);
    assert!(denied.contains("access-control-allow-origin: https://shop.example"), "{denied}");
    let exposed = denied.lines().find(|line| line.starts_with("access-control-expose-headers"));
    for name in ["retry-after", "x-ratelimit-remaining", "x-request-id", "x-b"] {
        assert!(exposed.is_some_and(|line| line.contains(name)), "{name}: {denied}");
    }
    // A route is asked about by the method of the request to come.
    let asking = ask("OPTIONS", "/put", "https://put.example");
    assert!(asking.contains("access-control-allow-origin: https://put.example"), "{asking}");
    assert!(!mirror.seen().contains("OPTIONS"), "{asking}");
    let other = exchange(
        &gateway,
        "OPTIONS /put HTTP/1.1\r\nHost: a\r\nOrigin: https://put.example\r\n\
        Access-Control-Request-Method: GET\r\nConnection: close\r\n\r\n",
    );
    assert!(!other.contains("access-control-allow-origin"), "{other}");
    // What the upstream says of it goes through where the gateway says nothing.
    let plain = ask("OPTIONS", "/", "https://shop.example");
    let (head, _) = plain.split_once("\r\n\r\n").expect("a head");
    assert!(!head.contains("access-control"), "{plain}");
    assert!(mirror.seen().contains("OPTIONS / "));
}

/// A route that answers no preflights is not asked in place of the one that takes `OPTIONS`.
#[test]
fn a_preflight_is_a_request_like_others_where_nobody_answers_it() {
    let (first, second) = (Mirror::start(), Mirror::start());
    let folder = Folder::new(&format!(
        r#"
        upstream.first.url = "{}"
        upstream.second.url = "{}"
        route = [
            {{ match = ["POST /a"], upstream = "second" }},
            {{ otherwise = true, upstream = "first" }},
        ]
        "#,
        first.url, second.url
    ));
    let preflight = "OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: https://shop.example\r\n\
                     Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n";
    assert_eq!(statuses(&exchange(&folder.start(&[]), preflight)), [200]);
    assert!(first.seen().contains("OPTIONS /a") && second.seen().is_empty());
}
