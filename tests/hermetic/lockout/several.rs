//! Locks where a limit counts several keys, and where several limits have locks.

use http::StatusCode;
use tollgate::{Decision, Key, Limit, Limiter, Lockout, Policy, Quota};

use super::tries;
use crate::support::{about, decide, limiters, secs};

fn api(limit: Limit) -> Policy {
    Policy::new("api").limit(about(), limit).build().unwrap()
}

async fn locked(limiter: &Limiter, policy: &Policy, keys: &[&str]) -> Vec<bool> {
    let mut locked = Vec::new();
    for key in keys {
        let look = limiter.look(policy.limit("tries").unwrap(), *key).await.unwrap();
        locked.push(look.verdicts()[0].locked().is_some());
    }
    locked
}

#[tokio::test]
async fn only_the_keys_that_were_denied_are_counted() {
    for (limiter, _clock) in limiters() {
        let policy = api(tries(2));
        for _ in 0..2 {
            decide(&limiter, &policy, &["b"]).await;
        }
        for keys in [["a", "b", "c"], ["b", "c", "a"]] {
            assert!(!decide(&limiter, &policy, &keys).await.is_allowed());
        }
        assert_eq!(locked(&limiter, &policy, &["a", "b", "c"]).await, [false, true, false]);
        assert!(decide(&limiter, &policy, &["a", "c"]).await.is_allowed());
    }
}

#[tokio::test]
async fn a_locked_key_denies_the_request_and_costs_the_others_nothing_not_even_a_denial() {
    for (limiter, clock) in limiters() {
        let policy = api(tries(1));
        for _ in 0..3 {
            decide(&limiter, &policy, &["b"]).await;
        }
        clock.advance(secs(60));
        for _ in 0..5 {
            let denied = decide(&limiter, &policy, &["a", "b"]).await;
            assert!(denied.is_locked());
            assert_eq!(denied.binding().unwrap().key_index(), 1);
            let locked = denied.verdicts().iter().map(|key| key.locked());
            assert_eq!(locked.collect::<Vec<_>>(), [None, Some(secs(540))]);
        }
        assert_eq!(locked(&limiter, &policy, &["a", "b"]).await, [false, true]);
        assert!(decide(&limiter, &policy, &["a"]).await.is_allowed());
        assert!(decide(&limiter, &policy, &["a"]).await.is_allowed());
    }
}

#[tokio::test]
async fn the_wait_is_that_of_the_lock_that_ends_last() {
    for (limiter, clock) in limiters() {
        let policy = api(tries(1));
        for key in ["a", "b"] {
            for _ in 0..3 {
                decide(&limiter, &policy, &[key]).await;
            }
            clock.advance(secs(100));
        }
        for keys in [["a", "b"], ["b", "a"]] {
            let denied = decide(&limiter, &policy, &keys).await;
            assert_eq!(denied.retry_after(), Some(secs(500)));
        }
    }
}

#[tokio::test]
async fn each_limit_has_its_own_lock_and_its_own_status() {
    let with = |name: &'static str, units, length, status: u16| {
        let lockout = Lockout::new(secs(length)).status(StatusCode::from_u16(status).unwrap());
        Limit::new(name, Quota::per_minute(units)).lockout(lockout)
    };
    for (limiter, clock) in limiters() {
        let (few, many) = (with("few", 1, 100, 403), with("many", 2, 200, 423));
        let both = async || -> Decision {
            let pairs = [(&few, Key::from("user")), (&many, Key::from("user"))];
            limiter.check_all(pairs).await.unwrap()
        };
        assert!(both().await.is_allowed());
        let locked = |decision: &Decision| {
            decision.verdicts().iter().map(|limit| limit.locked().is_some()).collect::<Vec<_>>()
        };
        let decision = both().await;
        assert_eq!((decision.status().as_u16(), locked(&decision)), (403, vec![true, false]));
        for _ in 0..2 {
            limiter.check(&many, "user").await.unwrap();
        }
        let decision = both().await;
        assert_eq!((decision.status().as_u16(), locked(&decision)), (423, vec![true, true]));
        clock.advance(secs(100));
        let decision = both().await;
        assert_eq!((decision.status().as_u16(), locked(&decision)), (423, vec![false, true]));
        clock.advance(secs(100));
        assert!(both().await.is_allowed());
    }
}

#[tokio::test]
async fn eight_limits_of_eight_keys_with_locks_are_decided_together() {
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for (limiter, _clock) in limiters() {
        let limits = (0..8).map(|at| {
            let units = if at == 7 { 1 } else { 9 };
            let limit = Limit::new(format!("l{at}"), Quota::per_minute(units));
            limit.lockout(Lockout::new(secs(600)))
        });
        let policy = limits.fold(Policy::new("api"), |policy, limit| policy.limit(about(), limit));
        let policy = policy.build().unwrap();
        let decision = decide(&limiter, &policy, &keys).await;
        assert!(decision.is_allowed());
        assert_eq!(decision.verdicts().len(), 64);
        decision.refund().await.unwrap();
        assert!(decide(&limiter, &policy, &keys).await.is_allowed());
        let denied = decide(&limiter, &policy, &keys).await;
        let locked = denied.verdicts().iter().filter(|verdict| verdict.locked().is_some());
        assert!(locked.clone().all(|verdict| verdict.name() == "l7"));
        assert_eq!(locked.count(), 8);
    }
}
