//! Errors and the log say which node they are about.

use std::time::Duration;

use tokio::time::timeout;
use tollgate::{Limit, Limiter, RedisStore, Store as _, StoreErrorKind};

use super::{PATIENCE, PLENTY, builder, connect, hit, until};
use crate::support::{
    Log,
    cluster::Cluster,
    fake::{Act, FakeServer, ready},
};

fn address(cluster: &Cluster, at: usize) -> String {
    format!("127.0.0.1:{}", cluster.node(at).port())
}

#[tokio::test]
async fn a_node_that_fails_is_named_by_its_errors_and_by_its_breaker() {
    let log = Log::local();
    let mut cluster = Cluster::start(3, 0).await;
    let store = builder(&cluster).deadline(Duration::from_millis(300));
    let store = store.connect().await.expect("a cluster");
    let limiter = Limiter::new(store.clone());
    let key = cluster.key_on(1, |at| format!("{{k{at}}}"));
    let (limit, place) = (Limit::new("all", PLENTY), address(&cluster, 1));
    let part = store.shard(key.as_bytes());
    assert_eq!(store.shard_name(part).expect("a node"), place);
    assert_eq!(store.shard_name(99), None);

    cluster.node(1).freeze();
    let asked = timeout(PATIENCE, store.acquire(&[hit(&key, PLENTY)])).await.expect("no hang");
    let error = asked.expect_err("it stands still");
    assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
    assert!(error.to_string().starts_with(&format!("timeout: {place}: ")), "{error}");
    // So is one of several nodes.
    let well = cluster.key_on(0, |at| format!("{{k{at}}}"));
    let hits = [hit(&well, PLENTY), hit(&key, PLENTY)];
    let error = timeout(PATIENCE, store.acquire(&hits)).await.expect("no hang");
    let error = error.expect_err("it stands still").to_string();
    assert!(error.contains(&place), "{error}");

    cluster.kill(1);
    until("it is refused", async || {
        let error = store.acquire(&[hit(&key, PLENTY)]).await.expect_err("nobody is there");
        error.kind() == StoreErrorKind::Unreachable
            && error.to_string().starts_with(&format!("unreachable: {place}: "))
    })
    .await;
    // Its own name, which the limiter hashes.
    let names: Vec<String> = (0..60).map(|at| format!("somebody {at}")).collect();
    until("its breaker opens", async || {
        for name in &names {
            _ = limiter.check(&limit, name.as_str()).await;
        }
        !log.with("the breaker opens").is_empty()
    })
    .await;
    let line = log.with("the breaker opens").remove(0).to_string();
    assert!(line.contains(&place) && line.contains("shard="), "{line}");
}

#[tokio::test]
async fn a_key_that_holds_something_else_is_told_with_its_node() {
    let cluster = Cluster::start(2, 0).await;
    let store = connect(&cluster).await;
    for at in 0..2 {
        let key = cluster.key_on(at, |at| format!("{{k{at}}}"));
        let prefix = format!("{store:?}").split('"').nth(1).expect("a prefix").to_owned();
        cluster.node(at).command(&["LPUSH", &format!("{prefix}:{key}"), "x"]);
        let place = address(&cluster, at);
        // Alone, and with others.
        let replies: Vec<_> = (0..3).map(|_| store.acquire(&[hit(&key, PLENTY)])).collect();
        for reply in replies {
            let error = timeout(PATIENCE, reply).await.expect("no hang").expect_err("a list");
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            assert!(error.to_string().contains(&place), "{error}");
            assert!(!error.to_string().contains("{k"), "{error}");
        }
    }
}

/// A node that answers so, and is all of the cluster.
async fn node(answer: impl Fn(u16) -> String + Send + Sync + 'static) -> (FakeServer, String) {
    let port = std::sync::Arc::new(std::sync::atomic::AtomicU16::new(0));
    let own = std::sync::Arc::clone(&port);
    let server = FakeServer::start(move |command| {
        let port = own.load(std::sync::atomic::Ordering::SeqCst);
        match command[0].as_str() {
            "CLUSTER" => Act::Reply(
                format!(
                    "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$2\r\nid\r\n"
                )
                .into_bytes(),
            ),
            "EVALSHA" if command[2] == "1" => Act::Reply(answer(port).into_bytes()),
            _ => ready(command),
        }
    })
    .await;
    let url = server.url();
    let own = url.rsplit(':').next().expect("a port").parse().expect("a port");
    port.store(own, std::sync::atomic::Ordering::SeqCst);
    (server, url.replace("redis://", "redis+cluster://:s3cret@"))
}

#[tokio::test]
async fn what_a_node_says_is_told_once_and_in_words_that_fit() {
    for (answer, says) in [
        ("-MOVED 7 127.0.0.1:PORT\r\n", "send a request to each other"),
        ("-MOVED 7 ?:0\r\n", "whose address it does not know"),
        ("-CLUSTERDOWN Hash slot not served\r\n", "CLUSTERDOWN Hash slot not served"),
    ] {
        let (server, url) = node(|port| answer.replace("PORT", &port.to_string())).await;
        let store = RedisStore::builder(&url).deadline(Duration::from_millis(500));
        let store = store.connect().await.expect("a cluster");
        let asked = async {
            loop {
                let error = store.acquire(&[hit("k", PLENTY)]).await.expect_err("nobody decides");
                // Its time may be over while it is under way once more.
                if error.kind() != StoreErrorKind::Timeout {
                    return error;
                }
            }
        };
        let error = timeout(PATIENCE, asked).await.expect("it is told");
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        let (text, place) = (error.to_string(), server.url().replace("redis://", ""));
        assert!(text.starts_with(&format!("unreachable: {place}: ")), "{text}");
        assert!(text.contains(says) && !text.contains("s3cret"), "{text}");
        for kind in ["unreachable: ", "misconfigured: ", "busy: ", &*place] {
            assert!(text.matches(kind).count() <= 1, "{text}");
        }
        assert!(!text.contains("`redis+cluster://`"), "{text}");
    }
}
