//! More callers at once than a frozen server lets be served: all are told so in time, and nothing of
//! them stays.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use http::{Request, Response};
use tokio::{task::JoinSet, time::timeout};
use tollgate::{
    Global, Limit, Limiter, OnFailure, Policy, Quota, RateLimitLayer, RedisStore, Rejection,
    StoreErrorKind,
};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::{
    CONNECTIONS,
    support::RedisServer,
    turn::Turn,
    vitals::{alive_tasks, memory, tasks_come_down_to},
};

/// More than may wait. Without optimisation, more of them only take longer.
const CALLS: usize = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
const DEADLINE: Duration = Duration::from_secs(1);
/// Beyond the deadline, on a machine that is busy with so many tasks.
const GRACE: Duration = Duration::from_secs(10);
/// KiB that a call may take, with the task that makes it.
const CALL: u64 = 8;
/// KiB that may stay, in the allocator's hands.
const REST: u64 = 16 * 1_024;
/// Connections, one that is being made for each, and a look after what is on lease.
const OWN_TASKS: usize = 2 * CONNECTIONS + 1;

#[test]
fn a_flood_on_a_frozen_server_is_answered_and_leaves_nothing_behind() {
    let turn = Turn::take();
    turn.runtime().block_on(flood(Limit::new("all", PLENTY)));
    turn.end();
}

#[test]
fn a_flood_of_requests_to_units_on_lease_is_answered_and_leaves_nothing_behind() {
    let turn = Turn::take();
    turn.runtime().block_on(flood(Limit::new("all", PLENTY).lease(100)));
    turn.end();
}

#[test]
fn a_flood_of_refunds_to_a_frozen_server_is_answered_and_leaves_nothing_behind() {
    let turn = Turn::take();
    turn.runtime().block_on(refunds());
    turn.end();
}

const PLENTY: Quota = Quota::per_hour(1_000_000_000);

async fn flood(limit: Limit) {
    let tasks_before = alive_tasks();
    let server = RedisServer::start().await;
    let limiter = limiter(&server).await;
    limiter.check(&limit, "k").await.expect("an answer");
    server.freeze();
    let mut kept = Vec::new();
    for _ in 0..2 {
        let before = memory();
        let (told, most) = round(&limiter, &limit).await;
        println!("{told:?}, {before:?} KiB before, {most:?} at most, {:?} after", memory());
        assert_eq!(told.values().sum::<usize>(), CALLS);
        let kinds =
            [StoreErrorKind::Overloaded, StoreErrorKind::Timeout, StoreErrorKind::Unreachable]
                .map(StoreErrorKind::as_str);
        assert!(told.keys().all(|kind| kinds.contains(kind)), "{told:?}");
        if let (Some(before), Some(most)) = (before, most) {
            assert!(most <= before + CALL * CALLS as u64, "{most} KiB after {before}");
        }
        tasks_come_down_to(tasks_before + OWN_TASKS, "after a flood").await;
        kept.push(memory());
    }
    if let (Some(first), Some(last)) = (kept[0], kept[1]) {
        assert!(last <= first + first / 4 + REST, "{last} KiB are kept, after {first}");
    }
    server.thaw();
    answers(&limiter, &limit).await;
    drop(limiter);
    tasks_come_down_to(tasks_before, "after the end").await;
}

/// What all callers are told, and the most memory that was taken.
async fn round(limiter: &Limiter, limit: &Limit) -> (BTreeMap<&'static str, usize>, Option<u64>) {
    let policy = Policy::new("flood").limit(Global, limit.clone()).on_failure(OnFailure::Deny);
    let layer = RateLimitLayer::with_policy(policy.build().expect("a policy"), limiter);
    let service = layer.layer(service_fn(async |_: Request<()>| {
        Ok::<_, std::convert::Infallible>(Response::new(()))
    }));
    let mut callers = JoinSet::new();
    for _ in 0..CALLS {
        let service = service.clone();
        callers.spawn(async move {
            let begun = Instant::now();
            let response = timeout(DEADLINE + GRACE, service.oneshot(Request::new(()))).await;
            let Ok(response) = response.expect("no hang");
            assert!(begun.elapsed() < DEADLINE + GRACE, "{:?}", begun.elapsed());
            match response.extensions().get() {
                Some(Rejection::StoreFailed(kind)) => kind.as_str(),
                other => panic!("{other:?}"),
            }
        });
    }
    let mut most = memory();
    let mut told = BTreeMap::new();
    while let Some(kind) = callers.join_next().await {
        *told.entry(kind.expect("no panic")).or_default() += 1;
        if callers.len() % 1_000 == 0 {
            most = most.max(memory());
        }
    }
    (told, most)
}

async fn refunds() {
    let tasks_before = alive_tasks();
    let server = RedisServer::start().await;
    let limiter = limiter(&server).await;
    let limit = Limit::new("all", PLENTY);
    let mut decisions = Vec::new();
    for _ in 0..5_000 {
        decisions.push(limiter.check(&limit, "k").await.expect("an answer"));
    }
    server.freeze();
    let mut callers = JoinSet::new();
    for decision in decisions {
        callers.spawn(async move {
            let refund = timeout(DEADLINE + GRACE, decision.refund()).await.expect("no hang");
            refund.expect_err("no answer").kind()
        });
    }
    while let Some(kind) = callers.join_next().await {
        let kind = kind.expect("no panic");
        assert!(matches!(kind, StoreErrorKind::Timeout | StoreErrorKind::Unreachable), "{kind:?}");
    }
    tasks_come_down_to(tasks_before + OWN_TASKS, "after a flood").await;
    server.thaw();
    answers(&limiter, &limit).await;
    drop(limiter);
    tasks_come_down_to(tasks_before, "after the end").await;
}

async fn limiter(server: &RedisServer) -> Limiter {
    let store = RedisStore::builder(server.url()).connections(CONNECTIONS).deadline(DEADLINE);
    let store = store.connect().await.expect("a server");
    // All go to the store.
    Limiter::builder(store).breaker(None).build()
}

async fn answers(limiter: &Limiter, limit: &Limit) {
    let answered = async {
        while limiter.check(limit, "k").await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), answered).await.expect("it recovers");
}
