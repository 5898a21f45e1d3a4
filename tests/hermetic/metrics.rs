//! What is counted: few series, however many clients there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Request;
use metrics_util::{
    MetricKind,
    debugging::{DebugValue, DebuggingRecorder},
};
use tollgate::{
    Global, Header, Limit, Limiter, Lockout, ManualClock, MemoryStore, OnFailure, OnMissingKey,
    Policy, PolicyBuilder, Quota, RequestHead, Store, StoreErrorKind,
};

use crate::support::{Broken, Flaky, Later, Remote, about, decide as decide_one, memory, secs};

/// What was recorded, as `kind name{labels}`, with counts.
type Recorded = BTreeMap<String, u64>;

fn record(run: impl AsyncFnOnce()) -> Recorded {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(run()));
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    let lines = metrics.map(|(composite, _, _, value)| {
        let (kind, key) = composite.into_parts();
        let labels: BTreeSet<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let labels = Vec::from_iter(labels).join(",");
        let count = match value {
            DebugValue::Counter(count) => count,
            // Whole numbers that are not negative.
            DebugValue::Gauge(value) => value.into_inner() as u64,
            DebugValue::Histogram(values) => {
                assert!(values.iter().all(|secs| (0.0..60.0).contains(&secs.into_inner())));
                values.len() as u64
            }
        };
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        (format!("{kind} {}{{{labels}}}", key.name()), count)
    });
    lines.collect()
}

fn recorded<const N: usize>(lines: [(&str, u64); N]) -> Recorded {
    lines.map(|(line, count)| (line.to_owned(), count)).into()
}

fn api() -> PolicyBuilder {
    Policy::new("api").limit(Global, Limit::new("tries", Quota::per_day(2)))
}

async fn decide(store: impl Store, policy: PolicyBuilder, paths: impl IntoIterator<Item = String>) {
    let limiter = Limiter::builder(store).fallback(MemoryStore::new()).breaker(None).build();
    let policy = policy.build().unwrap();
    for path in paths {
        let request = Request::get(path).body(()).unwrap();
        let _ = limiter.decide(&policy, RequestHead::new(&request)).await;
    }
}

fn five() -> impl Iterator<Item = String> {
    (0..5).map(|number| format!("/secret/{number}"))
}

#[test]
fn decisions_are_counted_by_policy_and_outcome() {
    let seen = record(async || decide(memory().0, api(), five()).await);
    assert_eq!(
        seen,
        recorded([
            ("counter tollgate_requests_total{outcome=allowed,policy=api}", 2),
            ("counter tollgate_requests_total{outcome=denied,policy=api}", 3),
        ])
    );
}

#[test]
fn locked_requests_are_told_from_denied_ones_and_handles_are_no_requests() {
    let seen = record(async || {
        let (limiter, lockout) = (Limiter::new(memory().0), Lockout::new(secs(600)).after(2));
        let tries = Limit::new("tries", Quota::per_minute(2)).lockout(lockout);
        let policy = Policy::new("api").limit(about(), tries).build().unwrap();
        for keys in [&["a", "b"][..], &["a"], &["a", "b"], &["a", "b"], &["b", "a"]] {
            let decision = decide_one(&limiter, &policy, keys).await;
            decision.look().await.unwrap();
            decision.charge("tries", 0).await.unwrap();
        }
    });
    assert_eq!(
        seen,
        recorded([
            ("counter tollgate_requests_total{outcome=allowed,policy=api}", 2),
            ("counter tollgate_requests_total{outcome=denied,policy=api}", 1),
            ("counter tollgate_requests_total{outcome=locked,policy=api}", 2),
        ])
    );
}

#[test]
fn requests_that_a_failing_store_let_pass_or_turned_away_are_told_from_others() {
    for (on_failure, outcome) in
        [(OnFailure::Allow, "error_allowed"), (OnFailure::Deny, "error_denied")]
    {
        let seen = record(async || {
            let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::ReadOnly));
            decide(store, api().on_failure(on_failure), five()).await;
        });
        let requests = format!("counter tollgate_requests_total{{outcome={outcome},policy=api}}");
        let errors = "counter tollgate_store_errors_total{kind=read_only}";
        assert_eq!(seen, recorded([(&requests, 5), (errors, 5)]));
    }
}

#[test]
fn what_this_instance_decides_alone_is_counted_as_decided_beside_the_errors() {
    let seen = record(async || {
        let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Timeout));
        decide(store, api().on_failure(OnFailure::Local { share: 0.5 }), five()).await;
    });
    assert_eq!(
        seen,
        recorded([
            ("counter tollgate_requests_total{outcome=allowed,policy=api}", 1),
            ("counter tollgate_requests_total{outcome=denied,policy=api}", 4),
            ("counter tollgate_store_errors_total{kind=timeout}", 5),
        ])
    );
}

#[test]
fn requests_without_a_key_are_counted_as_skipped_or_as_such() {
    let cases = [(OnMissingKey::Skip, "skipped"), (OnMissingKey::Reject, "no_key")];
    for (on_missing_key, outcome) in cases {
        let seen = record(async || {
            let tenant = Header::from_static("x-tenant");
            let policy = Policy::new("api").limit(tenant, Limit::new("l", Quota::per_day(2)));
            decide(memory().0, policy.on_missing_key(on_missing_key), five()).await;
        });
        let requests = format!("counter tollgate_requests_total{{outcome={outcome},policy=api}}");
        assert_eq!(seen, recorded([(&requests, 5)]));
    }
}

#[test]
fn the_time_that_a_store_takes_is_measured_where_somebody_waits_for_it() {
    let seen = record(async || decide(Later(memory().0), api(), five()).await);
    assert_eq!(seen["histogram tollgate_store_duration_seconds{}"], 5);
}

#[test]
fn checks_without_http_are_counted_too() {
    let seen = record(async || {
        let limiter = Limiter::new(memory().0);
        let limit = Limit::new("mails", Quota::per_day(2));
        for _ in 0..5 {
            limiter.check(&limit, "secret-user").await.unwrap();
        }
    });
    assert_eq!(
        seen,
        recorded([
            ("counter tollgate_requests_total{outcome=allowed,policy=-}", 2),
            ("counter tollgate_requests_total{outcome=denied,policy=-}", 3),
        ])
    );
}

#[test]
fn denials_that_are_remembered_are_counted_as_denied_and_take_no_time_of_the_store() {
    for remembered in [true, false] {
        let seen = record(async || {
            let clock = ManualClock::new();
            let store = Remote::new(clock.clone());
            let limiter = Limiter::builder(Later(store.clone()));
            let limiter = if remembered { limiter } else { limiter.remember_denials(secs(0)) };
            let fallback = MemoryStore::builder().clock(clock).build();
            let limiter = limiter.fallback(fallback).build();
            let trial = Limit::new("trial", Quota::per_day(1)).shadow();
            let policy = api().limit(Global, trial).build().unwrap();
            let limit = Limit::new("mails", Quota::per_day(1));
            for _ in 0..10 {
                let request = Request::new(());
                let _ = limiter.decide(&policy, RequestHead::new(&request)).await;
                limiter.check(&limit, "user").await.unwrap();
            }
            assert_eq!(store.asked(), if remembered { 5 } else { 20 });
        });
        assert_eq!(
            seen,
            recorded([
                ("counter tollgate_requests_total{outcome=allowed,policy=-}", 1),
                ("counter tollgate_requests_total{outcome=allowed,policy=api}", 2),
                ("counter tollgate_requests_total{outcome=denied,policy=-}", 9),
                ("counter tollgate_requests_total{outcome=denied,policy=api}", 8),
                // Once with the others admitting it.
                ("counter tollgate_requests_total{outcome=shadow_denied,policy=api}", 1),
                ("histogram tollgate_store_duration_seconds{}", if remembered { 5 } else { 20 }),
            ])
        );
    }
}

#[test]
fn the_breaker_shows_its_state_and_whom_it_turned_back() {
    for mended in [false, true] {
        let seen = record(async || {
            let clock = ManualClock::new();
            let store = Flaky::broken(memory().0, Broken::Now(StoreErrorKind::Unreachable));
            let fallback = MemoryStore::builder().clock(clock.clone()).build();
            let limiter = Limiter::builder(store.clone()).fallback(fallback).build();
            let limit = Limit::new("mails", Quota::per_day(2));
            for _ in 0..8 {
                limiter.check(&limit, "user").await.unwrap_err();
                clock.advance(Duration::from_millis(4));
            }
            if mended {
                store.mend();
                clock.advance(secs(1));
                limiter.check(&limit, "user").await.unwrap();
            }
        });
        assert_eq!(seen["gauge tollgate_breaker_state{}"], if mended { 0 } else { 2 });
        assert_eq!(seen["counter tollgate_store_errors_total{kind=unreachable}"], 5);
        assert_eq!(seen["counter tollgate_store_errors_total{kind=breaker_open}"], 3);
    }
}

#[test]
fn a_thousand_clients_and_paths_make_no_more_series_than_one() {
    let run = |clients: u64| {
        record(async move || {
            let store = Flaky::new(memory().0);
            let path = tollgate::key::from_borrowed(|head| Some(head.uri().path()));
            let policy = Policy::new("api").limit(path, Limit::new("tries", Quota::per_day(1)));
            let paths = (0..clients)
                .flat_map(|client| [format!("/secret/{client}"), format!("/secret/{client}")]);
            decide(store, policy, paths).await;
        })
    };
    let (one, many) = (run(1), run(1_000));
    assert!(one.keys().eq(many.keys()), "{many:?}");
    assert!(!many.keys().any(|line| line.contains("secret")), "{many:?}");
}
