//! Ids of requests, and what is logged.

#![cfg(test)]

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    port::free_port,
    proxy::support::{Mirror, exchange, gateway, statuses},
    support::Gateway,
};

/// The test's own address is a proxy that is trusted.
const TRUSTING: [&str; 2] = ["--trust", "127.0.0.1"];

fn ask(gateway: &Gateway, target: &str, fields: &str) -> String {
    let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
    exchange(gateway, head)
}

/// The ids in a text, of a request or a response.
fn ids(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|line| line.0.eq_ignore_ascii_case("x-request-id")).map(|line| line.1).collect()
}

/// The id that the client is told and the upstream is told, which must be one.
fn id(answer: &str) -> String {
    let (head, told) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!(ids(head).len(), 1, "{head}");
    assert_eq!(ids(head), ids(told), "{answer}");
    ids(head)[0].to_owned()
}

fn is_new(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The log, each line of which must be JSON.
fn log(gateway: Gateway) -> Vec<Value> {
    gateway.terminate();
    let (_, log) = gateway.wait();
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    log.lines().map(line).collect()
}

#[test]
fn each_request_has_an_id_of_its_own() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &[]);
    let ids: HashSet<String> = (0..20).map(|_| id(&ask(&gateway, "/", ""))).collect();
    assert_eq!(ids.len(), 20);
    assert!(ids.iter().all(|id| is_new(id)), "{ids:?}");
}

#[test]
fn the_id_of_a_client_is_replaced() {
    let mirror = Mirror::answering("X-Request-Id: the-upstream\r\n");
    let gateway = gateway(&mirror.url, &[]);
    for fields in [
        "X-Request-Id: mine-alone\r\n",
        "X-Request-Id: mine-alone\r\nx-request-id: mine-alone\r\n",
        // Not even in this way does the upstream get none.
        "X-Request-Id: mine-alone\r\nConnection: x-request-id\r\n",
    ] {
        let id = id(&ask(&gateway, "/", fields));
        assert!(is_new(&id), "{id}");
    }
    assert!(!mirror.seen().contains("mine-alone"));
}

#[test]
fn the_id_of_a_trusted_proxy_is_kept_if_it_can_be_one() {
    let mirror = Mirror::start();
    let gateway = gateway(&mirror.url, &TRUSTING);
    let asked = |given: &str| id(&ask(&gateway, "/", &format!("X-Request-Id: {given}\r\n")));
    for good in ["7", "a-b_c.d/e=", &"x".repeat(128)] {
        assert_eq!(asked(good), good);
    }
    for bad in ["", "two words", &"x".repeat(129), "caf\u{e9}"] {
        let id = asked(bad);
        assert!(is_new(&id), "{bad}: {id}");
    }
}

#[test]
fn answers_of_the_gateway_have_the_id() {
    let down = format!("http://127.0.0.1:{}", free_port());
    let gateway = gateway(&down, &TRUSTING);
    // The second is refused before it is limited.
    for (target, status) in [("/", 502), ("//", 400), ("/healthz", 200)] {
        let answer = ask(&gateway, target, "X-Request-Id: of-the-proxy\r\n");
        assert_eq!((statuses(&answer), ids(&answer)), (vec![status], vec!["of-the-proxy"]));
    }
    let limited = Gateway::start(&[&TRUSTING[..], &["--limit", "1/h"]].concat());
    for status in [200, 429, 429] {
        let answer = ask(&limited, "/", "X-Request-Id: of-the-proxy\r\n");
        let (head, _) = answer.split_once("\r\n\r\n").expect("a head");
        assert_eq!((statuses(&answer), ids(head)), (vec![status], vec!["of-the-proxy"]));
    }
}

#[test]
fn a_failure_is_logged_with_the_id() {
    let down = format!("http://127.0.0.1:{}", free_port());
    let args = ["--log-format", "json", "--trust", "127.0.0.1"];
    let json = gateway(&down, &args);
    let answer = ask(&json, "/", "X-Request-Id: 4711\"{}\r\n");
    assert_eq!(statuses(&answer), [502]);
    let log = log(json);
    let line = log.iter().find(|line| line["message"] == "the upstream fails").expect("a line");
    assert_eq!((&line["span"]["id"], &line["level"]), (&"4711\"{}".into(), &"WARN".into()));
    assert_eq!(line["target"], "tollgate_gateway::proxy");
    assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");

    let pretty = gateway(&down, &TRUSTING);
    ask(&pretty, "/", "X-Request-Id: 4712\r\n");
    pretty.terminate();
    let (_, log) = pretty.wait();
    let line = log.lines().find(|line| line.contains("the upstream fails")).expect("a line");
    assert!(line.contains("request{id=4712}:"), "{line}");
}

#[test]
fn a_line_for_each_request_tells_no_secrets() {
    let args = ["--log-requests", "--log-format", "json", "--limit", "3/h"];
    let gateway = Gateway::start(&args);
    let answer = ask(&gateway, "/?token=s3cret", "Authorization: s3cret\r\nCookie: s3cret\r\n");
    let (head, _) = answer.split_once("\r\n\r\n").expect("a head");
    let id = ids(head)[0].to_owned();
    // No line of one's own, and nothing for the terminal.
    ask(&gateway, "/a\u{9b}31m", "");
    ask(&gateway, "http://s3cret:s3cret@s3cret/b", "");
    let statuses = [(); 3].map(|()| statuses(&ask(&gateway, "/", ""))[0]);
    assert_eq!(statuses, [200, 200, 429]);

    let log = log(gateway);
    let lines: Vec<&Value> =
        log.iter().filter(|line| line["target"] == "gateway::request").collect();
    assert_eq!(lines.len(), 6, "{log:?}");
    let told = |line: &Value| {
        (line["method"].clone(), line["path"].clone(), line["status"].clone(), line["peer"].clone())
    };
    let expected = |path: &str, status: u16| {
        ("GET".into(), path.into(), status.into(), Value::from("127.0.0.1"))
    };
    assert_eq!(told(lines[0]), expected("/", 200));
    assert_eq!(lines[0]["span"]["id"], id.as_str());
    assert!(lines[0]["ms"].as_f64().is_some_and(|ms| ms > 0.0 && ms < 10_000.0), "{}", lines[0]);
    assert!(lines[0].get("outcome").is_none(), "{}", lines[0]);
    assert_eq!(told(lines[1]), expected("/a%C2%9B31m", 400));
    assert_eq!(told(lines[2]).1, "/b");
    assert_eq!(told(lines[5]), expected("/", 429));
    assert_eq!(lines[5]["outcome"], "limited");
    let all = log.iter().map(Value::to_string).collect::<String>();
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn without_being_asked_it_logs_no_requests() {
    let gateway = Gateway::start(&["--log-format", "json"]);
    assert_eq!(gateway.get("/").status, 200);
    let log = log(gateway);
    assert!(!log.is_empty() && log.iter().all(|line| line["span"].is_null()), "{log:?}");
}
