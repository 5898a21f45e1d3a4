use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::support::{Load, Report};

#[tokio::test]
async fn calls_are_counted_in_the_phase_in_which_they_began() {
    let load = Load::new(3).pace(Duration::from_millis(1)).start(|caller| async move {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if caller == 0 { "denied" } else { "allowed" }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    load.phase("frozen");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let report: Report = load.stop().await;

    println!("{report}");
    for name in ["start", "frozen"] {
        let phase = report.phase(name);
        assert!(phase.count("denied") > 0);
        assert_eq!(phase.count("denied") + phase.count("allowed"), phase.total());
        assert!(Duration::from_millis(2) <= phase.p50());
        assert!(phase.p50() <= phase.p99() && phase.p99() <= phase.max());
    }
}

#[tokio::test]
async fn a_phase_lasts_until_most_calls_have_an_outcome() {
    let calls = Arc::new(AtomicU64::new(0));
    let load = Load::new(1).pace(Duration::from_millis(1)).start(move |_| {
        let late = calls.fetch_add(1, Ordering::Relaxed) >= 10;
        async move { if late { "allowed" } else { "denied" } }
    });
    load.until_most("allowed").await;
    let report = load.stop().await;
    assert_eq!(report.phase("start").count("denied"), 10);
    assert!(report.phase("start").count("allowed") > 20);
}

#[tokio::test]
async fn a_count_is_kept_over_all_callers() {
    let report = Load::new(7).count(1000).start(|_| async { "done" }).finish().await;
    assert_eq!(report.phase("start").count("done"), 1000);
    assert_eq!(report.to_string().lines().count(), 3);
}

#[tokio::test]
#[should_panic(expected = "a call hung in phase `stuck`")]
async fn a_call_that_hangs_fails_the_test() {
    let load = Load::new(2).hang_bound(Duration::from_millis(20));
    let running = load.start(|_| std::future::pending());
    running.phase("stuck");
    running.finish().await;
}
