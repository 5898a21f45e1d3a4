//! Keys that an issuer publishes, and that change.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::SystemTime,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;

use super::support::Folder;
use crate::{
    port::free_port,
    proxy::support::{exchange, statuses},
    support::{Gateway, eventually},
};

/// Publishes one key at a time, or nothing.
struct Issuer {
    port: u16,
    key: Arc<Mutex<Option<&'static str>>>,
    asked: Arc<AtomicUsize>,
}

fn secret(name: &str) -> String {
    format!("a secret of thirty-two bytes, or more: {name}")
}

impl Issuer {
    fn new(port: u16, key: Option<&'static str>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let issuer = Self { port, key: Arc::new(Mutex::new(key)), asked: Arc::default() };
        let (key, asked) = (Arc::clone(&issuer.key), Arc::clone(&issuer.asked));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                asked.fetch_add(1, Ordering::SeqCst);
                let answer = match *key.lock().expect("a lock") {
                    Some(name) => {
                        let k = BASE64_URL_SAFE_NO_PAD.encode(secret(name));
                        let key = json!({"kty": "oct", "kid": name, "alg": "HS256", "k": k});
                        let body = json!({ "keys": [key] }).to_string();
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                    }
                    None => "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned(),
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        issuer
    }

    fn publish(&self, key: Option<&'static str>) {
        *self.key.lock().expect("a lock") = key;
    }
}

fn start(port: u16) -> Gateway {
    let folder = Folder::new(&format!(
        r#"
        listen = "127.0.0.1:0"
        upstream.main.url = "demo:"
        route = [{{ otherwise = true, upstream = "main", auth = "users" }}]
        [jwt.users]
        jwks = "http://127.0.0.1:{port}/keys"
        jwks_pause = "1s"
        algorithms = ["HS256"]
        "#
    ));
    folder.start(&[])
}

#[expect(clippy::disallowed_methods, reason = "a token says when it expires")]
fn ask(gateway: &Gateway, kid: &str, key: &str) -> u16 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    let header = Header { kid: Some(kid.to_owned()), ..Header::default() };
    let claims = json!({"sub": "alice", "exp": now.as_secs() + 600});
    let key = EncodingKey::from_secret(secret(key).as_bytes()).expect("a key");
    let token = encode(&header, &claims, &key).expect("a token");
    let head = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    statuses(&exchange(gateway, head))[0]
}

#[test]
fn a_key_that_is_new_is_found_by_its_name() {
    let issuer = Issuer::new(0, Some("first"));
    let gateway = start(issuer.port);
    assert_eq!(ask(&gateway, "first", "first"), 200);
    assert_eq!(ask(&gateway, "first", "another"), 401, "the name alone is worth nothing");
    issuer.publish(Some("second"));
    eventually(|| ask(&gateway, "second", "second") == 200);
    assert_eq!(ask(&gateway, "first", "first"), 401, "it is not published any more");
}

#[test]
fn names_that_somebody_has_made_up_do_not_trouble_the_issuer() {
    let issuer = Issuer::new(0, Some("first"));
    let gateway = start(issuer.port);
    assert_eq!(ask(&gateway, "first", "first"), 200);
    let before = issuer.asked.load(Ordering::SeqCst);
    assert!((0..200).all(|at| ask(&gateway, &format!("made up {at}"), "first") == 401));
    let asked = issuer.asked.load(Ordering::SeqCst) - before;
    // One for each second that this takes.
    assert!(asked <= 21, "{asked} times");
    assert_eq!(ask(&gateway, "first", "first"), 200);
}

#[test]
fn keys_stay_in_use_while_the_issuer_fails() {
    let port = free_port();
    let gateway = start(port);
    assert_eq!(ask(&gateway, "first", "first"), 503, "nobody can tell, which is no client's fault");
    let issuer = Issuer::new(port, Some("first"));
    eventually(|| ask(&gateway, "first", "first") == 200);
    issuer.publish(None);
    let asked = issuer.asked.load(Ordering::SeqCst);
    // A name that is not known has it asked, in vain.
    eventually(|| {
        let refused = ask(&gateway, "second", "second");
        assert!(matches!(refused, 401 | 503), "{refused}");
        issuer.asked.load(Ordering::SeqCst) > asked
    });
    assert_eq!(ask(&gateway, "first", "first"), 200);
}
