//! Servers that are too old, or lack the scripts: refused at the start, and by the first request.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tollgate::{Limit, Limiter, Quota, RedisStore, StoreError, StoreErrorKind};

use crate::support::{
    RedisServer,
    fake::{Act, FakeServer, bulk, hello, ready},
};

const UNKNOWN: &[u8] = b"-ERR unknown command `HELLO`, with args beginning with: \r\n";

fn limit() -> Limit {
    Limit::new("all", Quota::per_second(1_000))
}

/// The error of a store that connects now, and that of the first request of one that does not.
async fn refused(url: &str) -> StoreError {
    let error = RedisStore::connect(url).await.expect_err("it is refused");
    println!("{error}");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    let store = RedisStore::builder(url).deadline(std::time::Duration::from_secs(5));
    let store = store.connect_lazy().expect("nothing is asked yet");
    let first = Limiter::new(store).check(&limit(), "somebody").await.expect_err("it is refused");
    assert_eq!((first.kind(), first.to_string()), (error.kind(), error.to_string()));
    error
}

/// A server that answers `HELLO` and `INFO` so.
async fn server(hello: Vec<u8>, info: Vec<u8>) -> FakeServer {
    FakeServer::start(move |command| match command[0].as_str() {
        "HELLO" => Act::Reply(hello.clone()),
        "INFO" => Act::Reply(info.clone()),
        "EVALSHA" if command[2] == "1" => Act::Reply(b"*2\r\n:1700000000000000\r\n:0\r\n".to_vec()),
        _ => ready(command),
    })
    .await
}

async fn works(hello: Vec<u8>, info: Vec<u8>) {
    let server = server(hello, info).await;
    let limiter = Limiter::new(RedisStore::connect(server.url()).await.expect("it is taken"));
    assert!(limiter.check(&limit(), "somebody").await.expect("an answer").is_allowed());
}

fn version(number: &str) -> Vec<u8> {
    bulk(&format!("# Server\r\nredis_version:{number}\r\nredis_mode:standalone\r\n"))
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_with_both_versions() {
    let cases = [
        (hello("redis", "6.0.16"), version("6.0.16"), "6.0.16"),
        (hello("redis", "6.1.240"), version("6.1.240"), "6.1.240"),
        // From before `HELLO`.
        (UNKNOWN.to_vec(), version("5.0.7"), "5.0.7"),
        (UNKNOWN.to_vec(), version("2.6.17"), "2.6.17"),
    ];
    for (hello, info, found) in cases {
        let error = refused(&server(hello, info).await.url()).await.to_string();
        assert!(error.contains(&format!("Redis {found}:")) && error.contains("6.2"), "{error}");
    }
}

#[tokio::test]
async fn a_server_whose_version_is_not_known_is_taken() {
    let denied = b"-NOPERM this user has no permissions to run the 'info' command\r\n".to_vec();
    works(UNKNOWN.to_vec(), denied.clone()).await;
    works(b"-NOPERM no permissions\r\n".to_vec(), denied.clone()).await;
    // Others have numbers of their own.
    works(hello("keydb", "6.0.1"), denied.clone()).await;
    works(hello("redis", "unstable"), denied.clone()).await;
    works(hello("redis", "6.2.0"), denied.clone()).await;
    works(hello("redis", "10.0.0"), denied.clone()).await;
    works(b"*-1\r\n".to_vec(), denied.clone()).await;
    works(b":7\r\n".to_vec(), denied).await;
    works(UNKNOWN.to_vec(), b"+\r\n".to_vec()).await;
}

#[tokio::test]
async fn the_version_is_asked_for_once_per_connection() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let server = FakeServer::start(move |command| match command[0].as_str() {
        "EVALSHA" if command[2] == "1" => Act::Reply(b"*2\r\n:1700000000000000\r\n:0\r\n".to_vec()),
        name => {
            counter.fetch_add(usize::from(name == "HELLO"), Ordering::SeqCst);
            ready(command)
        }
    })
    .await;
    let limiter = Limiter::new(RedisStore::connect(server.url()).await.expect("a server"));
    for _ in 0..50 {
        limiter.check(&limit(), "somebody").await.expect("an answer");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_server_without_scripts_is_refused_with_the_command_that_is_missing() {
    for (command, name) in
        [("EVALSHA", "`EVALSHA`"), ("EVAL", "`EVAL`"), ("SCRIPT", "`SCRIPT LOAD`")]
    {
        let server = RedisServer::start_with(&["--rename-command", command, ""]).await;
        let error = refused(&server.url()).await.to_string();
        assert!(error.contains(&format!("lacks {name}")) && error.contains("6.2"), "{error}");
    }
}

#[tokio::test]
async fn a_server_without_the_command_that_tells_its_version_is_taken() {
    let server =
        RedisServer::start_with(&["--rename-command", "HELLO", "", "--rename-command", "INFO", ""]);
    let server = server.await;
    let limiter = Limiter::new(RedisStore::connect(server.url()).await.expect("it is taken"));
    assert!(limiter.check(&limit(), "somebody").await.expect("an answer").is_allowed());
}

#[tokio::test]
async fn the_third_version_of_the_protocol_will_do() {
    let server = RedisServer::start().await;
    let url = format!("{}/?protocol=resp3", server.url());
    let limiter = Limiter::new(RedisStore::connect(url).await.expect("a server"));
    let limit = Limit::new("all", Quota::per_hour(1));
    assert!(limiter.check(&limit, "somebody").await.expect("an answer").is_allowed());
    assert!(!limiter.check(&limit, "somebody").await.expect("an answer").is_allowed());
}
