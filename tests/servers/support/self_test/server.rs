use std::{net::TcpListener, thread, time::Duration};

use super::{connect, is_silent, receive, send};
use crate::support::{Connection, RedisServer, binary};

#[tokio::test]
async fn a_killed_server_refuses_and_restarts_empty_on_its_port() {
    let mut server = RedisServer::start().await;
    let url = server.url();
    server.command(&["SET", "k", "v"]);
    assert_eq!(server.command(&["MGET", "k", "none"]), "v\n(nil)");

    server.kill();
    assert!(connect(server.port()).await.is_err());
    server.restart().await;

    assert_eq!(server.url(), url);
    assert_eq!(server.command(&["GET", "k"]), "(nil)");
    server.command(&["DEBUG", "SLEEP", "0"]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"]);
    assert_eq!(server.command(&["DBSIZE"]), "0", "the kept connection is opened anew");
}

#[tokio::test]
async fn dropping_a_server_ends_it_also_if_frozen() {
    let server = RedisServer::start().await;
    let port = server.port();
    let dir = server.command(&["CONFIG", "GET", "dir"]).replace("dir\n", "");
    assert!(std::fs::exists(&dir).unwrap());

    server.freeze();
    drop(server);

    assert!(connect(port).await.is_err());
    assert!(!std::fs::exists(&dir).unwrap());
}

#[tokio::test]
async fn a_frozen_server_answers_once_thawed() {
    let server = RedisServer::start().await;
    let mut stream = connect(server.port()).await.unwrap();

    server.freeze();
    send(&mut stream, "PING").await;
    assert!(is_silent(&stream).await);
    server.thaw();

    assert_eq!(receive(&mut stream).await, "+PONG\r\n");
}

#[tokio::test]
async fn the_control_connection_outlives_a_change_of_password() {
    let server = RedisServer::start_with(&["--requirepass", "x"]).await;
    assert_eq!(server.url(), format!("redis://:x@127.0.0.1:{}", server.port()));
    let mut stranger = Connection::open(server.port(), None).unwrap();
    let error = stranger.call(&["PING"]).unwrap().unwrap_err();
    assert!(error.starts_with("NOAUTH"), "{error}");

    server.command(&["CONFIG", "SET", "requirepass", "y"]);

    assert!(server.connection().call(&["PING"]).unwrap().is_err());
    assert_eq!(server.command(&["PING"]), "PONG");
}

#[tokio::test]
async fn a_busy_server_says_so_until_its_script_is_killed() {
    let server = RedisServer::start().await;
    server.command(&["CONFIG", "SET", "lua-time-limit", "5"]);
    let mut busy = server.connection();
    busy.send(&["EVAL", "while true do end", "0"]).unwrap();
    thread::sleep(Duration::from_millis(50));

    let error = server.try_command(&["PING"]).unwrap_err();
    assert!(error.starts_with("BUSY"), "{error}");
    server.command(&["SCRIPT", "KILL"]);

    assert!(busy.receive().unwrap().is_err());
    assert_eq!(server.command(&["PING"]), "PONG");
}

#[tokio::test]
async fn a_restart_waits_for_whoever_took_the_port() {
    let mut server = RedisServer::start().await;
    server.kill();
    let listener = TcpListener::bind(("127.0.0.1", server.port())).unwrap();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        drop(listener);
    });

    server.restart().await;

    assert_eq!(server.command(&["PING"]), "PONG");
}

/// Servers used to die with the thread, hence with the test, that started them.
#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(RedisServer::start())
    };
    let server = thread::spawn(start).join().unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(server.command(&["PING"]), "PONG");
}

#[tokio::test]
async fn the_version_is_read() {
    let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64";
    assert_eq!(binary::parse_version(redis), Some((7, 0)));
    assert_eq!(binary::parse_version("Valkey server v=9.1.2 sha=0"), Some((9, 1)));
    assert_eq!(binary::parse_version("something else"), None);
    assert_eq!(binary::parse_name(redis), Some("Redis 7.0.15".to_owned()));
    assert_eq!(binary::parse_name("something else"), None);
    assert!(RedisServer::start().await.version() >= (6, 0));
}
