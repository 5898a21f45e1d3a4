//! Policies that change while they are in use.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::{Request, StatusCode};
use tollgate::{
    Global, Limit, Limiter, Policy, PolicyHandle, PolicySet, Quota, RateLimitLayer, RequestHead,
};
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::support::{Probe, left, limiter};

/// `kept` is the same in all sets, `api` is not.
fn policies(api: u64) -> PolicySet {
    let policy = |name, units| {
        Policy::new(name)
            .limit(Global, Limit::new("requests", Quota::per_day(units)))
            .build()
            .unwrap()
    };
    PolicySet::builder()
        .route("/kept", policy("kept", 100_000))
        .otherwise(policy("api", api))
        .build()
        .unwrap()
}

fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

async fn status(limiter: &Limiter, handle: &PolicyHandle, path: &str) -> StatusCode {
    let layer = RateLimitLayer::with_policies(handle, limiter);
    let mut service = layer.layer(Probe::new());
    service.ready().await.unwrap().call(get(path)).await.unwrap().status()
}

#[tokio::test]
async fn a_layer_follows_its_handle() {
    let (limiter, _clock) = limiter();
    let handle = PolicyHandle::new(policies(1));
    let layer = RateLimitLayer::with_policies(&handle, &limiter);
    let mut service = layer.layer(Probe::new());
    let mut send = async || service.ready().await.unwrap().call(get("/")).await.unwrap().status();
    assert_eq!(send().await, StatusCode::OK);
    assert_eq!(send().await, StatusCode::TOO_MANY_REQUESTS);
    let old = handle.replace(policies(2));
    // The whole day was owed; at twice the rate, half of it is there by noon.
    assert_eq!(old.policy("api").unwrap().limit("requests").unwrap().quota(), Quota::per_day(1));
    assert_eq!(send().await, StatusCode::TOO_MANY_REQUESTS);
    let day = handle.load().policy("api").unwrap().limit("requests").unwrap().quota();
    assert_eq!(day, Quota::per_day(2));
    let unlimited = PolicySet::builder().build().unwrap();
    handle.replace(unlimited);
    assert_eq!(send().await, StatusCode::OK);
    assert_eq!(status(&limiter, &handle, "/kept").await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_changes_under_load_lose_no_count_and_fail_no_request() {
    let (limiter, _clock) = limiter();
    let handle = PolicyHandle::new(policies(50_000));
    let done = Arc::new(AtomicBool::new(false));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (limiter, handle, done) = (limiter.clone(), handle.clone(), Arc::clone(&done));
        callers.spawn(async move {
            let layer = RateLimitLayer::with_policies(handle, &limiter);
            let mut service = layer.layer(Probe::new());
            let mut sent = 0;
            while !done.load(Ordering::SeqCst) && sent < 20_000 {
                for path in ["/kept", "/other"] {
                    let response = service.ready().await.unwrap().call(get(path)).await.unwrap();
                    assert_eq!(response.status(), StatusCode::OK);
                }
                sent += 1;
                tokio::task::yield_now().await;
            }
            sent
        });
    }
    for round in 0..1_000 {
        handle.replace(policies(if round % 2 == 0 { 100_000 } else { 90_000 }));
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::SeqCst);
    let sent: u64 = callers.join_all().await.into_iter().sum();
    println!("{sent} requests of each kind");
    assert!(sent > 0);
    let kept = handle.load().policy("kept").unwrap().limit("requests").unwrap().clone();
    let request = get("/kept");
    let key = {
        use tollgate::KeyExtractor as _;
        Global.extract(RequestHead::new(&request)).unwrap()[0].clone()
    };
    assert_eq!(left(&limiter, &kept, key).await, 100_000 - sent);
}
