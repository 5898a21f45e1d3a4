//! A server that does not decide a batch says so to everybody in it.

use std::time::Duration;

use tokio::task::JoinSet;
use tollgate::{RedisStore, Store as _, StoreError, StoreErrorKind};

use super::{PLENTY, count, hit, look, redis, take, taken};
use crate::support::{RedisServer, skip};

const CALLERS: usize = 64;

/// What each of many callers who come at once is told.
async fn ask(store: &RedisStore) -> Vec<Result<u64, StoreError>> {
    let replies: Vec<_> = (0..CALLERS).map(|_| store.acquire(&[hit("k", PLENTY)])).collect();
    let mut told = Vec::new();
    for reply in replies {
        let answer = tokio::time::timeout(Duration::from_secs(30), reply).await.expect("no hang");
        told.push(answer.map(|answer| taken(&answer)));
    }
    told
}

async fn fails(server: &RedisServer, store: &RedisStore, kind: StoreErrorKind) {
    for _ in 0..3 {
        for told in ask(store).await {
            let error = told.expect_err("no answer");
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
    assert!(server.try_command(&["PING"]).is_ok() || kind == StoreErrorKind::Busy);
}

async fn recovers(store: &RedisStore) {
    let answered = async {
        while ask(store).await.iter().any(Result::is_err) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered).await.expect("it recovers");
}

#[tokio::test]
async fn a_demoted_server_is_read_only_for_each_caller() {
    let (server, store) = redis().await;
    ask(&store).await;
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    fails(&server, &store, StoreErrorKind::ReadOnly).await;
    server.command(&["REPLICAOF", "NO", "ONE"]);
    recovers(&store).await;
}

#[tokio::test]
async fn a_full_server_is_out_of_memory_for_each_caller_and_has_charged_none() {
    let (server, store) = redis().await;
    ask(&store).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    fails(&server, &store, StoreErrorKind::OutOfMemory).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(look(&store, "k").await, CALLERS as u64);
    recovers(&store).await;
}

#[tokio::test]
async fn a_server_that_runs_a_long_script_is_busy_for_each_caller() {
    let (server, store) = redis().await;
    ask(&store).await;
    server.command(&["CONFIG", "SET", "lua-time-limit", "5"]);
    let mut other = server.connection();
    other.send(&["EVAL", "while true do end", "0"]).expect("the script starts");
    while server.try_command(&["PING"]).is_ok() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    fails(&server, &store, StoreErrorKind::Busy).await;
    server.command(&["SCRIPT", "KILL"]);
    recovers(&store).await;
}

#[tokio::test]
async fn a_server_that_takes_no_commands_of_ours_is_misconfigured_for_each_caller() {
    let (server, store) = redis().await;
    ask(&store).await;
    if server.version() < (7, 0) {
        skip(&server, "the rights of a script are checked differently before Redis 7.0");
        return;
    }
    server.command(&["ACL", "SETUSER", "default", "-evalsha"]);
    fails(&server, &store, StoreErrorKind::Misconfigured).await;
    server.command(&["ACL", "SETUSER", "default", "+evalsha"]);
    recovers(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_forgets_the_script_under_load_charges_each_request_once() {
    let (server, store) = redis().await;
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let store = store.clone();
        callers.spawn(async move {
            let key = format!("caller{}", caller % 8);
            let mut last = 0;
            for _ in 0..100 {
                let now = taken(&take(&store, &key).await.unwrap());
                assert!(now > last, "{now} of {key} after {last}");
                last = now;
            }
        });
    }
    let forgetting = async {
        loop {
            server.command(&["SCRIPT", "FLUSH"]);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = callers.join_all() => {}
        () = forgetting => unreachable!("it does not end"),
    }
    for key in 0..8 {
        assert_eq!(look(&store, &format!("caller{key}")).await, 800);
    }
    assert!(count(&server, "eval") > 0, "the server never had forgotten the script");
}

#[tokio::test]
async fn a_server_that_kills_the_connections_fails_those_under_way_and_no_others() {
    let (server, store) = redis().await;
    for _ in 0..10 {
        assert!(ask(&store).await.iter().all(Result::is_ok));
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        let failed = ask(&store).await.into_iter().filter(Result::is_err).count();
        println!("{failed} failed");
        recovers(&store).await;
        server.command(&["FLUSHALL"]);
    }
}
