//! What happens at the start: bad settings, no server, no right to use it.

#![expect(clippy::disallowed_methods, reason = "a server is waited for, with a bound")]

use std::time::Duration;

use tollgate::{
    Global, Limit, Limiter, OnFailure, Outcome, Policy, Quota, RedisStore, RequestHead, Ruling,
    StoreErrorKind,
};

use crate::support::RedisServer;

fn nobody() -> &'static str {
    // The discard port, where nobody listens.
    "redis://127.0.0.1:9/"
}

#[tokio::test]
async fn an_eager_store_without_a_server_is_an_error() {
    let error = RedisStore::connect(nobody()).await.expect_err("nobody listens");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    println!("{error}");
}

#[tokio::test]
async fn a_lazy_store_without_a_server_starts_under_the_failure_policy() {
    let store = RedisStore::builder(nobody()).connect_lazy().expect("nothing is asked yet");
    let policy = Policy::new("lazy")
        .limit(Global, Limit::new("all", Quota::per_second(1)))
        .on_failure(OnFailure::Allow)
        .build()
        .expect("a policy");
    let request = http::Request::new(());
    let ruling = Limiter::new(store).decide(&policy, RequestHead::new(&request)).await;
    let Ruling::Admit(decision) = ruling else { panic!("{ruling:?}") };
    assert_eq!(decision.outcome(), Outcome::FailedOpen);
}

#[tokio::test]
async fn a_lazy_store_finds_a_server_that_comes_later() {
    let mut server = RedisServer::start().await;
    server.kill();
    let store = RedisStore::builder(server.url()).connect_lazy().expect("nothing is asked yet");
    let limiter = Limiter::new(store);
    let limit = Limit::new("all", Quota::per_second(1_000));
    let error = limiter.check(&limit, "somebody").await.expect_err("the server is away");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    server.restart().await;
    let found = async {
        while limiter.check(&limit, "somebody").await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("the server is found");
}

#[tokio::test]
async fn bad_settings_are_errors_that_name_the_value_and_the_bound() {
    type Builder = tollgate::RedisStoreBuilder;
    let url = "redis://127.0.0.1/";
    let cases: [(Builder, &[&str]); 9] = [
        (RedisStore::builder("http://127.0.0.1/"), &["`http`", "`redis://`"]),
        (RedisStore::builder("127.0.0.1:6379"), &["`redis://`"]),
        (RedisStore::builder("redis://127.0.0.1/words"), &["URL"]),
        (RedisStore::builder(url).connections(0), &["0 connections", "1 to 64"]),
        (RedisStore::builder(url).connections(65), &["65 connections", "1 to 64"]),
        (RedisStore::builder(url).deadline(Duration::ZERO), &["deadline of 0ns", "at most 60s"]),
        (RedisStore::builder(url).connect_timeout(Duration::MAX), &["connect timeout", "60s"]),
        (RedisStore::builder(url).prefix(""), &["prefix \"\"", "1 to 64"]),
        (RedisStore::builder(url).prefix("a{b"), &["prefix \"a{b\"", "braces"]),
    ];
    for (builder, parts) in cases {
        let error = builder.connect_lazy().expect_err(parts[0]);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        println!("{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "`{part}` is not in `{error}`");
        }
    }
}

#[tokio::test]
async fn no_error_and_no_debug_output_shows_a_password() {
    let word = "hunter2secret";
    let builder = RedisStore::builder(format!("redis://:{word}@127.0.0.1:9/"));
    assert!(!format!("{builder:?}").contains(word));
    let store = builder.clone().connect_lazy().expect("a store");
    assert!(!format!("{store:?}").contains(word));
    let error = builder.connect().await.expect_err("nobody listens");
    assert!(!format!("{error:?} {error}").contains(word));
    let error = RedisStore::connect(format!("htp://:{word}@127.0.0.1:9/")).await;
    let error = error.expect_err("no such scheme");
    assert!(!format!("{error:?} {error}").contains(word), "{error:?}");
}

#[test]
fn a_store_outside_of_a_runtime_is_an_error_and_no_panic() {
    let store = RedisStore::builder("redis://127.0.0.1/").connect_lazy().expect("a store");
    let limit = Limit::new("all", Quota::per_second(1));
    let limiter = Limiter::new(store);
    let mut check = Box::pin(limiter.check(&limit, "somebody"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = check.as_mut().poll(&mut context) else {
        panic!("there is no runtime to wait for");
    };
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn a_store_that_was_shut_down_says_so_and_connects_no_more() {
    let server = RedisServer::start().await;
    let limiter = Limiter::new(RedisStore::connect(server.url()).await.expect("a server"));
    let limit = Limit::new("all", Quota::per_second(1));
    limiter.check(&limit, "somebody").await.expect("an answer");
    limiter.shutdown().await;
    let error = limiter.check(&limit, "somebody").await.expect_err("it was shut down");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().contains("shut down"), "{error}");
    let gone = async {
        // The test's own connection is the one that is left.
        while server.command(&["CLIENT", "LIST"]).lines().count() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("all connections close");
}

/// A program that runs its runtime only while it waits for a decision.
#[test]
fn a_program_that_only_blocks_on_decisions_finds_a_server_that_is_back() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut server = runtime.block_on(RedisServer::start());
    let store = runtime.block_on(RedisStore::connect(server.url())).expect("a server");
    let limiter = Limiter::new(store);
    let limit = Limit::new("all", Quota::per_second(1_000));
    let check = || runtime.block_on(limiter.check(&limit, "somebody"));
    check().expect("an answer");
    server.kill();
    for _ in 0..5 {
        check().expect_err("the server is away");
        std::thread::sleep(Duration::from_millis(100));
    }
    runtime.block_on(server.restart());
    let begin = std::time::Instant::now();
    while check().is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20), "the server is not found");
        std::thread::sleep(Duration::from_millis(100));
    }
    runtime.block_on(limiter.ready()).expect("it is well");
}
