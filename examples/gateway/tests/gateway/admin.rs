//! The admin listener.

#![cfg(test)]

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process, thread,
    time::{Duration, Instant},
};

use crate::support::{Gateway, Response, begin, eventually, gateway, run, run_with};

const TOKEN: &str = "a-token-of-some-length";
pub(crate) const LOCAL: [&str; 2] = ["--admin", "127.0.0.1:0"];

/// A file that ends with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = env::temp_dir().join(format!("tollgate-{name}-{}", process::id()));
        fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub(crate) fn start(args: &[&str]) -> (Gateway, SocketAddr) {
    let gateway = Gateway::start(args);
    let admin = gateway.admin.expect("an admin listener");
    (gateway, admin)
}

/// Asks the admin listener, with further headers, each with its line end.
fn get(admin: SocketAddr, path: &str, headers: &str) -> Response {
    Response::read(begin(admin, &format!("GET {path} HTTP/1.1\r\nhost: {admin}\r\n{headers}"), ""))
}

pub(crate) fn post(admin: SocketAddr, path: &str, headers: &str, body: &str) -> Response {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {admin}\r\ncontent-type: application/json\r\n{headers}"
    );
    Response::read(begin(admin, &head, body))
}

/// The number of requests of the demo's policy with this outcome, by `/metrics`.
pub(crate) fn metric(admin: SocketAddr, outcome: &str) -> u64 {
    let metrics = get(admin, "/metrics", "");
    assert_eq!(metrics.status, 200);
    let name = format!("tollgate_requests_total{{policy=\"gateway\",outcome=\"{outcome}\"}} ");
    let line = metrics.body.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.parse().expect("a number"))
}

/// The numbers of the page.
pub(crate) fn state(admin: SocketAddr) -> serde_json::Value {
    serde_json::from_str(&get(admin, "/live.json", "").body).expect("JSON")
}

pub(crate) fn outcomes(state: &serde_json::Value) -> [u64; 2] {
    let outcomes = &state["policies"][0]["outcomes"];
    ["allowed", "denied"].map(|outcome| outcomes[outcome].as_u64().unwrap_or(0))
}

#[test]
fn beyond_this_machine_it_needs_a_token() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let output = run(&["--listen", "127.0.0.1:0", "--admin", address]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--admin-token-file") && message.contains(address), "{message}");
        assert!(output.stdout.is_empty(), "it has begun to listen");
    }
    let short = File::new("short", "hush\n");
    let args = ["--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0", "--admin-token-file"];
    let output = run(&[&args[..], &[short.path()]].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("at least 16") && !message.contains("hush"), "{message}");

    let file = File::new("public", TOKEN);
    let args = ["--admin", "0.0.0.0:0", "--admin-token-file", file.path()];
    let (_gateway, admin) = start(&args);
    let right = format!("authorization: Bearer {TOKEN}\r\n");
    let ask = |host: &str, headers: &str| {
        let head = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\n{headers}");
        Response::read(begin(admin, &head, "")).status
    };
    assert_eq!((ask("gateway.example", &right), ask("gateway.example", "")), (200, 401));
}

#[test]
fn only_the_token_opens_it() {
    let file = File::new("loopback", &format!("{TOKEN}\n"));
    let (_gateway, admin) = start(&[&LOCAL[..], &["--admin-token-file", file.path()]].concat());
    for path in ["/", "/live", "/live.json", "/metrics", "/healthz", "/page.js", "/nothing"] {
        let refused = get(admin, path, "");
        assert_eq!(refused.status, 401, "{path}");
        assert!(!refused.body.contains("policies"), "{}", refused.body);
    }
    for wrong in [
        "Bearer a-token-of-some-lengti",
        "Bearer a-token-of-some-lengt",
        "Bearer a-token-of-some-length2",
        "Bearer",
        "Bearer ",
        // The name is right, and the password is not.
        "Basic YS10b2tlbi1vZi1zb21lLWxlbmd0aDp4",
        "Basic !",
        TOKEN,
    ] {
        let refused = get(admin, "/metrics", &format!("authorization: {wrong}\r\n"));
        assert_eq!(refused.status, 401, "{wrong}");
    }
    // As a browser sends it: `me:a-token-of-some-length`.
    for right in [&format!("Bearer {TOKEN}"), "Basic bWU6YS10b2tlbi1vZi1zb21lLWxlbmd0aA=="] {
        let headers = format!("authorization: {right}\r\n");
        for path in ["/", "/live.json", "/metrics", "/healthz"] {
            assert_eq!(get(admin, path, &headers).status, 200, "{right} {path}");
        }
        let twice = format!("{headers}authorization: Bearer other\r\n");
        assert_eq!(get(admin, "/metrics", &twice).status, 401, "two say who asks");
    }
}

#[test]
fn a_token_of_the_environment_counts() {
    let mut command = gateway(&["--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"]);
    command.env("TOLLGATE_ADMIN_TOKEN", "short");
    let output = run_with(command);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("at least 16"), "{message}");
}

#[test]
fn metrics_and_the_page_tell_what_was_sent() {
    let (gateway, admin) = start(&[&LOCAL[..], &["--limit", "3/h"]].concat());
    let statuses: Vec<u16> = (0..8).map(|_| gateway.get("/").status).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429, 429, 429]);
    assert_eq!((metric(admin, "allowed"), metric(admin, "denied")), (3, 5));

    // The first event has all, the next ones what has come since.
    let mut stream =
        BufReader::new(begin(admin, &format!("GET /live HTTP/1.1\r\nhost: {admin}\r\n"), ""));
    let mut event = || {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert_ne!(stream.read_line(&mut line).expect("an event"), 0, "it ended");
        }
        serde_json::from_str::<serde_json::Value>(&line["data: ".len()..]).expect("JSON")
    };
    let mut seconds = Vec::new();
    loop {
        let state = event();
        seconds.extend(state["seconds"].as_array().expect("a list").clone());
        if outcomes(&state) == [3, 5] {
            assert_eq!(state["latency"]["count"], 8);
            assert!(state["latency"]["p99"].as_f64() >= state["latency"]["p50"].as_f64());
            assert_eq!(state["policies"][0]["limits"], serde_json::json!(["requests"]));
            assert_eq!((&state["store"], &state["ready"]), (&"memory".into(), &true.into()));
            let top = serde_json::json!([{"policy": "gateway", "limit": "requests",
                "key": "ip:127.0.*.*", "denied": 5, "over": 0}]);
            assert_eq!(state["top"], top);
            break;
        }
        assert!(seconds.len() < 10, "{state}");
    }
    let sum =
        |at: usize| seconds.iter().map(|it| it[3][0][at].as_u64().expect("a count")).sum::<u64>();
    assert_eq!([sum(0), sum(1), sum(2), sum(3)], [3, 5, 0, 0], "each second is told once");
    assert_eq!(event()["seconds"].as_array().map(Vec::len), Some(1));

    gateway.terminate();
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "a page that is open holds it up: {log}");
}

/// A page of another site, or under a name that was pointed at this machine, gets nothing.
#[test]
fn other_sites_neither_read_nor_change() {
    let (gateway, admin) = start(&[&LOCAL[..], &["--limit", "1/h"]].concat());
    let port = admin.port();
    for (host, status) in [
        (format!("evil.example:{port}"), 403),
        ("localhost.evil.example".to_owned(), 403),
        (format!("localhost:{port}"), 200),
        ("localhost:1".to_owned(), 200),
        (format!("[::1]:{port}"), 200),
    ] {
        let head = format!("GET /live.json HTTP/1.1\r\nhost: {host}\r\n");
        assert_eq!(Response::read(begin(admin, &head, "")).status, status, "{host}");
    }

    assert_eq!([gateway.get("/").status, gateway.get("/").status], [200, 429]);
    let body = r#"{"policy": "gateway", "limit": "requests", "key": "127.0.0.1"}"#;
    for headers in [
        "",
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
        "origin: http://localhost:1\r\n",
        "origin: http://evil.example\r\nx-tollgate-admin: 1\r\n",
        &format!("origin: http://{admin}\r\norigin: http://evil.example\r\n"),
        &format!("origin: http://{admin}.evil.example\r\n"),
    ] {
        assert_eq!(post(admin, "/key/reset", headers, body).status, 403, "{headers}");
    }
    assert_eq!(gateway.get("/").status, 429);
    let own = format!("origin: http://{admin}\r\n");
    assert_eq!(post(admin, "/key/reset", &own, body).status, 200);
    assert_eq!(gateway.get("/").status, 200);

    let page = get(admin, "/", "");
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("access-control-allow-origin"), None);
}

#[test]
fn not_too_many_pages_are_open_at_a_time() {
    let (_gateway, admin) = start(&LOCAL);
    let open = || {
        let head = format!("GET /live HTTP/1.1\r\nhost: {admin}\r\n");
        let mut stream = BufReader::new(begin(admin, &head, ""));
        let mut line = String::new();
        stream.read_line(&mut line).expect("an answer");
        (line, stream)
    };
    let mut pages: Vec<_> = (0..32).map(|_| open()).collect();
    assert!(pages.iter().all(|(line, _)| line.contains(" 200 ")));
    assert!(open().0.contains(" 503 "));
    // Who has closed a page makes room for another.
    pages.pop();
    eventually(|| open().0.contains(" 200 "));
}

/// On both listeners, who sends half of a head, or nothing, is closed after ten seconds, and who sends
/// a large one at once.
#[test]
#[expect(clippy::disallowed_methods, reason = "a timeout is measured")]
fn no_head_takes_for_ever() {
    let (gateway, admin) = start(&LOCAL);
    let listeners = [gateway.address, admin];
    thread::scope(|scope| {
        for (address, text) in
            listeners.into_iter().flat_map(|at| [(at, ""), (at, "GET / HTTP/1.1\r\nhost: a\r\n")])
        {
            scope.spawn(move || {
                let begun = Instant::now();
                let mut stream = TcpStream::connect(address).expect("it accepts");
                stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
                stream.write_all(text.as_bytes()).expect("it reads");
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("it closes");
                let taken = begun.elapsed().as_secs();
                assert!((9..15).contains(&taken), "{address} after {text:?}: {taken} s, {answer}");
            });
        }
    });
    for address in listeners {
        let fields = "x: y\r\n".repeat(150);
        let head = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{fields}");
        assert_eq!(Response::read(begin(address, &head, "")).status, 431, "{address}");
    }
}

#[test]
fn it_is_apart_from_the_public_listener() {
    let (gateway, admin) = start(&LOCAL);
    for path in ["/metrics", "/live", "/live.json", "/page.js"] {
        assert!(gateway.get(path).body.starts_with("hello, "), "{path}");
        assert_ne!(gateway.address, admin);
    }
    for (path, body) in [("/healthz", "ok, breaker closed\n"), ("/readyz", "ready\n")] {
        assert_eq!(get(admin, path, "").body, body);
    }
    let link = format!("live page  http://{admin}/\n");
    assert!(gateway.get("/").body.ends_with(&link));

    let off = Gateway::start(&["--admin", "off"]);
    assert!(off.admin.is_none() && off.banner.contains("admin    off"), "{}", off.banner);
}

#[test]
fn a_port_that_was_asked_for_and_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = run(&["--listen", "127.0.0.1:0", "--admin", &address]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("cannot listen on {address} (--admin)")), "{message}");
}

/// Failures show on the page, while the metrics tell the same.
#[test]
fn requests_that_pass_uncounted_are_told() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("redis://{}/", closed.local_addr().expect("an address"));
    drop(closed);
    let (gateway, admin) = start(&[&LOCAL[..], &["--redis", &url]].concat());
    for _ in 0..4 {
        assert_eq!(gateway.get("/").status, 200);
    }
    assert_eq!(metric(admin, "error_allowed"), 4);
    eventually(|| state(admin)["policies"][0]["outcomes"]["error_allowed"] == 4);
    let state = state(admin);
    let seconds = state["seconds"].as_array().expect("a list").iter();
    assert_eq!(seconds.filter_map(|it| it[3][0][2].as_u64()).sum::<u64>(), 4, "{state}");
    assert_eq!((&state["store"], &state["ready"]), (&"Redis".into(), &false.into()), "{state}");
    assert!(state["last_failure"]["kind"].is_string(), "{state}");
}

/// Whether or not something else has the port that it takes by itself.
#[test]
fn two_on_one_machine_each_have_one() {
    let gateways = [(); 2].map(|()| Gateway::start(&["--admin", "default"]));
    let admins = gateways.each_ref().map(|gateway| gateway.admin.expect("a listener"));
    assert_ne!(admins[0], admins[1]);
    for admin in admins {
        assert_eq!(get(admin, "/healthz", "").status, 200);
    }
}
