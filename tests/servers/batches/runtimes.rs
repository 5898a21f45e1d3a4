//! Runtimes that share a store, one of which ends or stands still.

#![expect(clippy::disallowed_methods, reason = "a connection is waited for, with a bound")]

use std::time::{Duration, Instant};

use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tollgate::{RedisStore, Store as _, StoreErrorKind, store::Reply};

use super::{PLENTY, builder, hit, take, taken};
use crate::support::RedisServer;

const PATIENCE: Duration = Duration::from_secs(5);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A store with one connection, which a runtime that lasts has made.
fn connected(here: &Runtime, deadline: Duration) -> (RedisServer, RedisStore) {
    here.block_on(async {
        let server = RedisServer::start().await;
        let store = builder(&server).connections(1).deadline(deadline).connect().await.unwrap();
        take(&store, "before").await.unwrap();
        (server, store)
    })
}

/// Requests that are made on a runtime, and not polled yet.
fn made(runtime: &Runtime, store: &RedisStore, count: usize) -> Vec<Reply> {
    let _inside = runtime.enter();
    (0..count).map(|_| store.acquire(&[hit("k", PLENTY)])).collect()
}

/// What all of these get to hear, in time.
fn hear(runtime: &Runtime, replies: Vec<Reply>) -> Vec<Result<u64, StoreErrorKind>> {
    runtime.block_on(async {
        let mut heard = Vec::new();
        for reply in replies {
            let answer = timeout(PATIENCE, reply).await.expect("none hangs");
            heard.push(answer.map(|answer| taken(&answer)).map_err(|error| error.kind()));
        }
        heard
    })
}

/// Lets a runtime run for so long.
fn pass(runtime: &Runtime, span: Duration) {
    runtime.block_on(async { tokio::time::sleep(span).await });
}

fn works(runtime: &Runtime, store: &RedisStore) {
    for _ in 0..50 {
        let replies = made(runtime, store, 5);
        assert!(hear(runtime, replies).iter().all(Result::is_ok));
    }
}

#[test]
fn those_who_wait_for_a_runtime_that_ends_are_told_so() {
    let (here, there) = (runtime(), runtime());
    let (_server, store) = connected(&here, Duration::from_secs(20));
    // One goes out alone, and two have who sends spawned there, where nothing runs.
    let held = made(&there, &store, 3);
    let waiting = made(&here, &store, 10);
    drop(there);
    assert_eq!(hear(&here, waiting), [Err(StoreErrorKind::Unreachable); 10]);
    works(&here, &store);
    drop(held);
    works(&here, &store);
}

#[test]
fn those_whose_batch_is_on_its_way_from_a_runtime_that_ends_are_told_so() {
    let (here, there) = (runtime(), runtime());
    let (server, store) = connected(&here, Duration::from_secs(20));
    let held = made(&there, &store, 3);
    let waiting = made(&here, &store, 10);
    server.freeze();
    pass(&there, Duration::from_millis(50));
    drop(there);
    assert_eq!(hear(&here, waiting), [Err(StoreErrorKind::Unreachable); 10]);
    server.thaw();
    works(&here, &store);
    drop(held);
}

#[test]
fn a_runtime_that_stands_still_costs_others_their_deadlines_and_then_nothing() {
    let (here, there) = (runtime(), runtime());
    let deadline = Duration::from_millis(200);
    let (_server, store) = connected(&here, deadline);
    let held = made(&there, &store, 3);
    let waiting = made(&here, &store, 10);
    assert_eq!(hear(&here, waiting), [Err(StoreErrorKind::Timeout); 10]);
    pass(&here, deadline * 2);
    works(&here, &store);
    // When it goes on, it does so with what waits then.
    pass(&there, Duration::from_millis(50));
    works(&here, &store);
    drop((held, there));
    works(&here, &store);
}

#[test]
fn a_runtime_that_stands_still_in_the_middle_of_a_batch_costs_no_more() {
    let (here, there) = (runtime(), runtime());
    let deadline = Duration::from_millis(200);
    let (server, store) = connected(&here, deadline);
    let held = made(&there, &store, 3);
    let waiting = made(&here, &store, 10);
    server.freeze();
    pass(&there, Duration::from_millis(50));
    server.thaw();
    // Their answers are there, and nobody hands them on.
    assert_eq!(hear(&here, waiting), [Err(StoreErrorKind::Timeout); 10]);
    pass(&here, deadline * 2);
    works(&here, &store);
    drop((held, there));
    works(&here, &store);
}

#[test]
fn a_connection_whose_runtime_stands_still_is_replaced() {
    let (here, there) = (runtime(), runtime());
    let (_server, store) = connected(&there, Duration::from_millis(200));
    let waiting = made(&here, &store, 10);
    assert_eq!(hear(&here, waiting), [Err(StoreErrorKind::Timeout); 10]);
    let begin = Instant::now();
    while hear(&here, made(&here, &store, 1)) != [Ok(1)] {
        assert!(begin.elapsed() < PATIENCE);
        pass(&here, Duration::from_millis(20));
    }
    works(&here, &store);
}

#[test]
fn a_runtime_that_ends_under_load_leaves_nobody_on_another_without_an_answer() {
    let many = || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for _ in 0..5 {
        let (here, there) = (many(), many());
        let (_server, store) = connected(&here, Duration::from_secs(20));
        for _ in 0..64 {
            let store = store.clone();
            there.spawn(async move {
                loop {
                    let _ = take(&store, "there").await;
                }
            });
        }
        let callers: Vec<_> = (0..64)
            .map(|caller| {
                let store = store.clone();
                here.spawn(async move {
                    let mut failed = 0;
                    for _ in 0..100 {
                        let key = format!("caller{caller}");
                        let asking = take(&store, &key);
                        match timeout(PATIENCE, asking).await.expect("none hangs") {
                            Ok(_) => {}
                            Err(error) => {
                                assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
                                failed += 1;
                            }
                        }
                    }
                    failed
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        there.shutdown_background();
        let failed: usize = here.block_on(async {
            let mut failed = 0;
            for caller in callers {
                failed += caller.await.unwrap();
            }
            failed
        });
        println!("{failed} of 6400 failed");
        // Those in the batches that the runtime had on their way, and in the queue if it had all.
        assert!(failed <= 4 * 64, "{failed} failed");
    }
}
