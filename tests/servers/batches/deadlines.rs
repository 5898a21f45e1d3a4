//! One deadline covers waiting and the answer.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tollgate::{RedisStore, Store as _, StoreErrorKind};

use super::{PLENTY, PREFIX, builder, hit, redis, take, taken};
use crate::support::{Load, Proxy, RedisServer};

/// Beyond its deadline, on a machine that is busy.
const GRACE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn on_one_thread_a_frozen_server_costs_each_request_its_deadline_and_no_more() {
    frozen().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_a_frozen_server_costs_each_request_its_deadline_and_no_more() {
    frozen().await;
}

#[expect(clippy::disallowed_methods, reason = "a deadline is a time")]
async fn frozen() {
    let server = RedisServer::start().await;
    let deadline = Duration::from_millis(300);
    let store = builder(&server).deadline(deadline).connect().await.unwrap();
    take(&store, "k").await.unwrap();
    server.freeze();
    let mut callers = JoinSet::new();
    for caller in 0..500 {
        let store = store.clone();
        callers.spawn(async move {
            // Some come when others are about to give up.
            tokio::time::sleep(Duration::from_millis(fastrand::u64(..400))).await;
            let begun = Instant::now();
            let error = take(&store, &format!("k{caller}")).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
            begun.elapsed()
        });
    }
    let callers = tokio::time::timeout(deadline + GRACE * 3, callers.join_all());
    let longest = callers.await.expect("none hangs").into_iter().max().unwrap();
    println!("the longest took {longest:?}");
    assert!(longest < deadline + GRACE, "{longest:?}");
    server.thaw();
    recovers(&store).await;
}

async fn recovers(store: &RedisStore) {
    let answered = async {
        while take(store, "probe").await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), answered).await.expect("it recovers");
}

#[tokio::test]
async fn past_its_bound_the_queue_turns_away_at_once_and_all_in_it_are_answered() {
    const BOUND: usize = 16_384;
    let (server, store) = redis().await;
    take(&store, "k").await.unwrap();
    server.freeze();
    let mut waiting = Vec::new();
    let mut refused = 0;
    for at in 0..BOUND + 600 {
        match store.acquire(&[hit("k", PLENTY)]).try_now() {
            Err(reply) => waiting.push(reply),
            Ok(told) => {
                assert_eq!(told.unwrap_err().kind(), StoreErrorKind::Overloaded);
                refused += 1;
            }
        }
        if at % 100 == 0 {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
    }
    // One that went out alone, and a batch for each connection, are no longer in it.
    let most = BOUND + 1 + 3 * 64;
    println!("{} wait, {refused} were refused", waiting.len());
    assert!((BOUND..=most).contains(&waiting.len()), "{} wait", waiting.len());
    server.thaw();
    let mut got: Vec<u64> = Vec::new();
    for reply in waiting {
        let answer = reply.await.unwrap();
        if answer.standings[0].fits() {
            got.push(taken(&answer));
        }
    }
    got.sort_unstable();
    assert!(got.into_iter().eq(2..=1_000), "each unit once");
    take(&store, "other").await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_that_is_silent_holds_up_no_more_than_what_is_on_it() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.port()).await;
    let deadline = Duration::from_millis(300);
    let store = RedisStore::builder(proxy.url()).prefix(PREFIX.trim_end_matches(':'));
    let store = store.connections(3).deadline(deadline).connect().await.unwrap();
    let asked = store.clone();
    let load = Load::new(64).pace(Duration::from_millis(1)).start(move |caller| {
        let store = asked.clone();
        async move {
            match take(&store, &format!("caller{caller}")).await {
                Ok(_) => "answered",
                Err(error) if error.kind() == StoreErrorKind::Timeout => "timeout",
                Err(error) => panic!("{error}"),
            }
        }
    });
    load.until_most("answered").await;
    for silent in 1..=3 {
        load.phase("silent");
        proxy.silence(silent);
        tokio::time::sleep(deadline * 3).await;
        load.phase("replaced");
        load.until_most("answered").await;
    }
    let report = load.stop().await;
    println!("{report}");
    for phase in ["silent", "replaced"] {
        let phase = report.phase(phase);
        assert!(phase.max() < deadline + GRACE, "{report}");
    }
    let silent = report.phase("silent");
    assert!(silent.count("timeout") > 0, "{report}");
    assert!(silent.count("answered") > silent.count("timeout"), "{report}");
}
