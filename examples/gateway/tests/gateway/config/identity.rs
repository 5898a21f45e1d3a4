//! Tokens, API keys, and limits by who calls.

use std::{fs, time::SystemTime};

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use tollgate::ApiKeys;

use super::support::Folder;
use crate::{
    proxy::support::{exchange, statuses},
    support::Gateway,
};

const SECRET: &str = "a secret of thirty-two bytes, or more";

#[expect(clippy::disallowed_methods, reason = "a token says when it expires")]
fn token(claims: Value) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    let mut claims = claims;
    claims["exp"] = json!(now.as_secs() + 600);
    claims["iss"] = json!("https://id.example");
    claims["aud"] = json!("api");
    let key = EncodingKey::from_secret(SECRET.as_bytes()).expect("a key");
    encode(&Header::default(), &claims, &key).expect("a token")
}

fn folder(route: &str) -> Folder {
    let folder = Folder::new(&format!(
        r#"
        listen = "127.0.0.1:0"
        [upstream.main]
        url = "demo:"
        [jwt.users]
        secret_file = "jwt.secret"
        issuer = "https://id.example"
        audience = ["api", "other"]
        tier_claim = "plan"
        [api_keys.partners]
        keys = [{{ digest = "{}", owner = "acme", tier = "pro" }}, {{ digest = "{}", owner = "bob" }}]
        [[route]]
        otherwise = true
        upstream = "main"
        policy = "api"
        before_auth = "guesses"
        {route}
        [[route]]
        match = ["/partners"]
        upstream = "main"
        auth = "partners"
        [[route]]
        match = ["/users"]
        upstream = "main"
        auth = "users"
        [[policy]]
        name = "api"
        [[policy.limit]]
        name = "caller"
        key = "claim:sub or known_key or ip"
        quota = "2/h"
        tiers = {{ pro = "4/h" }}
        [[policy]]
        name = "guesses"
        limit = [{{ name = "attempts", key = "ip", quota = "30/h" }}]
        "#,
        ApiKeys::digest("the key of acme"),
        ApiKeys::digest("the key of bob"),
    ));
    fs::write(folder.path("jwt.secret"), format!("{SECRET}\n")).expect("it can be written");
    folder
}

fn ask(gateway: &Gateway, path: &str, fields: &str) -> (u16, String) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    let answer = exchange(gateway, head);
    (statuses(&answer)[0], answer)
}

fn times(gateway: &Gateway, fields: &str, count: usize) -> Vec<u16> {
    (0..count).map(|_| ask(gateway, "/", fields).0).collect()
}

fn bearer(claims: Value) -> String {
    format!("Authorization: Bearer {}\r\n", token(claims))
}

#[test]
fn each_caller_has_a_limit_by_name_and_tier() {
    let gateway = folder(r#"auth = ["users", "partners"]"#).start(&[]);
    assert_eq!(times(&gateway, &bearer(json!({"sub": "alice"})), 3), [200, 200, 429]);
    let pro = bearer(json!({"sub": "carol", "plan": "pro"}));
    assert_eq!(times(&gateway, &pro, 5), [200, 200, 200, 200, 429]);
    assert_eq!(times(&gateway, "X-Api-Key: the key of acme\r\n", 5), [200, 200, 200, 200, 429]);
    assert_eq!(times(&gateway, "X-Api-Key: the key of bob\r\n", 3), [200, 200, 429]);
}

#[test]
fn nobody_passes_without_a_name_and_guesses_are_counted() {
    let gateway = folder(r#"auth = ["users", "partners"]"#).start(&[]);
    let (status, answer) = ask(&gateway, "/", "");
    assert_eq!(status, 401);
    assert!(answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
    assert!(answer.contains("www-authenticate: ApiKey\r\n"), "{answer}");
    assert!(answer.ends_with("a token or an API key is needed\n"), "{answer}");
    for wrong in ["Authorization: Bearer x.y.z\r\n", "X-Api-Key: a guess\r\n"] {
        assert_eq!(ask(&gateway, "/", wrong).0, 401, "{wrong}");
        // Nor with a right one beside it.
        let both = format!("{wrong}X-Api-Key: the key of bob\r\n");
        assert!(matches!(ask(&gateway, "/", &both).0, 400 | 401), "{both}");
    }
    assert_eq!(times(&gateway, "X-Api-Key: a guess\r\n", 26)[24..], [401, 429]);
    // Before authentication, all of an address count as one; other routes have no such limit.
    assert_eq!(ask(&gateway, "/", "X-Api-Key: the key of bob\r\n").0, 429);
    assert_eq!(ask(&gateway, "/partners", "X-Api-Key: the key of bob\r\n").0, 200);
}

#[test]
fn a_route_may_take_one_way_only() {
    let gateway = folder(r#"auth = ["users", "partners"]"#).start(&[]);
    let (token, key) = (bearer(json!({"sub": "alice"})), "X-Api-Key: the key of bob\r\n");
    assert_eq!(ask(&gateway, "/users", &token).0, 200);
    assert_eq!(ask(&gateway, "/users", key).0, 401);
    assert_eq!(ask(&gateway, "/partners", key).0, 200);
    let (status, answer) = ask(&gateway, "/partners", &token);
    assert_eq!(status, 401);
    assert!(answer.contains("www-authenticate: ApiKey"), "{answer}");
}

#[test]
fn anonymous_callers_count_by_address_where_they_may() {
    let gateway = folder("auth = [\"users\", \"partners\"]\nanonymous = true").start(&[]);
    assert_eq!(times(&gateway, "", 3), [200, 200, 429]);
    assert_eq!(times(&gateway, &bearer(json!({"sub": "alice"})), 3), [200, 200, 429]);
    assert_eq!(ask(&gateway, "/", "X-Api-Key: a guess\r\n").0, 401, "a wrong one is not none");
}

#[test]
fn keys_are_known_by_their_digests() {
    let mut command = crate::support::gateway(&["--digest"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it can be run");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"the key of acme\n").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), ApiKeys::digest("the key of acme"));
}

/// Without a policy the page still tells what came; keys are not shown, whatever the name of their header.
#[test]
fn the_page_shows_no_key() {
    let folder = Folder::new(&format!(
        r#"
        listen = "127.0.0.1:0"
        [upstream.main]
        url = "demo:"
        [api_keys.partners]
        header = "x-partner"
        keys = [{{ digest = "{}", owner = "acme" }}]
        [[route]]
        otherwise = true
        upstream = "main"
        auth = "partners"
        "#,
        ApiKeys::digest("s3cret"),
    ));
    let gateway = folder.start(&["--admin", "127.0.0.1:0"]);
    let (status, answer) = ask(&gateway, "/", "X-Partner: s3cret\r\nX-Colour: blue\r\n");
    assert_eq!(status, 200, "{answer}");
    let link = format!("live page  http://{}/\n", gateway.admin.expect("an admin listener"));
    for part in
        ["hello, no limit applies here\n", "  x-colour: blue\n", "  x-partner: (not shown)\n"]
    {
        assert!(answer.contains(part), "{part:?} is missing in:\n{answer}");
    }
    assert!(answer.ends_with(&link) && !answer.contains("s3cret"), "{answer}");
}
