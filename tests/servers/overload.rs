//! A process that is overloaded, or stands still at times: that is no fault of the server, and no
//! reason to let requests pass.

#![expect(clippy::disallowed_methods, reason = "callers are watched for a time")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use http::Request;
use tokio::{
    task::{JoinHandle, JoinSet, yield_now},
    time::{sleep, timeout},
};
use tollgate::{
    BreakerState, Global, Limit, Limiter, OnFailure, Outcome, Policy, Quota, RedisStore,
    RequestHead, Ruling, StoreErrorKind,
};

use crate::support::RedisServer;

const BOUND: Duration = Duration::from_secs(60);
const CALLERS: usize = 64;

/// Tasks that hold up all others of this thread: whoever waits for something waits for them first.
struct Load(Vec<JoinHandle<()>>);

impl Load {
    fn start(tasks: usize, each: Duration) -> Self {
        let busy = move || async move {
            loop {
                thread::sleep(each);
                yield_now().await;
            }
        };
        Self((0..tasks).map(|_| tokio::spawn(busy())).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

async fn limiter(server: &RedisServer, deadline: Duration) -> Limiter {
    let store = RedisStore::builder(server.url()).deadline(deadline).connect().await.unwrap();
    Limiter::new(store)
}

fn policy(limit: u64) -> Policy {
    let limit = Limit::new("all", Quota::per_day(limit));
    Policy::new("open").limit(Global, limit).on_failure(OnFailure::Allow).build().unwrap()
}

async fn send(limiter: &Limiter, policy: &Policy) -> Option<Outcome> {
    let request = Request::new(());
    match limiter.decide(policy, RequestHead::new(&request)).await {
        Ruling::Admit(decision) => Some(decision.outcome()),
        Ruling::Reject(_) => None,
    }
}

/// Many callers with so many requests each: how many of them were admitted by Redis, and how many by
/// the policy.
async fn run(limiter: &Limiter, policy: &Policy, requests: usize) -> (usize, usize) {
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        callers.spawn(async move {
            let mut outcomes = Vec::new();
            for _ in 0..requests {
                outcomes.push(send(&limiter, &policy).await);
            }
            outcomes
        });
    }
    let outcomes = timeout(BOUND, callers.join_all()).await.expect("no hang").concat();
    let count = |outcome| outcomes.iter().filter(|it| **it == Some(outcome)).count();
    (count(Outcome::Allowed), count(Outcome::FailedOpen))
}

fn turned_back(limiter: &Limiter) -> u64 {
    limiter.health().failures(StoreErrorKind::BreakerOpen)
}

/// Nothing is let pass that Redis did not admit.
async fn overloaded(tasks: usize, requests: usize) {
    let server = RedisServer::start().await;
    let limiter = limiter(&server, BOUND).await;
    let policy = policy(500);
    let _load = Load::start(tasks, Duration::from_millis(10));
    let begin = Instant::now();
    assert_eq!(run(&limiter, &policy, requests).await, (500, 0));
    assert_eq!(turned_back(&limiter), 0);
    println!("{:?} each", begin.elapsed() / u32::try_from(requests).unwrap());
}

#[tokio::test]
async fn an_overloaded_process_goes_on_asking_a_server_that_is_well() {
    overloaded(3, 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_with_several_threads_does_so_too() {
    overloaded(24, 30).await;
}

#[tokio::test]
async fn a_process_that_stands_still_at_times_does_not_blame_the_server() {
    let server = RedisServer::start().await;
    let limiter = limiter(&server, Duration::from_millis(100)).await;
    let policy = policy(1_000_000);
    let stops = tokio::spawn(async {
        loop {
            thread::sleep(Duration::from_millis(130));
            sleep(Duration::from_millis(20)).await;
        }
    });
    let (by_redis, by_policy) = run(&limiter, &policy, 200).await;
    stops.abort();
    println!("{by_redis} by Redis, {by_policy} by the policy");
    assert_eq!(turned_back(&limiter), 0);
    assert!(by_redis > 0);
}

#[tokio::test]
async fn an_overloaded_process_notices_that_a_server_is_frozen_and_that_it_is_back() {
    let server = RedisServer::start().await;
    let limiter = limiter(&server, Duration::from_millis(100)).await;
    let policy = policy(1_000_000);
    let _load = Load::start(2, Duration::from_millis(5));
    let until = |state: fn(BreakerState) -> bool| {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        async move {
            let watch = async {
                while !state(limiter.health().breaker()) {
                    run(&limiter, &policy, 1).await;
                }
            };
            timeout(BOUND, watch).await.expect("the breaker follows");
        }
    };
    for _ in 0..2 {
        server.freeze();
        until(|state| state == BreakerState::Open).await;
        server.thaw();
        until(|state| state == BreakerState::Closed).await;
        assert_eq!(run(&limiter, &policy, 1).await.1, 0, "the server decides again");
    }
}

/// Handlers that need all the processors, were it not for the limit: requests that pass while Redis is
/// away must not keep those after them from being decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_lives_by_its_limit_recovers_from_an_outage() {
    let server = RedisServer::start().await;
    let store = RedisStore::builder(server.url()).own_thread().connect().await.unwrap();
    let limiter = Limiter::new(store);
    let limit = Limit::new("all", Quota::per_second(100).burst(50));
    let policy = Policy::new("open").limit(Global, limit).on_failure(OnFailure::Allow);
    let policy = policy.build().unwrap();
    let (decided, passed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..256 {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        let (decided, passed) = (Arc::clone(&decided), Arc::clone(&passed));
        clients.spawn(async move {
            sleep(Duration::from_millis(fastrand::u64(..2_000))).await;
            loop {
                let outcome = send(&limiter, &policy).await;
                let by_policy = outcome == Some(Outcome::FailedOpen);
                if by_policy { &passed } else { &decided }.fetch_add(1, Ordering::SeqCst);
                if outcome.is_some() {
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_millis(10) {
                        std::hint::spin_loop();
                    }
                }
                sleep(Duration::from_millis(500)).await;
            }
        });
    }
    sleep(Duration::from_secs(3)).await;
    server.freeze();
    sleep(Duration::from_millis(500)).await;
    server.thaw();
    let recovered = async {
        loop {
            let before = (decided.load(Ordering::SeqCst), passed.load(Ordering::SeqCst));
            sleep(Duration::from_secs(1)).await;
            let after = (decided.load(Ordering::SeqCst), passed.load(Ordering::SeqCst));
            println!("{} decided, {} passed", after.0 - before.0, after.1 - before.1);
            if after.0 - before.0 > 100 && after.1 == before.1 {
                break;
            }
        }
    };
    timeout(BOUND, recovered).await.expect("Redis decides all again");
}
