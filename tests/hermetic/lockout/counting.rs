//! Which denials count.

use tollgate::{Key, Limit, Lockout, Outcome, Quota};

use super::{MICRO, ask, denied, locked, look, tries};
use crate::support::{ALGORITHMS, left, limiters, secs};

#[tokio::test]
async fn the_denial_of_that_number_locks_and_none_before_it() {
    for after in [1, 2, 3, 10] {
        for (limiter, _clock) in limiters() {
            let limit = tries(after);
            for _ in 0..2 {
                assert!(ask(&limiter, &limit).await.is_allowed());
            }
            for denial in 1..=after {
                assert_eq!(locked(&limiter, &limit).await, None, "{denial} of {after}");
                let decision = ask(&limiter, &limit).await;
                assert_eq!(decision.outcome(), Outcome::Denied);
                assert_eq!(decision.is_locked(), denial == after, "{denial} of {after}");
                let wait = if denial == after { 600 } else { 30 };
                assert_eq!(decision.retry_after(), Some(secs(wait)), "{denial} of {after}");
            }
            assert_eq!(locked(&limiter, &limit).await, Some(secs(600)), "{after}");
        }
    }
}

#[tokio::test]
async fn denials_of_every_algorithm_count() {
    for algorithm in ALGORITHMS {
        for (limiter, clock) in limiters() {
            let limit = tries(2).algorithm(algorithm);
            assert!(denied(&limiter, &limit, 2).await.is_locked(), "{algorithm:?}");
            clock.advance(secs(600) - MICRO);
            assert!(ask(&limiter, &limit).await.is_locked(), "{algorithm:?}");
            clock.advance(MICRO);
            assert!(ask(&limiter, &limit).await.is_allowed(), "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn denials_are_forgotten_a_refill_after_the_first_of_them() {
    for (limiter, clock) in limiters() {
        let limit = tries(3);
        denied(&limiter, &limit, 1).await;
        clock.advance(secs(60) - MICRO);
        denied(&limiter, &limit, 1).await;
        clock.advance(MICRO);
        // Of the two, the second is as forgotten as the first.
        for _ in 0..2 {
            assert!(!denied(&limiter, &limit, 1).await.is_locked());
        }
        assert!(denied(&limiter, &limit, 1).await.is_locked());
    }
}

#[tokio::test]
async fn denials_within_a_refill_of_the_first_are_remembered_to_its_end() {
    for (limiter, clock) in limiters() {
        let limit = tries(3);
        denied(&limiter, &limit, 2).await;
        clock.advance(secs(60) - MICRO);
        assert!(denied(&limiter, &limit, 1).await.is_locked());
    }
}

#[tokio::test]
async fn what_is_admitted_between_denials_does_not_make_them_forgotten() {
    for (limiter, clock) in limiters() {
        let limit = tries(2);
        denied(&limiter, &limit, 1).await;
        clock.advance(secs(30));
        assert!(ask(&limiter, &limit).await.is_allowed());
        assert!(ask(&limiter, &limit).await.is_locked());
    }
}

#[tokio::test]
async fn admitted_requests_are_no_denials() {
    for (limiter, clock) in limiters() {
        let limit = tries(1);
        for _ in 0..50 {
            assert!(ask(&limiter, &limit).await.is_allowed());
            clock.advance(secs(30));
        }
    }
}

#[tokio::test]
async fn a_look_is_no_denial_and_shows_the_lock() {
    for (limiter, clock) in limiters() {
        let limit = tries(2);
        denied(&limiter, &limit, 1).await;
        for _ in 0..5 {
            let decision = look(&limiter, &limit).await;
            assert_eq!(decision.verdicts()[0].locked(), None);
            assert_eq!(decision.look().await.unwrap().verdicts()[0].locked(), None);
        }
        let denied = denied(&limiter, &limit, 1).await;
        clock.advance(secs(50));
        for look in [look(&limiter, &limit).await, denied.look().await.unwrap()] {
            assert_eq!(look.outcome(), Outcome::Allowed);
            assert!(look.is_locked());
            assert_eq!((look.wait(), look.retry_after()), (Some(secs(550)), None));
            let verdict = &look.verdicts()[0];
            assert_eq!(verdict.locked(), Some(secs(550)));
            assert_eq!(verdict.standing().remaining(), 0);
            assert_eq!(verdict.standing().wait(), Some(secs(550)));
            assert_eq!(verdict.standing().reset(), secs(550));
        }
    }
}

#[tokio::test]
async fn what_another_limit_denies_is_no_denial_of_this_one() {
    for (limiter, _clock) in limiters() {
        let (limit, narrow) = (tries(1), Limit::new("narrow", Quota::per_minute(1)));
        for turn in [false, true] {
            let user = Key::from(u64::from(turn));
            for admitted in [true, false, false, false] {
                let mut pairs = [(&limit, user.clone()), (&narrow, user.clone())];
                if turn {
                    pairs.reverse();
                }
                let decision = limiter.check_all(pairs).await.unwrap();
                assert_eq!(decision.is_allowed(), admitted);
                assert!(!decision.is_locked());
            }
            assert_eq!(left(&limiter, &limit, user).await, 1);
        }
    }
}

#[tokio::test]
async fn a_denial_counts_at_this_limit_whatever_the_others_say() {
    for (limiter, _clock) in limiters() {
        let narrow = Limit::new("narrow", Quota::per_hour(1));
        let limit = Limit::new("tries", Quota::per_minute(1)).lockout(Lockout::new(secs(60)));
        let pairs = || [(&narrow, "user"), (&limit, "user")];
        assert!(limiter.check_all(pairs()).await.unwrap().is_allowed());
        limiter.check_all(pairs()).await.unwrap();
        assert_eq!(locked(&limiter, &limit).await, Some(secs(60)));
    }
}

#[tokio::test]
async fn a_request_that_could_never_pass_is_a_denial_and_has_no_wait_while_locked() {
    for (limiter, _clock) in limiters() {
        let limit = tries(1).cost(3);
        for _ in 0..2 {
            let decision = ask(&limiter, &limit).await;
            assert_eq!(decision.retry_after(), None);
            assert!(decision.is_locked());
        }
        assert_eq!(locked(&limiter, &tries(1)).await, Some(secs(600)));
    }
}

#[tokio::test]
async fn a_handle_that_is_denied_more_counts_once_and_finds_the_lock() {
    for (limiter, _clock) in limiters() {
        let limit = tries(2);
        let decision = ask(&limiter, &limit).await;
        assert!(!decision.charge("tries", 2).await.unwrap().is_locked());
        assert!(decision.charge("tries", 2).await.unwrap().is_locked());
        // While locked, there is nothing to take, though the limit has a unit.
        let denied = decision.charge("tries", 1).await.unwrap();
        assert!(denied.is_locked() && !denied.is_allowed());
        assert!(!ask(&limiter, &limit).await.is_allowed());
    }
}

#[tokio::test]
async fn a_refund_is_no_pardon() {
    for (limiter, _clock) in limiters() {
        let limit = tries(1);
        let decision = ask(&limiter, &limit).await;
        let denied = denied(&limiter, &limit, 1).await;
        decision.refund().await.unwrap();
        denied.refund().await.unwrap();
        assert!(ask(&limiter, &limit).await.is_locked());
        assert_eq!(locked(&limiter, &limit).await, Some(secs(600)));
    }
}
