//! What one instance admits on its own is bounded: at once, the share of the burst or one, and then
//! the share of the rate.

use http::StatusCode;
use tollgate::{Limit, Limiter, OnFailure, Policy, Quota, StoreErrorKind};

use super::{api, breakable};
use crate::support::{Broken, Client, memory, secs, x_fields};

const DOWN: Broken = Broken::Now(StoreErrorKind::Unreachable);

#[tokio::test]
async fn over_any_time_no_more_than_the_share_is_admitted_and_no_less() {
    let quotas = [
        Quota::per_minute(12),
        Quota::per_minute(12).burst(3),
        Quota::per_second(2).burst(50),
        Quota::per_hour(600),
    ];
    for quota in quotas {
        for share in [0.01, 0.1, 0.25, 1.0 / 3.0, 0.5, 1.0] {
            let (limiter, store, clock) = breakable();
            store.break_(DOWN);
            let mut client = Client::sharing(&limiter, api(quota, OnFailure::Local { share }));
            let burst = (quota.capacity() as f64 * share).max(1.0);
            let rate = quota.quantity() as f64 / quota.period().as_secs_f64() * share;
            let mut admitted = 0.0;
            for second in 0..600 {
                let bound = burst + rate * f64::from(second);
                while admitted <= bound && client.send().await.status() == StatusCode::OK {
                    admitted += 1.0;
                }
                assert!(admitted <= bound + 1e-6, "{quota} × {share}: {admitted} at {second} s");
                // Rounding down costs the burst less than a unit, and one more may be on its way.
                assert!(admitted > bound - 2.0, "{quota} × {share}: {admitted} at {second} s");
                clock.advance(secs(1));
            }
        }
    }
}

#[tokio::test]
async fn instances_with_equal_shares_together_keep_the_limit() {
    let quota = Quota::per_minute(60);
    let (mut instances, mut clocks) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (limiter, store, clock) = breakable();
        store.break_(DOWN);
        let policy = api(quota, OnFailure::Local { share: 0.25 });
        instances.push(Client::sharing(&limiter, policy));
        clocks.push(clock);
    }
    let mut admitted = 0;
    for _ in 0..300 {
        for client in &mut instances {
            admitted += client.exhaust().await.0;
        }
        clocks.iter().for_each(|clock| clock.advance(secs(1)));
    }
    // The burst, and one unit a second.
    assert!(admitted <= 60 + 299, "{admitted}");
    assert!(admitted >= 60 + 299 - 2 * 4, "{admitted}");
}

#[tokio::test]
async fn what_was_counted_here_is_kept_for_the_next_failure() {
    let (limiter, store, clock) = breakable();
    let mut client =
        Client::sharing(&limiter, api(Quota::per_minute(12), OnFailure::Local { share: 0.25 }));
    for admitted in [3, 0, 0, 0, 0] {
        store.break_(DOWN);
        assert_eq!(client.exhaust().await.0, admitted);
        store.mend();
        client.send().await;
    }
    clock.advance(secs(20));
    store.break_(DOWN);
    assert_eq!(client.exhaust().await.0, 1);
}

#[tokio::test]
async fn what_the_store_counted_is_not_what_is_counted_here() {
    let (limiter, store, _) = breakable();
    let mut client =
        Client::sharing(&limiter, api(Quota::per_minute(12), OnFailure::Local { share: 0.5 }));
    assert_eq!(client.exhaust().await.0, 12);
    store.break_(DOWN);
    let (passed, denied) = client.exhaust().await;
    assert_eq!(passed, 6);
    assert_eq!(x_fields(&denied)[..2], [Some(6), Some(0)]);
    // And the other way round.
    store.mend();
    assert_eq!(client.exhaust().await.0, 0);
}

#[tokio::test]
async fn all_limits_of_a_policy_have_their_share() {
    let policy = Policy::new("api")
        .limit(tollgate::Global, Limit::new("minute", Quota::per_minute(40)))
        .limit(tollgate::Global, Limit::new("day", Quota::per_day(20)))
        .on_failure(OnFailure::Local { share: 0.25 })
        .build()
        .unwrap();
    let (limiter, store, _) = breakable();
    store.break_(DOWN);
    let (passed, denied) = Client::sharing(&limiter, policy).exhaust().await;
    assert_eq!(passed, 5);
    let policy = denied.headers()["ratelimit-policy"].to_str().unwrap();
    assert_eq!(policy, r#""minute";q=10;w=60, "day";q=5;w=86400"#);
}

#[tokio::test]
async fn the_memory_that_this_takes_is_capped() {
    let fallback = tollgate::MemoryStore::builder().capacity(100).build();
    let store = crate::support::Flaky::broken(memory().0, DOWN);
    let limiter = Limiter::builder(store).fallback(fallback.clone()).build();
    let path = tollgate::key::from_borrowed(|head| Some(head.uri().path()));
    let policy = Policy::new("api").limit(path, Limit::new("tries", Quota::per_hour(9)));
    let policy = policy.on_failure(OnFailure::Local { share: 1.0 }).build().unwrap();
    for number in 0..2_000 {
        let request = http::Request::get(format!("/{number}")).body(()).unwrap();
        let ruling = limiter.decide(&policy, tollgate::RequestHead::new(&request)).await;
        assert!(matches!(ruling, tollgate::Ruling::Admit(_)));
        assert!(fallback.len() <= 100);
    }
    assert!(!fallback.is_empty());
}
