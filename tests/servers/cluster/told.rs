//! What nodes tell of the cluster, by those that never ran in one.

#[path = "../../../src/store/redis/cluster/slot.rs"]
mod slot;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tollgate::{RedisStore, Store as _, StoreErrorKind};

use super::{PLENTY, admitted, hit};
use crate::support::{
    cluster::Cluster,
    fake::{Act, FakeServer, ready},
};

#[tokio::test]
async fn slots_are_those_of_the_specification() {
    assert_eq!(slot::name_slot(b"123456789"), 0x31C3);
    assert_eq!(slot::slot("tg1", b"{foo}:api/burst:tb1s"), 12_182);
    let cluster = Cluster::shared().await;
    for _ in 0..1_000 {
        let letter = || ["{", "}", "a", "b", "ü", ":"][fastrand::usize(..6)];
        let name: String = (0..fastrand::usize(1..9)).map(|_| letter()).collect();
        for whole in [name.clone(), format!("tg1:{name}")] {
            assert_eq!(slot::name_slot(whole.as_bytes()), cluster.slot(&whole), "{whole}");
        }
        let expected = cluster.slot(&format!("tg1:{name}"));
        assert_eq!(slot::slot("tg1", name.as_bytes()), expected, "{name}");
    }
}

/// A server that says this of itself, of all slots.
async fn told(host: &str, more: &str) -> (FakeServer, String) {
    let port = Arc::new(Mutex::new(String::new()));
    let (own, host, more) = (Arc::clone(&port), host.to_owned(), more.to_owned());
    let server = FakeServer::start(move |command| match command[0].as_str() {
        "CLUSTER" => {
            let port = own.lock().unwrap();
            let parts = if more.is_empty() { 3 } else { 4 };
            Act::Reply(
                format!(
                    "*1\r\n*3\r\n:0\r\n:16383\r\n*{parts}\r\n{host}:{port}\r\n$2\r\nid\r\n{more}"
                )
                .into_bytes(),
            )
        }
        "EVALSHA" if command[2] == "1" => Act::Reply(b"*2\r\n:1700000000000000\r\n:0\r\n".to_vec()),
        _ => ready(command),
    })
    .await;
    let url = server.url();
    url.rsplit(':').next().unwrap().clone_into(&mut port.lock().unwrap());
    (server, url.replace("redis://", "redis+cluster://"))
}

#[tokio::test]
async fn a_host_that_is_not_told_is_the_one_that_was_asked() {
    let ip = "*2\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n";
    for (host, more) in [
        ("$9\r\n127.0.0.1\r\n", ""),
        ("$9\r\nlocalhost\r\n", "*0\r\n"),
        ("$0\r\n\r\n", ""),
        ("$-1\r\n", "*0\r\n"),
        ("$1\r\n?\r\n", ip),
    ] {
        let (_server, url) = told(host, more).await;
        let store = RedisStore::builder(url).deadline(Duration::from_secs(10));
        let store = store.connect().await.unwrap_or_else(|error| panic!("{host:?}: {error}"));
        assert!(admitted(&store.acquire(&[hit("k", PLENTY)]).await.expect("an answer")));
    }
}

#[tokio::test]
async fn what_cannot_be_told_is_an_error() {
    for (host, more, kind) in [
        ("$1\r\n?\r\n", "", StoreErrorKind::Unreachable),
        ("$1\r\n?\r\n", "*0\r\n", StoreErrorKind::Unreachable),
        (":5\r\n", "", StoreErrorKind::Unexpected),
    ] {
        let (_server, url) = told(host, more).await;
        let error = RedisStore::connect(url).await.expect_err("nobody is told");
        assert_eq!(error.kind(), kind, "{host:?}: {error}");
    }
    for answer in ["*-1\r\n", "*0\r\n", ":1\r\n", "*1\r\n:1\r\n", "+OK\r\n"] {
        let server = FakeServer::start(move |command| match command[0].as_str() {
            "CLUSTER" => Act::Reply(answer.as_bytes().to_vec()),
            _ => ready(command),
        });
        let url = server.await.url().replace("redis://", "redis+cluster://");
        RedisStore::connect(url).await.expect_err("no map");
    }
}
