use tollgate::{RedisStore, Store as _, StoreErrorKind};

use super::{PLENTY, admitted, hit};
use crate::support::{RedisServer, cluster::Cluster};

#[tokio::test]
async fn any_node_leads_to_all() {
    let cluster = Cluster::shared().await;
    let hosts = |at: usize| cluster.url_of(at).trim_start_matches("redis://").to_owned();
    // The last node is a replica, and nobody is at the first address.
    let urls = [
        format!("redis+cluster://{}", hosts(5)),
        format!("valkey+cluster://127.0.0.1:1,{}", hosts(1)),
        format!("REDIS+CLUSTER://{},{}/0?protocol=resp3", hosts(0), hosts(2)),
    ];
    for url in urls {
        let store = RedisStore::builder(&url).deadline(std::time::Duration::from_secs(10));
        let store = store.connect().await.unwrap_or_else(|error| panic!("{url}: {error}"));
        for at in 0..20 {
            let key = format!("{{{}}}:{at}", fastrand::u64(..));
            assert!(admitted(&store.acquire(&[hit(&key, PLENTY)]).await.expect("an answer")));
        }
    }
    let store = RedisStore::cluster([cluster.url_of(0), cluster.url_of(3)]);
    assert!(format!("{:?}", store.connect().await.expect("a cluster")).contains("nodes: 3"));
}

#[tokio::test]
async fn what_is_no_cluster_is_refused() {
    let server = RedisServer::start().await;
    let alone = server.url().replace("redis://", "redis+cluster://");
    for (url, says) in [
        ("redis+cluster://a,b/3", "the database 3"),
        ("redis+cluster://:s3cret@a,:s3cret@b", "more than one `@`"),
        ("redis+cluster://u:p@a:1,b:x", "a port that is no number"),
        ("redis+cluster://", "no host"),
        (
            "redis+cluster://a,,b",
            "node 2 of the Redis Cluster: the URL of the Redis server has no host",
        ),
        ("redis+cluster://a?x=1", "an unknown setting"),
        (alone.as_str(), "and not a node of a cluster: its URL has `redis://`"),
    ] {
        let error = RedisStore::connect(url).await.expect_err(url);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{url}: {error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
    }
    let none: [&str; 0] = [];
    for urls in [&none[..], &["redis://a", "rediss://b"], &["redis://:x@a", "redis://:y@b"]] {
        let error = RedisStore::cluster(urls).connect_lazy().expect_err("an error");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{urls:?}: {error}");
    }
    let nobody = RedisStore::connect("redis+cluster://127.0.0.1:1").await.expect_err("nobody");
    assert_eq!(nobody.kind(), StoreErrorKind::Unreachable, "{nobody}");
}

#[tokio::test]
async fn a_cluster_with_a_password_is_asked_with_it() {
    let cluster = Cluster::start(1, 0).await;
    let server = cluster.node(0);
    let user = ["ACL", "SETUSER", "limits", "on", ">pw", "~tg1:*", "resetchannels", "-@all"];
    let rights = ["+evalsha", "+eval", "+script|load", "+time", "+ping", "+get", "+set"];
    let more = ["+incrby", "+expireat", "+cluster|slots", "+asking"];
    server.command(&[&user[..], &rights, &more].concat());
    let url = server.url().replace("redis://", "redis+cluster://limits:pw@");
    let store = RedisStore::connect(&url).await.expect("enough rights");
    let hits = [hit("{a}:x", PLENTY), hit("{b}:x", PLENTY)];
    assert!(admitted(&store.acquire(&hits).await.expect("an answer")));
    let wrong = RedisStore::connect(url.replace("pw@", "no@")).await.expect_err("the password");
    assert_eq!(wrong.kind(), StoreErrorKind::Misconfigured, "{wrong}");
    assert!(!wrong.to_string().contains("no@"), "{wrong}");
}
