//! A server may forget the script at any time.

use std::time::Duration;

use deadpool_redis::redis::Script;
use tollgate::{Limit, Limiter, Quota, RedisStore};

use crate::{
    script::SOURCE,
    support::{Load, RedisServer, skip},
};

/// Some servers keep only so many of the scripts that came by `EVAL`, as ours does once it was
/// forgotten.
#[tokio::test]
async fn a_server_that_drops_the_script_in_favour_of_others_fails_no_request() {
    let server = RedisServer::start().await;
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let limiter = Limiter::builder(store.connect().await.expect("a server")).breaker(None).build();
    let limit = Limit::new("all", Quota::per_second(1_000_000));
    server.command(&["SCRIPT", "FLUSH"]);
    let ours = Script::new(SOURCE);
    let known = || server.command(&["SCRIPT", "EXISTS", ours.get_hash()]) == "1";
    for _ in 0..3 {
        limiter.check(&limit, "somebody").await.expect("an answer");
        assert!(known());
        for other in 0..600 {
            server.command(&["EVAL", &format!("return {other}"), "0"]);
        }
        if server.version() < (7, 4) {
            assert!(known());
            skip(&server, "scripts that came by EVAL are kept before Redis 7.4 and Valkey 8.0");
            return;
        }
        assert!(!known(), "the server dropped the script");
    }
    limiter.check(&limit, "somebody").await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_the_script_in_the_middle_of_load_fails_no_request() {
    let server = RedisServer::start().await;
    // The time to answer is not what this is about.
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let limiter = Limiter::builder(store.connect().await.expect("a server")).breaker(None).build();
    let limit = Limit::new("all", Quota::per_second(1_000_000));
    let load = Load::new(64).count(20_000).start(move |caller| {
        let (limiter, limit) = (limiter.clone(), limit.clone());
        async move {
            let key = format!("caller{caller}");
            match limiter.check(&limit, key).await {
                Ok(decision) if decision.is_allowed() => "allowed",
                Ok(_) => "denied",
                Err(error) => panic!("{error}"),
            }
        }
    });
    let flushing = async {
        loop {
            server.command(&["SCRIPT", "FLUSH"]);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let report = tokio::select! {
        report = load.finish() => report,
        () = flushing => unreachable!("it does not end"),
    };
    assert_eq!(report.phase("start").count("allowed"), 20_000);
    let info = server.command(&["INFO", "commandstats"]);
    assert!(info.contains("cmdstat_eval:"), "the server never had forgotten the script:\n{info}");
}

#[tokio::test]
async fn a_server_that_forgot_the_script_gives_back_once() {
    let server = RedisServer::start().await;
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let limiter = Limiter::builder(store.connect().await.expect("a server")).breaker(None).build();
    let limit = Limit::new("all", Quota::per_day(10));
    let take = async |units| limiter.check(&limit.clone().cost(units), "k").await.expect("answer");
    let first = take(4).await;
    assert_eq!(take(5).await.remaining(), Some(1));
    server.command(&["SCRIPT", "FLUSH"]);
    server.command(&["CONFIG", "RESETSTAT"]);
    first.refund().await.expect("an answer");
    let info = server.command(&["INFO", "commandstats"]);
    let ran = |command: &str| info.lines().any(|line| line.starts_with(command));
    assert!(ran("cmdstat_evalsha:calls=1,") && ran("cmdstat_eval:calls=1,"), "{info}");
    assert!(ran("cmdstat_incrby:calls=1,"), "{info}");
    assert_eq!(take(0).await.remaining(), Some(5));
    // The server knows it again, and the decision knows that it is done.
    first.refund().await.expect("an answer");
    assert_eq!(take(0).await.remaining(), Some(5));
}
