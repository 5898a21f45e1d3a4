//! What a changed quota means for those who owe something: as the documentation of `Limit` says.

use std::time::Duration;

use tollgate::{Decision, Limit, Limiter, ManualClock, Quota};

use crate::support::{Client, limiter, number, policy, secs};

/// A service whose quota is changed while its store lives on.
struct Deployment {
    limiter: Limiter,
    clock: ManualClock,
}

impl Deployment {
    fn new() -> Self {
        let (limiter, clock) = limiter();
        Self { limiter, clock }
    }

    async fn take(&self, quota: Quota, units: u64) -> Decision {
        let limit = Limit::new("requests", quota).cost(units);
        self.limiter.check(&limit, "user").await.unwrap()
    }

    async fn left(&self, quota: Quota) -> u64 {
        self.take(quota, 0).await.remaining().unwrap()
    }

    /// How long until a unit is there.
    async fn wait(&self, quota: Quota) -> Duration {
        self.take(quota, 0).await.binding().unwrap().standing().wait().unwrap()
    }
}

#[tokio::test]
async fn a_lowered_limit_leaves_none_of_the_old_units_usable() {
    let (old, new) = (Quota::per_minute(1_000), Quota::per_minute(10));
    let cases = [(0, 10), (1, 9), (100, 9), (101, 8), (500, 5), (950, 0), (999, 0), (1_000, 0)];
    for (taken, left) in cases {
        let service = Deployment::new();
        service.take(old, taken).await;
        assert_eq!(service.left(new).await, left, "after {taken}");
        let mut passed = 0;
        for _ in 0..1_010 {
            passed += u64::from(service.take(new, 1).await.is_allowed());
        }
        assert_eq!(passed, left, "after {taken}");
    }
}

#[tokio::test]
async fn a_raised_limit_refills_at_its_new_rate_at_once() {
    let (old, new) = (Quota::per_minute(10), Quota::per_minute(1_000));
    let service = Deployment::new();
    assert!(service.take(old, 10).await.is_allowed());
    assert_eq!(service.wait(old).await, secs(6));
    assert_eq!(service.wait(new).await, Duration::from_millis(60));
    service.clock.advance(secs(6));
    assert_eq!(service.left(new).await, 100);
    assert_eq!(service.left(old).await, 1);
}

#[tokio::test]
async fn a_raised_limit_gives_whoever_has_half_the_half_of_the_new() {
    let service = Deployment::new();
    service.take(Quota::per_minute(10), 5).await;
    assert_eq!(service.left(Quota::per_minute(1_000)).await, 500);
    // Also where all is written otherwise, but refills in the same time.
    assert_eq!(service.left(Quota::per_hour(600).burst(10)).await, 5);
}

#[tokio::test]
async fn another_refill_time_begins_anew_and_grants_one_burst_at_most() {
    let old = Quota::per_minute(10);
    let others =
        [Quota::per_hour(10), Quota::per_minute(10).burst(5), Quota::per_minute(20).burst(10)];
    for new in others {
        let service = Deployment::new();
        assert!(service.take(old, 10).await.is_allowed());
        assert_eq!(service.left(new).await, new.capacity(), "{new}");
        assert!(service.take(new, new.capacity()).await.is_allowed());
        assert!(!service.take(new, 1).await.is_allowed());
        // Going back finds what was owed before, and forgives nothing.
        assert_eq!(service.left(old).await, 0, "{new}");
    }
}

#[tokio::test]
async fn a_changed_cost_goes_on_with_the_same_bucket() {
    let service = Deployment::new();
    let quota = Quota::per_minute(10);
    service.take(quota, 3).await;
    assert_eq!(service.take(quota, 5).await.remaining(), Some(2));
}

#[tokio::test]
async fn an_unchanged_limit_keeps_its_state_when_its_policy_is_built_again() {
    let (limiter, _) = limiter();
    for left in [4, 3, 2] {
        let same = Limit::new("same", Quota::per_minute(5));
        let other = Limit::new("other", Quota::per_hour(100 + left));
        let response = Client::sharing(&limiter, policy("api", [same, other])).send().await;
        assert_eq!(number(&response, "x-ratelimit-remaining"), Some(left));
    }
}
