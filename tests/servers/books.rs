//! Many callers at once, over several connections and stores, charge limits of several algorithms and
//! give back: what is taken in the end is what was charged and kept, to the unit.

#![cfg(test)]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fastrand::Rng;
use http::Request;
use tokio::task::JoinSet;
use tollgate::{
    Algorithm, Decision, Key, Limit, Limiter, Policy, Quota, RedisStore, RequestHead, Ruling, key,
};

use crate::support::RedisServer;

const CALLERS: usize = 64;
const KEYS: usize = 3;

/// A server, and two stores of two connections each.
async fn limiters() -> (RedisServer, [Limiter; 2]) {
    let server = RedisServer::start().await;
    let mut limiters = Vec::new();
    for _ in 0..2 {
        // The time to answer is not what this is about.
        let store = RedisStore::builder(server.url()).connections(2);
        let store = store.deadline(Duration::from_secs(30)).connect().await.expect("a server");
        // The server decides about everything.
        limiters
            .push(Limiter::builder(store).remember_denials(Duration::ZERO).breaker(None).build());
    }
    (server, limiters.try_into().expect("two"))
}

/// Limits of which nothing comes back during a test, and no window turns over. Their scope makes
/// a policy and a check without one charge the same states.
fn limits() -> [Limit; 4] {
    let slow = |units| Quota::new(units, Duration::from_secs(3_650 * 86_400)).expect("a quota");
    [
        ("bucket", Algorithm::TokenBucket, 100),
        ("log", Algorithm::SlidingLog, 80),
        ("window", Algorithm::FixedWindow, 120),
        ("counter", Algorithm::SlidingCounter, 90),
    ]
    .map(|(name, algorithm, units)| {
        Limit::new(name, slow(units)).algorithm(algorithm).scope("books")
    })
}

/// Costs of one request, at limits by their place in [`limits`], each with a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order(Vec<(usize, usize, u64)>);

impl Order {
    /// Of three limits, with keys that others have too.
    fn any(rng: &mut Rng) -> Self {
        let mut places = [0, 1, 2, 3];
        rng.shuffle(&mut places);
        let one = |at: &usize| (*at, rng.usize(..KEYS), rng.u64(1..=4));
        Self(places[..3].iter().map(one).collect())
    }

    async fn place(&self, limiter: &Limiter) -> Decision {
        let limits = limits();
        let costs: Vec<_> =
            self.0.iter().map(|(at, _, cost)| limits[*at].clone().cost(*cost)).collect();
        let keys = self.0.iter().map(|(_, key, _)| Key::from(name(*key)));
        limiter.check_all(costs.iter().zip(keys)).await.expect("an answer")
    }

    /// The same by a policy.
    async fn place_by_policy(&self, limiter: &Limiter) -> Decision {
        let mut policy = Policy::new("books");
        for (at, key, cost) in &self.0 {
            let key = *key;
            let key = key::from_fn(move |_| Some(name(key)));
            policy = policy.limit(key, limits()[*at].clone().cost(*cost));
        }
        let policy = policy.build().expect("a policy");
        let request = Request::new(());
        match limiter.decide(&policy, RequestHead::new(&request)).await {
            Ruling::Admit(decision) => decision,
            Ruling::Reject(tollgate::Rejection::Limited(decision)) => decision,
            other => panic!("{other:?}"),
        }
    }
}

fn name(key: usize) -> String {
    format!("shared{key}")
}

/// Units, by limit and key.
type Books = BTreeMap<(usize, usize), u64>;

fn enter(books: &mut Books, order: &Order, kept: impl Fn(usize) -> u64) {
    for (at, key, _) in &order.0 {
        *books.entry((*at, *key)).or_default() += kept(*at);
    }
}

/// What is taken, by looks.
async fn taken(limiter: &Limiter) -> Books {
    let mut books = Books::new();
    for (at, limit) in limits().iter().enumerate() {
        for key in 0..KEYS {
            let left = limiter.look(limit, name(key)).await.expect("an answer").remaining();
            books.insert((at, key), limit.quota().quantity() - left.expect("a number"));
        }
    }
    books
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_charge_the_same_limits_at_once_admit_what_one_after_another_would() {
    let (_server, limiters) = limiters().await;
    // 33, 40, 24 and 90 times.
    let order = Order(vec![(0, 0, 3), (1, 0, 2), (2, 0, 5), (3, 0, 1)]);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (limiter, order) = (limiters[caller % 2].clone(), order.clone());
        callers.spawn(async move {
            let mut admitted = 0;
            for round in 0..4 {
                let decision = match (caller / 2 + round) % 2 {
                    0 => order.place(&limiter).await,
                    _ => order.place_by_policy(&limiter).await,
                };
                admitted += u64::from(decision.is_allowed());
            }
            admitted
        });
    }
    let admitted: u64 = callers.join_all().await.into_iter().sum();
    assert_eq!(admitted, 24);
    let books = taken(&limiters[1]).await;
    let first: Vec<u64> = (0..4).map(|at| books[&(at, 0)]).collect();
    assert_eq!(first, [72, 48, 120, 24]);
    assert_eq!(books.values().sum::<u64>(), first.iter().sum::<u64>(), "other keys have all");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_is_what_was_admitted_and_what_was_denied_could_not_be() {
    let (_server, limiters) = limiters().await;
    let seed = fastrand::u64(..u64::MAX - 64);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let limiter = limiters[caller % 2].clone();
        callers.spawn(async move {
            let mut rng = Rng::with_seed(seed + caller as u64);
            let (mut books, mut denied) = (Books::new(), Vec::new());
            for _ in 0..8 {
                let order = Order::any(&mut rng);
                let decision = match rng.bool() {
                    true => order.place(&limiter).await,
                    false => order.place_by_policy(&limiter).await,
                };
                if decision.is_allowed() {
                    let cost = |at| order.0.iter().find(|one| one.0 == at).expect("it").2;
                    enter(&mut books, &order, cost);
                } else {
                    denied.push(order);
                }
            }
            (books, denied)
        });
    }
    let mut admitted: Books =
        (0..4).flat_map(|at| (0..KEYS).map(move |key| ((at, key), 0))).collect();
    let mut denied = Vec::new();
    for (books, orders) in callers.join_all().await {
        books.into_iter().for_each(|(place, units)| *admitted.get_mut(&place).unwrap() += units);
        denied.extend(orders);
    }
    let books = taken(&limiters[0]).await;
    assert_eq!(books, admitted, "seed {seed}");
    assert!(denied.len() > 100, "few were denied: {}, seed {seed}", denied.len());
    // Nothing comes back, so what did not fit then does not fit now.
    let left = |at: usize, key| limits()[at].quota().quantity() - books[&(at, key)];
    for order in denied {
        assert!(order.0.iter().any(|(at, key, cost)| left(*at, *key) < *cost), "{order:?}, {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_when_callers_give_back_at_the_same_time() {
    let (_server, limiters) = limiters().await;
    let seed = fastrand::u64(..u64::MAX - 64);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let limiter = limiters[caller % 2].clone();
        callers.spawn(async move {
            let mut rng = Rng::with_seed(seed + caller as u64);
            let (mut books, mut back) = (Books::new(), 0);
            for _ in 0..16 {
                let order = Order::any(&mut rng);
                let decision = Arc::new(order.place(&limiter).await);
                if !decision.is_allowed() {
                    // Nothing was charged, so there is nothing to give back.
                    decision.refund().await.expect("an answer");
                    continue;
                }
                let cost = |at| order.0.iter().find(|one| one.0 == at).expect("it").2;
                match rng.u8(..4) {
                    // All, at the same time by all who have the decision.
                    0 | 1 => {
                        let again = Arc::clone(&decision);
                        let other = tokio::spawn(async move { again.refund().await });
                        decision.refund().await.expect("an answer");
                        other.await.expect("no panic").expect("an answer");
                        back += 1;
                    }
                    // A part of what was taken of one limit.
                    2 => {
                        let (at, _, units) = order.0[rng.usize(..3)];
                        let units = rng.u64(1..=units);
                        let limits = limits();
                        let limit = limits[at].name();
                        decision.refund_units(limit, units).await.expect("an answer");
                        let kept = |other| cost(other) - if other == at { units } else { 0 };
                        enter(&mut books, &order, kept);
                        back += 1;
                    }
                    _ => enter(&mut books, &order, cost),
                }
            }
            (books, back)
        });
    }
    let mut kept: Books = (0..4).flat_map(|at| (0..KEYS).map(move |key| ((at, key), 0))).collect();
    let mut given_back = 0;
    for (books, back) in callers.join_all().await {
        books.into_iter().for_each(|(place, units)| *kept.get_mut(&place).unwrap() += units);
        given_back += back;
    }
    assert_eq!(taken(&limiters[0]).await, kept, "seed {seed}");
    assert!(given_back > 20, "little was given back: {given_back}, seed {seed}");
}
