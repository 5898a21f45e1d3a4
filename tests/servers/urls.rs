//! How URLs name a server, a database and a user.

use std::fmt::Write as _;

use tempfile::TempDir;
use tollgate::{Limit, Limiter, Quota, RedisStore, StoreErrorKind};

use crate::support::RedisServer;

const USER: &str = "a@b:c/d#e%f+ü?";
const PASSWORD: &str = "p@:/#%+ ü?&=;\"'[]\\";

/// Everything that is no letter or digit, as `%40`.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() {
            encoded.push(byte.into());
        } else {
            _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// Whether a limit is kept through this URL in that database of the server, and in no other.
async fn counts_in(server: &RedisServer, url: &str, database: u32) {
    server.command(&["FLUSHALL"]);
    let store = RedisStore::connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let (limiter, limit) = (Limiter::new(store), Limit::new("all", Quota::per_hour(1)));
    assert!(limiter.check(&limit, "somebody").await.expect("an answer").is_allowed());
    assert!(!limiter.check(&limit, "somebody").await.expect("an answer").is_allowed());
    let keys = server.command(&["INFO", "keyspace"]);
    let databases: Vec<_> = keys.lines().filter(|line| line.starts_with("db")).collect();
    assert_eq!(databases.len(), 1, "{databases:?}");
    assert!(databases[0].starts_with(&format!("db{database}:keys=1,")), "{databases:?}");
}

#[tokio::test]
async fn a_url_names_the_host_and_the_database() {
    let server = RedisServer::start().await;
    let port = server.port();
    counts_in(&server, &format!("redis://127.0.0.1:{port}"), 0).await;
    counts_in(&server, &format!("redis://localhost:{port}/"), 0).await;
    counts_in(&server, &format!("redis://127.0.0.1:{port}/0"), 0).await;
    counts_in(&server, &format!("redis://127.0.0.1:{port}/15"), 15).await;
    counts_in(&server, &format!("valkey://127.0.0.1:{port}/7"), 7).await;
    counts_in(&server, &format!("REDIS://127.0.0.1:{port}/2"), 2).await;
    let error = RedisStore::connect(format!("redis://127.0.0.1:{port}/16")).await;
    let error = error.expect_err("there are 16 databases");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn a_url_names_a_socket_of_the_system() {
    let folder = TempDir::with_prefix("tollgate url ü ").expect("a folder");
    let socket = folder.path().join("redis.sock").to_str().expect("a path").to_owned();
    let server = RedisServer::start_with(&["--unixsocket", &socket]).await;
    server.command(&["ACL", "SETUSER", USER, "on", &format!(">{PASSWORD}"), "~*", "+@all"]);
    let (user, password) = (encoded(USER), encoded(PASSWORD));
    let path = encoded(&socket).replace("%2F", "/");
    for scheme in ["redis+unix", "valkey+unix", "unix"] {
        counts_in(&server, &format!("{scheme}://{path}"), 0).await;
        counts_in(&server, &format!("{scheme}://{path}?db=3"), 3).await;
        let login = format!("user={user}&pass={password}");
        counts_in(&server, &format!("{scheme}://{path}?db=4&{login}"), 4).await;
    }
    let wrong = format!("unix://{path}?user={user}&pass=wrong");
    let error = RedisStore::connect(wrong).await.expect_err("the password is wrong");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    let error = RedisStore::connect(format!("unix://{path}x")).await.expect_err("no such file");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn a_url_names_a_user_and_a_password_of_any_characters() {
    let server = RedisServer::start().await;
    let port = server.port();
    server.command(&["ACL", "SETUSER", USER, "on", &format!(">{PASSWORD}"), "~*", "+@all"]);
    let login = format!("{}:{}", encoded(USER), encoded(PASSWORD));
    counts_in(&server, &format!("redis://{login}@127.0.0.1:{port}/1"), 1).await;
    counts_in(&server, &format!("valkey://{login}@127.0.0.1:{port}"), 0).await;
    // Those that end nothing may stand as they are.
    let login = format!("{}:p%40%3A%2F%23%25+ ü%3F&=;\"'%5B%5D%5C", encoded(USER));
    counts_in(&server, &format!("redis://{login}@127.0.0.1:{port}"), 0).await;

    server.command(&["ACL", "SETUSER", "bare", "on", "nopass", "~none", "+@all"]);
    let error = {
        let store = RedisStore::connect(format!("redis://bare@127.0.0.1:{port}")).await;
        let limiter = Limiter::new(store.expect("a user without a password"));
        limiter.check(&Limit::new("all", Quota::per_hour(1)), "x").await
    };
    let error = error.expect_err("this user has no right to the key");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");

    server.command(&["CONFIG", "SET", "requirepass", PASSWORD]);
    let error = RedisStore::connect(format!("redis://127.0.0.1:{port}")).await;
    assert_eq!(error.expect_err("no password").kind(), StoreErrorKind::Misconfigured);
    server.command(&["AUTH", PASSWORD]);
    counts_in(&server, &format!("redis://:{}@127.0.0.1:{port}", encoded(PASSWORD)), 0).await;
}

#[test]
fn a_url_that_cannot_be_used_is_an_error_that_says_what_is_expected() {
    let cases: [(&str, &[&str]); 22] = [
        ("", &["must begin with", "`redis://`"]),
        ("localhost", &["must begin with", "`redis://`"]),
        ("redis:127.0.0.1", &["must begin with", "`redis://`"]),
        ("http://127.0.0.1/", &["`http`", "`redis://`", "`rediss://`", "`redis+unix://`"]),
        ("://127.0.0.1/", &["no scheme", "`redis://`"]),
        ("redis://", &["`redis://[user][:password@]host[:port][/database]`"]),
        ("redis://:6379/", &["`redis://[user]"]),
        ("redis://127.0.0.1:word/", &["`redis://[user]"]),
        ("redis://127.0.0.1:70000/", &["port that is no number up to 65535", "`redis://[user]"]),
        ("redis://127.0.0.1/words", &["database that is not a number", "`redis://[user]"]),
        ("valkey://127.0.0.1/-1", &["`valkey://[user]", "/database"]),
        ("redis://127.0.0.1/?db=1", &["unknown setting", "`redis://[user]"]),
        ("redis://:a%zz@127.0.0.1/", &["`%`", "hexadecimal", "`%25`"]),
        ("redis://:a%4", &["`%`", "hexadecimal", "`%25`"]),
        ("redis://:%@127.0.0.1", &["`%`", "hexadecimal", "`%25`"]),
        ("redis://127.0.0.1/?protocol=4", &["protocol"]),
        ("redis://127.0.0.1/#insecure", &["`#`", "`%23`"]),
        ("redis://0.0.0.0/", &["wildcard"]),
        ("unix://", &["`unix:///path[?db=number&user=name&pass=password]`"]),
        ("unix://run/redis.sock", &["`unix:///path"]),
        ("redis+unix:///run/redis.sock?database=1", &["`redis+unix:///path"]),
        ("unix:///run/redis.sock?db=-1", &["-1", "negative"]),
    ];
    for (url, parts) in cases {
        let error = RedisStore::builder(url).connect_lazy().expect_err(url);
        println!("{url}: {error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "`{part}` is not in `{error}` for {url}");
        }
    }
}

#[test]
fn no_url_that_cannot_be_used_shows_its_password() {
    for url in [
        "redis://:hunter2",
        "redis://user:hunter2@",
        "redis://:hunter2@host:99999/",
        "redis://:x#hunter2@host",
        "redis://:hunter2@host/words",
        "redis://:hunter2@host/?db=1",
        "redis://:hunter2@host/#insecure",
        "redis://:hunter2@0.0.0.0",
        "redis://h/?pass=hunter2",
        "redis://:a/hunter2@host",
        "redis://:a?hunter2@host",
        "redis:/:hunter2@host",
        "http://:hunter2@host",
        ":hunter2@host",
        "user:hunter2://host",
        "user:hunter2@redis://host",
        "unix://:hunter2@/path",
        "unix:///path?pass=hunter2&pin=1",
        "unix:///path?pass=hunter2&db=-1",
        "redis+unix:///path?pass=hunter2&db=words",
    ] {
        let builder = RedisStore::builder(url);
        assert!(!format!("{builder:?}").contains("hunter2"), "{builder:?}");
        let error = builder.connect_lazy().expect_err(url);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error:?}");
    }
}

#[cfg(not(feature = "redis-sentinel"))]
#[test]
fn without_the_feature_a_url_of_sentinels_is_an_error_that_names_it() {
    for scheme in ["redis+sentinel", "REDISS+sentinel", "valkey+sentinel"] {
        let url = format!("{scheme}://:hunter2@127.0.0.1/mymaster");
        let error = RedisStore::builder(url).connect_lazy().expect_err("no Sentinel").to_string();
        assert!(error.contains(&format!("`{}`", scheme.to_lowercase())), "{error}");
        assert!(error.contains("`redis-sentinel`") && !error.contains("hunter2"), "{error}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn without_the_feature_a_url_with_tls_is_an_error_that_names_it() {
    for scheme in ["rediss", "valkeys", "REDISS"] {
        let url = format!("{scheme}://:hunter2@127.0.0.1/");
        let error = RedisStore::builder(url).connect_lazy().expect_err("no TLS").to_string();
        let scheme = scheme.to_lowercase();
        assert!(error.contains(&format!("`{scheme}`")) && error.contains("`tls`"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[cfg(not(feature = "redis-cluster"))]
#[test]
fn without_the_feature_the_url_of_a_cluster_is_an_error_that_names_it() {
    for scheme in ["redis+cluster", "valkeys+cluster", "REDISS+cluster"] {
        let url = format!("{scheme}://:hunter2@a,b/");
        let error = RedisStore::builder(url).connect_lazy().expect_err("no clusters").to_string();
        let scheme = scheme.to_lowercase();
        let names = error.contains(&format!("`{scheme}`")) && error.contains("`redis-cluster`");
        assert!(names, "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
