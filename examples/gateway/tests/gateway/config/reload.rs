//! Files that change while they are in use.

use super::support::Folder;
use crate::{
    proxy::support::{Mirror, exchange, statuses},
    support::{Gateway, Response, begin, eventually},
};

fn text(quota: &str, upstream: &str) -> String {
    format!(
        r#"
listen = "127.0.0.1:0"
[upstream.main]
url = "{upstream}"
[[route]]
otherwise = true
upstream = "main"
policy = "api"
[[policy]]
name = "api"
limit = [{{ name = "requests", key = "ip", quota = "{quota}" }}]
"#
    )
}

fn capacity(gateway: &Gateway) -> u64 {
    gateway.get("/").number("x-ratelimit-limit")
}

/// Ends it, and returns its log.
fn log(gateway: Gateway) -> String {
    gateway.terminate();
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    log
}

#[test]
fn a_file_that_changes_changes_the_limits_and_what_was_counted_stays() {
    let folder = Folder::new(&text("10/h", "demo:"));
    let gateway = folder.start(&[]);
    assert_eq!(gateway.get("/").number("x-ratelimit-remaining"), 9);
    folder.write(&text("20/h", "demo:"));
    eventually(|| capacity(&gateway) == 20);
    // What was taken of the old one is taken of the new one.
    assert!(gateway.get("/").number("x-ratelimit-remaining") < 18);
    let log = log(gateway);
    let line = "the configuration was read again changes=\"policies (changed: api)\"";
    assert!(log.contains(line), "{log}");
}

#[test]
fn it_is_read_again_when_the_process_is_asked_to() {
    let folder = Folder::new(&text("10/h", "demo:"));
    let gateway = folder.start(&[]);
    gateway.hang_up();
    eventually(|| gateway.logged("changes=\"nothing\""));
    folder.write(&text("30/h", "demo:").replace("127.0.0.1:0", "127.0.0.1:1"));
    gateway.hang_up();
    eventually(|| capacity(&gateway) == 30);
    // A port that is in use stays in use.
    eventually(|| gateway.logged("restart=\"listen\"") || gateway.logged("changes=\"nothing\""));
    drop(gateway);
}

#[test]
fn a_broken_file_changes_nothing_and_says_why() {
    let folder = Folder::new(&text("10/h", "demo:"));
    let gateway = folder.start(&[]);
    for (broken, why) in [
        (text("ten/h", "demo:"), "quota = \"ten/h\""),
        (text("10/h", "demo:").replace("policy = \"api\"", "policy = \"x\""), "no policy"),
        ("[[policy".to_owned(), "line 1, "),
        (String::new(), "there is no route"),
    ] {
        folder.write(&broken);
        eventually(|| gateway.logged(why));
        assert_eq!(capacity(&gateway), 10);
    }
    std::fs::remove_file(folder.file()).expect("it was there");
    eventually(|| gateway.logged("it cannot be read"));
    assert_eq!(capacity(&gateway), 10);
    folder.write(&text("12/h", "demo:"));
    eventually(|| capacity(&gateway) == 12);
    let log = log(gateway);
    assert_eq!(log.matches("it stays as it was").count(), 5, "{log}");
}

/// Whatever it is that blocks, requests do not.
#[test]
fn a_pipe_in_place_of_the_file_holds_nobody() {
    let folder = Folder::new(&text("10/h", "demo:"));
    let gateway = folder.start(&[]);
    std::fs::remove_file(folder.file()).expect("it was there");
    let made = std::process::Command::new("mkfifo").arg(folder.file()).status();
    assert!(made.is_ok_and(|status| status.success()));
    eventually(|| gateway.logged("it is no file"));
    gateway.hang_up();
    assert_eq!(capacity(&gateway), 10);
    folder.write(&text("12/h", "demo:"));
    eventually(|| capacity(&gateway) == 12);
    log(gateway);
}

#[test]
fn routes_and_upstreams_change_with_it() {
    let (first, second) = (Mirror::start(), Mirror::answering("X-Second: yes\r\n"));
    let folder = Folder::new(&text("1000/h", &first.url));
    let gateway = folder.start(&[]);
    let ask = || exchange(&gateway, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(!ask().to_ascii_lowercase().contains("x-second"));
    folder.write(&text("1000/h", &second.url));
    eventually(|| {
        let answer = ask();
        assert_eq!(statuses(&answer), [200], "no request is lost: {answer}");
        answer.to_ascii_lowercase().contains("x-second")
    });
    assert!(log(gateway).contains("changes=\"upstreams (changed: main)\""));
}

/// Keys are looked up by the policies of now.
#[test]
fn the_admin_listener_goes_with_it() {
    let folder = Folder::new(&text("10/h", "demo:"));
    let gateway = folder.start(&["--admin", "127.0.0.1:0"]);
    let admin = gateway.admin.expect("a listener");
    let look = |policy: &str| {
        let body = format!(r#"{{"policy": "{policy}", "limit": "requests", "key": "127.0.0.1"}}"#);
        let head = "POST /key/look HTTP/1.1\r\nhost: localhost\r\nx-tollgate-admin: 1\r\n\
                    content-type: application/json\r\n";
        Response::read(begin(admin, head, &body)).status
    };
    assert_eq!((look("api"), look("web")), (200, 404));
    folder.write(&text("10/h", "demo:").replace("\"api\"", "\"web\""));
    eventually(|| (look("api"), look("web")) == (404, 200));
}

#[test]
fn without_a_file_there_is_none_to_read_again() {
    let gateway = Gateway::start(&[]);
    gateway.hang_up();
    eventually(|| gateway.logged("asked to read a file again, but there is none"));
    assert_eq!(gateway.get("/").status, 200);
}
