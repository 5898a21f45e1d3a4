use std::time::{Duration, Instant};

use super::{SOON, ask, connect, is_silent, receive, send};
use crate::support::{Proxy, RedisServer};

async fn pair() -> (RedisServer, Proxy) {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.port()).await;
    (server, proxy)
}

#[tokio::test]
async fn cutting_closes_open_connections_only() {
    let (_server, proxy) = pair().await;
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
    let mut stream = connect(proxy.port()).await.unwrap();
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");

    proxy.cut();
    assert_eq!(receive(&mut stream).await, "");

    let mut stream = connect(proxy.port()).await.unwrap();
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");
    assert_eq!(proxy.accepted(), 2);
    drop(proxy);
    assert_eq!(receive(&mut stream).await, "");
}

#[tokio::test]
async fn a_reply_is_cut_midway_once() {
    let (_server, proxy) = pair().await;
    let mut stream = connect(proxy.port()).await.unwrap();
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");

    proxy.cut_next_reply_midway();
    assert_eq!(ask(&mut stream, "ECHO 12345678").await, "$8\r\n123");
    assert_eq!(receive(&mut stream).await, "");

    let mut stream = connect(proxy.port()).await.unwrap();
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");
}

#[tokio::test]
async fn each_direction_is_delayed() {
    const DELAY: Duration = Duration::from_millis(100);
    let (_server, proxy) = pair().await;
    let mut stream = connect(proxy.port()).await.unwrap();
    proxy.delay(DELAY);
    assert!(round_trip(&mut stream).await >= 2 * DELAY);
    proxy.delay_requests(Duration::ZERO);
    assert!(round_trip(&mut stream).await >= DELAY);
    proxy.delay_replies(Duration::ZERO);
    assert!(round_trip(&mut stream).await < DELAY);

    proxy.jitter(DELAY);
    for number in 0..20 {
        send(&mut stream, &format!("ECHO {number:02}")).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let expected: String = (0..20).map(|number| format!("$2\r\n{number:02}\r\n")).collect();
    let mut replies = String::new();
    while replies.len() < expected.len() {
        replies.push_str(&receive(&mut stream).await);
    }
    assert_eq!(replies, expected, "jitter keeps the order");
}

async fn round_trip(stream: &mut tokio::net::TcpStream) -> Duration {
    let begun = Instant::now();
    assert_eq!(ask(stream, "PING").await, "+PONG\r\n");
    begun.elapsed()
}

#[tokio::test]
async fn a_swallowed_reply_closes_the_connection_in_the_end() {
    let (server, proxy) = pair().await;
    let mut stream = connect(proxy.port()).await.unwrap();

    proxy.swallow_replies(true);
    send(&mut stream, "INCR k").await;
    assert!(is_silent(&stream).await);
    let arrived = async {
        while server.command(&["GET", "k"]) != "1" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, arrived).await.expect("the request arrives");
    assert!(is_silent(&stream).await);
    proxy.swallow_replies(false);

    assert_eq!(receive(&mut stream).await, "");
}

#[tokio::test]
async fn a_black_hole_holds_what_was_sent() {
    let (server, proxy) = pair().await;

    proxy.black_hole(true);
    let mut stream = connect(proxy.port()).await.unwrap();
    send(&mut stream, "INCR k").await;
    assert!(is_silent(&stream).await);
    assert_eq!(server.command(&["GET", "k"]), "(nil)");
    proxy.black_hole(false);

    assert_eq!(receive(&mut stream).await, ":1\r\n");
}

#[tokio::test]
async fn refusing_leaves_open_connections_alone() {
    let (_server, mut proxy) = pair().await;
    let mut stream = connect(proxy.port()).await.unwrap();
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");

    proxy.refuse(true).await;
    assert!(connect(proxy.port()).await.is_err());
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");
    proxy.refuse(false).await;

    let mut stream = connect(proxy.port()).await.unwrap();
    assert_eq!(ask(&mut stream, "PING").await, "+PONG\r\n");
    assert_eq!(proxy.accepted(), 2);
}
