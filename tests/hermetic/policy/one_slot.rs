//! Policies whose states lie in one slot of a cluster, as the names of the states say.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use tollgate::{
    Algorithm, Global, Key, Limit, Limiter, Lockout, ManualClock, OnFailure, Policy, PolicyBuilder,
    PolicyHandle, Quota, Store, Tier,
    store::{Hit, Refund, Reply},
};

use crate::support::{Remote, about, decide, left, limiters, secs};

/// A store that notes the names of all that it is asked about.
#[derive(Clone, Debug)]
struct Noting {
    store: Remote,
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl Noting {
    fn new() -> Self {
        Self { store: Remote::new(ManualClock::new()), names: Arc::default() }
    }

    fn note<'n>(&self, names: impl Iterator<Item = &'n [u8]>) {
        let names = names.map(|name| String::from_utf8(name.to_owned()).unwrap());
        self.names.lock().unwrap().extend(names);
    }

    /// What was noted since this was called last.
    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.names.lock().unwrap()).into_iter().collect()
    }
}

impl Store for Noting {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        self.note(hits.iter().map(|hit| hit.key));
        self.store.acquire(hits)
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.note(refunds.iter().map(|refund| refund.key));
        self.store.refund(refunds)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.note(keys.iter().copied());
        self.store.reset(keys)
    }
}

fn tries() -> Limit {
    Limit::new("tries", Quota::per_minute(3))
}

fn login(limit: Limit) -> PolicyBuilder {
    Policy::new("login").limit(about(), limit)
}

#[tokio::test]
async fn each_state_and_each_lock_has_the_name_of_the_policy_in_braces() {
    let store = Noting::new();
    let limiter = Limiter::new(store.clone());
    let locking = tries().lockout(Lockout::new(secs(3_600)));
    let builder = || login(locking.clone()).limit(Global, Limit::new("all", Quota::per_hour(9)));
    decide(&limiter, &builder().build().unwrap(), &["a"]).await;
    let spread =
        ["{global:all}:login/all:tb3600s", "{id:a}:login/tries:lk", "{id:a}:login/tries:tb60s"];
    assert_eq!(store.noted(), spread);

    let policy = builder().one_slot().build().unwrap();
    let all = "{login}global:all:login/all:tb3600s";
    let a = ["{login}id:a:login/tries:lk", "{login}id:a:login/tries:tb60s"];
    let b = ["{login}id:b:login/tries:lk", "{login}id:b:login/tries:tb60s"];
    let decision = decide(&limiter, &policy, &["a", "b"]).await;
    assert_eq!(store.noted(), [all, a[0], a[1], b[0], b[1]]);
    let keys: Vec<_> = (0..4).map(|place| decision.key(place)).collect();
    assert_eq!(keys, [Some("id:a"), Some("id:b"), Some("global:all"), None]);

    let more = decision.charge("all", 1).await.unwrap();
    assert_eq!((more.key(0), store.noted()), (Some("global:all"), vec![all.to_owned()]));
    let more = decision.charge("tries", 1).await.unwrap();
    assert_eq!((more.key(0), more.key(1)), (Some("id:a"), Some("id:b")));
    assert_eq!(store.noted(), [a[0], a[1], b[0], b[1]]);
    assert!(more.is_allowed());
    decision.refund().await.unwrap();
    assert_eq!(store.noted(), [all, a[1], b[1]]);

    let tries = policy.limit("tries").unwrap();
    assert_eq!(left(&limiter, tries, "b").await, 2);
    assert_eq!(store.noted(), b);
    limiter.give_back(tries, "a", 1).await.unwrap();
    assert_eq!(store.noted(), [a[1]]);
    limiter.reset(tries, "a").await.unwrap();
    assert_eq!(store.noted(), a);
}

#[tokio::test]
async fn quotas_of_tiers_and_keys_lie_there_too() {
    let store = Noting::new();
    let limiter = Limiter::new(store.clone());
    let limit = tries().tier("pro", Quota::per_hour(9)).override_key("b", Quota::per_day(9));
    let policy = login(limit).one_slot().build().unwrap();
    let pro = Tier::new("pro");
    for (tier, key, expected) in [
        (None, "a", "{login}id:a:login/tries:tb60s"),
        (Some(&pro), "a", "{login}id:a:login/tries:tb3600s"),
        (Some(&pro), "b", "{login}id:b:login/tries:tb86400s"),
    ] {
        let limit = limiter.limit_for(&policy, "tries", tier, &key.into()).unwrap();
        limiter.check(&limit, key).await.unwrap();
        assert_eq!(store.noted(), [expected]);
    }
}

#[tokio::test]
async fn a_limit_that_leaves_its_policy_leaves_the_slot() {
    let store = Noting::new();
    let limiter = Limiter::new(store.clone());
    let policy = login(tries()).one_slot().build().unwrap();
    let limit = policy.limit("tries").unwrap();
    let api = Policy::new("api").limit(about(), limit.clone()).build().unwrap();
    decide(&limiter, &api, &["a"]).await;
    assert_eq!(store.noted(), ["{id:a}:api/tries:tb60s"]);
    limiter.check(&limit.clone().algorithm(Algorithm::TokenBucket), "a").await.unwrap();
    assert_eq!(store.noted(), ["{id:a}:-/tries:tb60s"]);
    // One that only costs something else stays.
    limiter.check(&limit.clone().cost(2), "a").await.unwrap();
    assert_eq!(store.noted(), ["{login}id:a:login/tries:tb60s"]);
}

#[tokio::test]
async fn states_in_one_slot_and_others_do_not_meet() {
    for (limiter, _clock) in limiters() {
        let here = login(tries()).one_slot().build().unwrap();
        let spread = login(tries()).build().unwrap();
        let here = here.limit("tries").unwrap();
        let spread = spread.limit("tries").unwrap();
        let keys = [
            Key::from("a"),
            Key::from("a:login/tries"),
            Key::from("a:login/tries:tb60s"),
            Key::from("login"),
            Key::from("login}id:a"),
            Key::new("login}id", "a"),
            Key::new("login", ""),
            Key::new("login", "id:a"),
            Key::new("", "a"),
            Key::from("a").and("b"),
            Key::from("a,id:b"),
        ];
        for key in &keys {
            limiter.check(&here.clone().cost(2), key.clone()).await.unwrap();
        }
        for key in &keys {
            assert_eq!(left(&limiter, here, key.clone()).await, 1, "{}", key.as_str());
            assert_eq!(left(&limiter, spread, key.clone()).await, 3, "{}", key.as_str());
        }
    }
}

#[tokio::test]
async fn a_lock_holds_its_key_and_is_lifted_by_a_reset() {
    for (limiter, _clock) in limiters() {
        let policy = login(tries().lockout(Lockout::new(secs(3_600)))).one_slot().build().unwrap();
        let tries = policy.limit("tries").unwrap();
        for _ in 0..4 {
            decide(&limiter, &policy, &["a"]).await;
        }
        // Whatever is left.
        limiter.give_back(tries, "a", 3).await.unwrap();
        assert!(decide(&limiter, &policy, &["a"]).await.is_locked());
        assert!(decide(&limiter, &policy, &["b"]).await.is_allowed());
        limiter.reset(tries, "a").await.unwrap();
        assert!(decide(&limiter, &policy, &["a"]).await.is_allowed());
    }
}

#[tokio::test]
async fn a_policy_that_comes_to_one_slot_begins_anew() {
    for (limiter, _clock) in limiters() {
        let [spread, here] = [login(tries()), login(tries()).one_slot()];
        let [spread, here] = [spread, here].map(|policy| policy.build().unwrap());
        let policies = PolicyHandle::new(spread.clone());
        let mut remaining = Vec::new();
        for next in [&here, &here, &spread] {
            let policy = policies.load().policy("login").unwrap().clone();
            remaining.extend(decide(&limiter, &policy, &["a"]).await.remaining());
            policies.replace(next.clone());
        }
        let policy = policies.load().policy("login").unwrap().clone();
        remaining.extend(decide(&limiter, &policy, &["a"]).await.remaining());
        assert_eq!(remaining, [2, 2, 1, 1]);
    }
}

#[tokio::test]
async fn a_reset_also_forgets_what_was_counted_while_the_store_failed() {
    let store = Noting::new();
    let limiter = Limiter::new(store.clone());
    let policy = login(tries()).on_failure(OnFailure::Local { share: 1.0 }).one_slot();
    let policy = policy.build().unwrap();
    store.store.down(true);
    let mut allowed = Vec::new();
    for _ in 0..4 {
        allowed.push(decide(&limiter, &policy, &["a"]).await.is_allowed());
    }
    assert_eq!(allowed, [true, true, true, false]);
    limiter.reset(policy.limit("tries").unwrap(), "a").await.unwrap_err();
    assert!(decide(&limiter, &policy, &["a"]).await.is_allowed());
}

#[test]
fn a_scope_beside_one_slot_is_an_error() {
    let limit = tries().scope("all");
    login(limit.clone()).build().unwrap();
    let error = login(limit).one_slot().build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the policy `login`, limit `tries`, has the scope `all` beside one slot, in which nothing lies \
         that other policies share"
    );
}
