//! The breaker before a server that is frozen, killed, or slow: nobody waits for it, one request at a
//! time asks it, and when it answers again, all do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Request;
use tollgate::{
    Breaker, BreakerState, Global, Limit, Limiter, OnFailure, Outcome, Policy, Quota, RedisStore,
    RedisStoreBuilder, RequestHead, Ruling, Store, StoreErrorKind,
    store::{Hit, Refund, Reply},
};

use crate::support::{Log, Proxy, RedisServer};

const BOUND: Duration = Duration::from_secs(30);
const CALLERS: usize = 32;

/// Counts the calls that are under way.
#[derive(Clone, Debug)]
struct Counting {
    store: RedisStore,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Counting {
    fn new(store: RedisStore) -> Self {
        Self { store, now: Arc::default(), most: Arc::default() }
    }

    fn under_way(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    /// The most that there were since this was called last.
    fn most(&self) -> usize {
        self.most.swap(self.under_way(), Ordering::SeqCst)
    }
}

/// One call that is under way.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Store for Counting {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let reply = self.store.acquire(hits);
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let guard = Guard(Arc::clone(&self.now));
        Reply::later(async move {
            let _guard = guard;
            reply.await
        })
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.store.refund(refunds)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.store.reset(keys)
    }
}

struct Setup {
    limiter: Limiter,
    store: Counting,
    policy: Policy,
}

impl Setup {
    async fn failing(url: &str) -> Self {
        // A busy machine may be slow at any time.
        Self::new(RedisStore::builder(url), Breaker::default().slower_than(BOUND)).await
    }

    /// The store's deadline is far away: it is slow, and never fails.
    async fn slow(url: &str) -> Self {
        let breaker = Breaker::default().slower_than(Duration::from_millis(30));
        Self::new(RedisStore::builder(url).deadline(BOUND), breaker).await
    }

    async fn new(store: RedisStoreBuilder, breaker: Breaker) -> Self {
        let store = Counting::new(store.connect().await.expect("a server"));
        let limiter = Limiter::builder(store.clone()).breaker(breaker).build();
        let limit = Limit::new("all", Quota::per_second(1_000_000));
        let policy = Policy::new("closed").limit(Global, limit).on_failure(OnFailure::Deny);
        Self { limiter, store, policy: policy.build().expect("a policy") }
    }

    fn state(&self) -> BreakerState {
        self.limiter.health().breaker()
    }

    /// One request; whether the store decided it.
    async fn send(&self) -> bool {
        let request = Request::new(());
        let ruling = self.limiter.decide(&self.policy, RequestHead::new(&request)).await;
        matches!(ruling, Ruling::Admit(decision) if decision.outcome() == Outcome::Allowed)
    }

    /// Many callers at once, again and again, until something is so.
    async fn until(&self, what: &str, done: impl Fn() -> bool) {
        let sending = async {
            while !done() {
                let round = (0..CALLERS).map(|_| self.send());
                tokio::join!(join(round), tokio::time::sleep(Duration::from_millis(1)));
            }
        };
        tokio::time::timeout(BOUND, sending).await.unwrap_or_else(|_| panic!("not {what}"));
    }

    async fn opens(&self) {
        self.until("open", || self.state() != BreakerState::Closed).await;
        // Those that were asked before.
        self.until("quiet", || self.store.under_way() <= 1).await;
        self.store.most();
    }

    /// While the store is away, requests are turned away without waiting, but for one that asks.
    async fn spares(&self) {
        let (mut at_once, mut asking) = (0, Vec::new());
        while at_once < 1_000 || asking.is_empty() {
            let request = Request::new(());
            match self.limiter.decide(&self.policy, RequestHead::new(&request)).try_now() {
                Ok(ruling) => {
                    assert!(matches!(ruling, Ruling::Reject(_)), "{ruling:?}");
                    at_once += 1;
                }
                Err(deciding) => asking.push(tokio::spawn(deciding)),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(self.store.most(), 1);
        println!("{at_once} turned away at once, {} asked", asking.len());
        assert!(asking.len() < at_once / 10, "{} asked", asking.len());
        assert!(self.limiter.health().failures(StoreErrorKind::BreakerOpen) >= 1_000);
        for deciding in asking {
            let ruling = tokio::time::timeout(BOUND, deciding).await.expect("no hang");
            assert!(matches!(ruling.expect("no panic"), Ruling::Reject(_)));
        }
    }

    async fn closes(&self) {
        self.until("closed", || self.state() == BreakerState::Closed).await;
        let used = async {
            let mut answered = 0;
            while answered < 20 {
                answered += usize::from(self.send().await);
            }
        };
        tokio::time::timeout(BOUND, used).await.expect("the store is used again");
    }
}

async fn join(calls: impl Iterator<Item = impl Future<Output = bool>>) {
    let mut calls: Vec<_> = calls.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        calls.retain_mut(|call| call.as_mut().poll(cx).is_pending());
        if calls.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[tokio::test]
async fn a_frozen_server_keeps_nobody_waiting_and_is_used_again_when_it_goes_on() {
    let log = Log::local();
    let server = RedisServer::start().await;
    let setup = Setup::failing(&server.url()).await;
    for _ in 0..2 {
        setup.closes().await;
        server.freeze();
        setup.opens().await;
        assert_eq!(setup.limiter.ready().await.unwrap_err().kind(), StoreErrorKind::Timeout);
        setup.spares().await;
        server.thaw();
        setup.closes().await;
        setup.limiter.ready().await.expect("it answers");
    }
    let last = setup.limiter.health().last_failure().expect("there were some");
    assert_eq!(last.kind, StoreErrorKind::Timeout);
    assert_eq!(log.with("the breaker opens").len(), 2);
    assert_eq!(log.with("the breaker closes").len(), 2);
}

#[tokio::test]
async fn a_killed_server_is_used_again_when_it_is_back() {
    let mut server = RedisServer::start().await;
    let setup = Setup::failing(&server.url()).await;
    setup.closes().await;
    server.kill();
    setup.opens().await;
    setup.spares().await;
    assert!(setup.limiter.ready().await.is_err());
    server.restart().await;
    setup.closes().await;
}

#[tokio::test]
async fn a_slow_server_is_not_waited_for_until_it_is_fast() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.port()).await;
    let setup = Setup::slow(&proxy.url()).await;
    proxy.delay(Duration::from_millis(20));
    setup.opens().await;
    // It answers, but late: who asks is admitted.
    let late = async {
        while setup.limiter.health().failures(StoreErrorKind::BreakerOpen) < 500 {
            setup.send().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(BOUND, late).await.expect("requests are turned away");
    assert_eq!(setup.limiter.health().last_failure(), None, "it was slow, and did not fail");
    proxy.delay(Duration::ZERO);
    setup.closes().await;
}
