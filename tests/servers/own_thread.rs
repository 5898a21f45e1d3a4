//! A store that drives its connections on a thread of its own.

#![expect(clippy::disallowed_methods, reason = "a server is waited for, with a bound")]

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use tokio::runtime::{Builder, Runtime};
use tollgate::{Limit, Limiter, Quota, RedisStore};

use crate::support::RedisServer;

const PATIENCE: Duration = Duration::from_secs(20);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn limit() -> Limit {
    Limit::new("all", Quota::per_day(100_000))
}

/// A server, which the runtime keeps, and a limiter over it.
fn limiter() -> (Runtime, RedisServer, Limiter) {
    let runtime = runtime();
    let (server, store) = runtime.block_on(async {
        let server = RedisServer::start().await;
        let store = RedisStore::builder(server.url()).own_thread().connect().await.unwrap();
        (server, store)
    });
    (runtime, server, Limiter::new(store))
}

#[test]
fn threads_with_runtimes_of_their_own_share_it_without_a_failure() {
    let (runtime, server, limiter) = limiter();
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let limiter = limiter.clone();
            thread::spawn(move || {
                let runtime = self::runtime();
                for _ in 0..200 {
                    let decision = runtime.block_on(limiter.check(&limit(), caller));
                    assert!(decision.expect("an answer").is_allowed());
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    drop((limiter, server, runtime));
}

#[test]
fn a_runtime_for_each_call_does_too() {
    let (runtime, server, limiter) = limiter();
    for _ in 0..50 {
        let decision = self::runtime().block_on(limiter.check(&limit(), "somebody"));
        assert!(decision.expect("an answer").is_allowed());
    }
    drop((limiter, server, runtime));
}

#[test]
fn a_program_that_only_blocks_on_decisions_finds_a_server_that_is_back() {
    let (runtime, mut server, limiter) = limiter();
    let check = || runtime.block_on(limiter.check(&limit(), "somebody"));
    check().expect("an answer");
    server.kill();
    check().expect_err("the server is away");
    runtime.block_on(server.restart());
    let begin = Instant::now();
    while check().is_err() {
        assert!(begin.elapsed() < PATIENCE, "the server is not found");
        thread::sleep(Duration::from_millis(50));
    }
}

fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter(|task| {
            let name = fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == "tollgate-redis")
        })
        .count()
}

#[cfg(target_os = "linux")]
#[test]
fn the_thread_ends_with_its_store() {
    let (runtime, server, limiter) = limiter();
    let stores: Vec<_> = (0..50)
        .map(|_| {
            let builder = RedisStore::builder(server.url()).own_thread();
            runtime.block_on(builder.connect()).expect("a server")
        })
        .collect();
    assert!(threads() > 50);
    drop((stores, limiter));
    let begin = Instant::now();
    // Those of other tests may be there.
    while threads() > 25 {
        assert!(begin.elapsed() < PATIENCE, "{} are left", threads());
        thread::sleep(Duration::from_millis(10));
    }
}
