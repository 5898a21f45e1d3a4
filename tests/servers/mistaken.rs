//! A server of one kind under the URL of another.

use tollgate::{RedisStore, StoreErrorKind};

use crate::support::{
    RedisServer,
    cluster::Cluster,
    sentinel::{NAME, Sentinel},
};

#[tokio::test]
async fn what_is_something_else_is_told_with_the_url_that_it_has() {
    let cluster = Cluster::shared().await;
    let server = RedisServer::start().await;
    let sentinel = Sentinel::start(server.port()).await;
    let host = |port: u16| format!("127.0.0.1:{port}");
    let (alone, node, sentinel_at) =
        (host(server.port()), host(cluster.node(0).port()), host(sentinel.port));
    for (url, place, says) in [
        (format!("redis://{sentinel_at}"), &sentinel_at, ["a sentinel", "`redis+sentinel://`"]),
        (
            format!("redis+cluster://{sentinel_at}"),
            &sentinel_at,
            ["a sentinel", "`redis+sentinel://`"],
        ),
        (format!("redis+sentinel://{alone}/{NAME}"), &alone, ["a single server", "`redis://`"]),
        (
            format!("redis+sentinel://{node}/{NAME}"),
            &node,
            ["a node of a cluster", "`redis+cluster://`"],
        ),
        (format!("redis+cluster://{alone}"), &alone, ["a single server", "`redis://`"]),
    ] {
        let error = RedisStore::connect(&url).await.expect_err(&url);
        println!("{error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{url}: {error}");
        let text = error.to_string();
        assert!(text.contains(place.as_str()), "{url}: {text}");
        for says in says {
            assert!(text.contains(says), "{url}: {text}");
        }
        for kind in ["misconfigured: ", place.as_str()] {
            assert_eq!(text.matches(kind).count(), 1, "{text}");
        }
    }
}
