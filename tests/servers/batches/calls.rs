//! How many requests go out in one call.

use tokio::{runtime::Handle, task::JoinSet};
use tollgate::Store as _;

use super::{Monitor, PLENTY, count, hit, hold, redis, take, together};
use crate::support::Value;

const MAX_REQUESTS: usize = 64;
const MAX_HITS: usize = 128;

#[tokio::test]
async fn callers_on_one_thread_share_calls() {
    share_calls().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_on_many_threads_share_calls() {
    share_calls().await;
}

async fn share_calls() {
    let (server, store) = redis().await;
    let mut callers = JoinSet::new();
    for caller in 0..64 {
        let store = store.clone();
        callers.spawn(async move {
            for _ in 0..100 {
                take(&store, &format!("caller{caller}")).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    let calls = count(&server, "evalsha");
    println!("{calls} calls for 6400 requests");
    assert!(calls < 6_400 / 4, "{calls} calls");
}

#[tokio::test]
async fn a_lone_request_goes_out_alone_on_its_callers_task() {
    let (server, store) = redis().await;
    let monitor = Monitor::start(&server);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    // One measures how late this process is.
    take(&store, "k").await.unwrap();
    let before = tasks();
    for _ in 0..50 {
        let reply = store.acquire(&[hit("k", PLENTY)]);
        assert!(tasks() <= before, "nobody else is needed");
        reply.await.unwrap();
    }
    let calls = monitor.end(&server);
    assert_eq!(calls.len(), 51);
    assert!(calls.iter().all(|call| call.requests == [1]), "{calls:?}");
}

#[tokio::test]
async fn those_that_wait_go_out_with_the_next_call_up_to_its_bounds() {
    let (server, store) = redis().await;
    let held = hold(&store);
    let names: Vec<String> = (0..MAX_HITS).map(|at| format!("k{at}")).collect();
    let request =
        |hits: usize| -> Vec<_> { names[..hits].iter().map(|name| hit(name, PLENTY)).collect() };
    for (hits, requests, most) in [
        (1, 1_usize, 1),
        (1, 64, 64),
        (1, 200, 64),
        (2, 100, 64),
        (3, 100, 42),
        (5, 60, 25),
        (128, 4, 1),
    ] {
        let monitor = Monitor::start(&server);
        let all: Vec<_> = (0..requests).map(|_| request(hits)).collect();
        for answer in together(&store, &all).await {
            let standings = answer.unwrap().standings;
            assert!(standings.len() == hits && standings.iter().all(|standing| standing.fits()));
        }
        let mut calls = monitor.end(&server);
        assert_eq!(calls.len(), requests.div_ceil(most), "{hits} hits, {requests} requests");
        // Those that travel over different connections may overtake each other.
        calls.sort_by_key(|call| std::cmp::Reverse(call.requests.len()));
        for (at, call) in calls.iter().enumerate() {
            let full = (requests - at * most).min(most);
            assert_eq!(call.requests, vec![hits; full], "{hits} hits");
            assert_eq!(call.keys.len(), hits * full);
        }
    }
    drop(held);
}

#[tokio::test]
async fn whatever_comes_no_call_is_larger_than_its_bounds_and_none_is_empty() {
    let (server, store) = redis().await;
    let monitor = Monitor::start(&server);
    let names: Vec<String> = (0..MAX_HITS).map(|at| format!("k{at}")).collect();
    let mut hits = 0;
    for _ in 0..20 {
        let requests: Vec<Vec<_>> = (0..fastrand::usize(1..300))
            .map(|_| {
                let most = if fastrand::u8(..8) == 0 { MAX_HITS } else { 6 };
                let some = names[..fastrand::usize(1..=most)].iter();
                some.map(|name| hit(name, PLENTY)).collect()
            })
            .collect();
        hits += requests.iter().map(Vec::len).sum::<usize>();
        for answer in together(&store, &requests).await {
            answer.unwrap();
        }
    }
    let calls = monitor.end(&server);
    for call in &calls {
        assert!((1..=MAX_REQUESTS).contains(&call.requests.len()), "{call:?}");
        assert!(call.keys.len() <= MAX_HITS, "{call:?}");
    }
    assert_eq!(calls.iter().map(|call| call.keys.len()).sum::<usize>(), hits, "each is sent once");
}

/// For how long a full batch keeps everybody else from the server: told, not judged.
#[tokio::test]
async fn what_a_full_batch_costs_the_server() {
    let (server, store) = redis().await;
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    server.command(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
    let held = hold(&store);
    let names: Vec<String> = (0..MAX_REQUESTS).map(|at| format!("k{at}")).collect();
    let requests: Vec<_> = names.iter().map(|name| vec![hit(name, PLENTY)]).collect();
    for _ in 0..200 {
        together(&store, &requests).await;
    }
    drop(held);
    let log = server.connection().ask(&["SLOWLOG", "GET", "100000"]).unwrap();
    let Value::Array(log) = log else { panic!("no log") };
    let mut micros: Vec<i64> = log.iter().filter_map(full_batch).collect();
    micros.sort_unstable();
    let (half, most) = (micros[micros.len() / 2], micros[micros.len() - 1]);
    println!("{} full batches of 64 requests: half in {half} µs, most {most} µs", micros.len());
    assert_eq!(micros.len(), 200);
}

/// The time that a full batch took, if an entry of the log is about one.
fn full_batch(entry: &Value) -> Option<i64> {
    let Value::Array(entry) = entry else { return None };
    let [_, _, Value::Integer(micros), Value::Array(words), ..] = entry.as_slice() else {
        return None;
    };
    let word = |at: usize| match words.get(at) {
        Some(Value::Text(text)) => text.as_str(),
        _ => "",
    };
    (word(0) == "EVALSHA" && word(2) == "64").then_some(*micros)
}
