//! All limits of a request are charged, or none is.

use tollgate::{Limit, Quota};

use crate::support::limiter;

#[tokio::test]
async fn ten_thousand_requests_that_the_second_limit_denies_have_cost_the_first_nothing() {
    let (limiter, _) = limiter();
    let first = Limit::new("first", Quota::per_day(100_000));
    let second = Limit::new("second", Quota::per_day(1));
    let both = async || limiter.check_all([(&first, "user"), (&second, "user")]).await.unwrap();
    assert!(both().await.is_allowed());
    for _ in 0..10_000 {
        let decision = both().await;
        assert!(!decision.is_allowed());
        let [of_first, of_second] = decision.verdicts() else { panic!("two limits") };
        assert!(of_first.standing().fits() && !of_second.standing().fits());
        assert_eq!(of_first.standing().remaining(), 99_999);
    }
    assert_eq!(limiter.check(&first, "user").await.unwrap().remaining(), Some(99_998));
}

#[tokio::test]
async fn whichever_limit_denies_no_other_is_charged() {
    for empty in 0..8 {
        let (limiter, _) = limiter();
        let cost = |at| if at == empty { 6 } else { 1 };
        let limits: Vec<Limit> = (0..8)
            .map(|at| Limit::new(format!("l{at}"), Quota::per_day(5)).cost(cost(at)))
            .collect();
        let pairs = || limits.iter().map(|limit| (limit, "user"));
        for _ in 0..20 {
            assert!(!limiter.check_all(pairs()).await.unwrap().is_allowed());
        }
        for (at, limit) in limits.iter().enumerate() {
            let left = limiter.check(&limit.clone().cost(0), "user").await.unwrap();
            assert_eq!(left.remaining(), Some(5), "{at} of {empty}");
        }
    }
}

#[tokio::test]
async fn a_look_always_passes_charges_nothing_and_tells_the_truth() {
    let (limiter, _) = limiter();
    let limit = Limit::new("tries", Quota::per_day(3));
    for left in [3, 2, 1, 0] {
        for _ in 0..10 {
            let look = limiter.check(&limit.clone().cost(0), "user").await.unwrap();
            assert!(look.is_allowed());
            assert_eq!(look.remaining(), Some(left));
            let wait = look.binding().unwrap().standing().wait().unwrap();
            assert_eq!(wait.is_zero(), left > 0);
        }
        assert_eq!(limiter.check(&limit, "user").await.unwrap().is_allowed(), left > 0);
    }
}

#[tokio::test]
async fn a_full_bucket_grants_all_it_holds_at_once_and_no_more() {
    for (cost, left) in [(4, Some(1)), (5, Some(0)), (6, None), (u64::MAX, None)] {
        let (limiter, _) = limiter();
        let limit = Limit::new("tries", Quota::per_day(5)).cost(cost);
        let decision = limiter.check(&limit, "user").await.unwrap();
        assert_eq!(decision.is_allowed(), left.is_some(), "{cost}");
        assert_eq!(decision.remaining(), left.or(Some(5)), "{cost}");
        // What can never pass has no time at which it will.
        let wait = decision.binding().unwrap().standing().wait();
        assert_eq!(wait.is_some(), left.is_some(), "{cost}");
    }
}
