//! Wrong arguments end the program with status 2 and a message that says what would be right.

use crate::support::{Gateway, run};

fn rejected(args: &[&str], parts: &[&str]) {
    let output = run(args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{args:?}: {part:?} is missing in:\n{message}");
    }
}

#[test]
fn limits_out_of_bounds() {
    rejected(&["--limit", "0/10s"], &["'0/10s'", "--limit", "the quantity must be at least 1"]);
    rejected(&["--limit", "5/0s"], &["'5/0s'", "the period must be longer than 0"]);
    rejected(&["--limit", "5/4000d"], &["'5/4000d'", "at most 10 years"]);
    rejected(&["--limit", "2000000000/s"], &["'2000000000/s'", "must be at most 1000000000"]);
    rejected(&["--limit", "99999999999999999999/s"], &["must be at most 1000000000"]);
}

#[test]
fn limits_of_another_form() {
    for text in ["5", "/", "5/", "/s", "5/10", "5/fortnight", "-5/s", "+5/s", "5/1.5s", "5/10s/2"] {
        rejected(&[&format!("--limit={text}")], &[text, "such as 5/10s or 100/m"]);
    }
}

#[test]
fn others() {
    rejected(&["--listen", "nowhere"], &["'nowhere'", "such as 127.0.0.1:8080"]);
    rejected(
        &["--redis", "http://localhost/"],
        &["--redis", "`http`", "`redis://`", "is expected"],
    );
    rejected(&["--redis", "localhost"], &["--redis", "must begin with a scheme, as in `redis://`"]);
    rejected(&["--trust", "10.0.0.0/99"], &["\"10.0.0.0/99\"", "a range such as `10.0.0.0/8`"]);
    rejected(&["--on-failure", "panic"], &["'panic'", "allow, deny, local"]);
    rejected(&["--log-format", "xml"], &["'xml'", "pretty, json"]);
    rejected(&["--on-failure", "local:2"], &["a local share of 2", "at most 1"]);
}

/// A URL may hold a password.
#[test]
fn a_wrong_url_is_not_shown() {
    let output = run(&["--redis", "redis://:s3cret@host:port/"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(!message.contains("s3cret"), "{message}");
}

#[test]
fn a_port_that_is_taken() {
    let first = Gateway::start(&[]);
    let address = first.address.to_string();
    let output = run(&["--listen", &address]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(&format!("cannot listen on {address}")), "{message}");
}

/// Logs keep what a program says of its arguments.
#[test]
fn passwords_in_urls_are_not_shown() {
    for url in
        ["http://u:hunter2@127.0.0.1:1/", "ftp://u:hunter2@a", "u:hunter2@a", "h2://u:hunter2@a"]
    {
        let output = run(&["--upstream", url]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{url}");
        assert!(!message.contains("hunter2"), "{url}: {message}");
        assert!(message.contains("user"), "{url}: {message}");
    }
}
