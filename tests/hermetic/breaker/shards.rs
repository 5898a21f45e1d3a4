//! A store in several parts, each with a breaker of its own.

use std::{borrow::Cow, sync::Arc};

use tollgate::{
    BreakerState, Limit, Limiter, ManualClock, Quota, Store, StoreError, StoreErrorKind,
    store::{Hit, Refund, Reply},
};

use super::{MILLI, over};
use crate::support::{Broken, Flaky, Log, memory, secs};

/// Two parts, of the numbers 1 and 2: keys with an `x`, or for readiness with an odd number, are in the second.
/// One request asks them in turn, up to the first error.
#[derive(Clone, Debug)]
struct Parts([Flaky; 2]);

impl Store for Parts {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let mut answers = None;
        for hit in hits {
            let shard = self.shard(hit.key);
            match self.0[shard as usize - 1].acquire(&[*hit]).try_now() {
                Ok(Ok(mut answer)) => match &mut answers {
                    None => answers = Some(answer),
                    Some(all) => {
                        let all: &mut tollgate::store::Answer = all;
                        all.standings.append(&mut answer.standings);
                        all.found.append(&mut answer.found);
                    }
                },
                Ok(Err(error)) => return Reply::now(Err(error.at(shard))),
                Err(later) => return later,
            }
        }
        let none = || StoreError::new(StoreErrorKind::Unexpected, "no hits");
        Reply::now(answers.ok_or_else(none))
    }

    fn refund(&self, refunds: &[Refund<'_>]) -> Reply<()> {
        self.0[0].refund(refunds)
    }

    fn reset(&self, keys: &[&[u8]]) -> Reply<()> {
        self.0[0].reset(keys)
    }

    fn shard(&self, key: &[u8]) -> u32 {
        let number =
            key.strip_prefix(b"{ready").and_then(|rest| rest.split(|byte| *byte == b'}').next());
        let odd = number.and_then(<[u8]>::last).is_some_and(|digit| digit % 2 == 1);
        1 + u32::from(odd || key.contains(&b'x'))
    }

    fn shard_name(&self, shard: u32) -> Option<Cow<'_, str>> {
        Some(format!("10.0.0.{shard}:7000").into())
    }
}

struct Rig {
    limiter: Limiter,
    parts: Parts,
    clock: ManualClock,
}

impl Rig {
    fn new() -> Self {
        let (store, clock) = memory();
        let parts = Parts([Flaky::new(store.clone()), Flaky::new(store)]);
        Self { limiter: over(parts.clone(), &clock).build(), parts, clock }
    }

    async fn ask(&self, keys: &[&'static str]) -> Result<(), StoreErrorKind> {
        let limit = Limit::new("all", Quota::per_second(1_000_000));
        let pairs: Vec<_> = keys.iter().map(|key| (&limit, *key)).collect();
        self.limiter.check_all(pairs).await.map(drop).map_err(|error| error.kind())
    }

    fn asked(&self) -> [usize; 2] {
        [self.parts.0[0].asked(), self.parts.0[1].asked()]
    }

    /// Has the second part fail until its breaker opens.
    async fn open(&self, keys: &[&'static str]) {
        self.parts.0[1].break_(Broken::Now(StoreErrorKind::Unreachable));
        for _ in 0..5 {
            self.clock.advance(10 * MILLI);
            assert_eq!(self.ask(keys).await, Err(StoreErrorKind::Unreachable));
        }
        assert_eq!(self.ask(&["x"]).await, Err(StoreErrorKind::BreakerOpen));
    }
}

#[tokio::test]
async fn one_that_fails_does_not_keep_others_from_being_asked() {
    let rig = Rig::new();
    rig.open(&["x"]).await;
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Open);
    let asked = rig.asked();
    for _ in 0..100 {
        rig.ask(&["a"]).await.unwrap();
        assert_eq!(rig.ask(&["x"]).await, Err(StoreErrorKind::BreakerOpen));
    }
    assert_eq!(rig.asked(), [asked[0] + 100, asked[1]]);

    rig.parts.0[1].mend();
    rig.clock.advance(500 * MILLI);
    rig.ask(&["x"]).await.unwrap();
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Closed);
    rig.ask(&["x"]).await.unwrap();
}

#[tokio::test]
async fn the_first_part_has_its_own_as_well() {
    let rig = Rig::new();
    rig.ask(&["x"]).await.unwrap();
    rig.parts.0[0].break_(Broken::Now(StoreErrorKind::Timeout));
    for _ in 0..10 {
        let _ = rig.ask(&["a"]).await;
        rig.clock.advance(30 * MILLI);
    }
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Open);
    rig.ask(&["x"]).await.unwrap();
}

#[tokio::test]
async fn a_request_to_a_part_that_is_not_asked_asks_no_other() {
    let rig = Rig::new();
    rig.open(&["x"]).await;
    let asked = rig.asked();
    for keys in [["a", "x"], ["x", "a"]] {
        assert_eq!(rig.ask(&keys).await, Err(StoreErrorKind::BreakerOpen), "{keys:?}");
    }
    assert_eq!(rig.asked(), asked);
}

#[tokio::test]
async fn an_error_of_one_part_says_nothing_of_the_others() {
    let rig = Rig::new();
    rig.open(&["a", "x"]).await;
    let asked = rig.asked();
    rig.ask(&["a"]).await.unwrap();
    assert_eq!(rig.asked(), [asked[0] + 1, asked[1]]);
}

/// Whoever asks for one part and is turned back by another leaves the turn to somebody else.
#[tokio::test]
async fn who_is_turned_back_by_one_does_not_hold_the_turn_of_another() {
    let rig = Rig::new();
    rig.open(&["x"]).await;
    rig.parts.0[0].break_(Broken::Now(StoreErrorKind::Unreachable));
    for _ in 0..6 {
        let _ = rig.ask(&["a"]).await;
        rig.clock.advance(10 * MILLI);
    }
    assert_eq!(rig.ask(&["a"]).await, Err(StoreErrorKind::BreakerOpen));
    rig.parts.0[0].mend();
    // The first may be asked by now, the second was tried a moment ago.
    rig.clock.advance(500 * MILLI);
    assert_eq!(rig.ask(&["x"]).await, Err(StoreErrorKind::Unreachable));
    assert_eq!(rig.ask(&["a", "x"]).await, Err(StoreErrorKind::BreakerOpen));
    rig.ask(&["a"]).await.unwrap();
}

#[tokio::test]
async fn readiness_is_that_of_all_parts() {
    let rig = Rig::new();
    rig.limiter.ready().await.unwrap();
    assert_eq!(rig.asked(), [1, 1]);
    for part in 0..2 {
        rig.parts.0[part].break_(Broken::Now(StoreErrorKind::Unreachable));
        let error = rig.limiter.ready().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
        rig.parts.0[part].mend();
    }
    rig.limiter.ready().await.unwrap();
}

/// Its breaker would stay open for ever, and be told so.
#[tokio::test]
async fn one_that_nobody_asks_any_more_is_forgotten() {
    let rig = Rig::new();
    rig.open(&["x"]).await;
    rig.clock.advance(secs(2));
    rig.ask(&["a"]).await.unwrap();
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Open);
    rig.clock.advance(secs(6));
    rig.ask(&["a"]).await.unwrap();
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Closed);
    // Who asks it all the same finds out how it is.
    assert_eq!(rig.ask(&["x"]).await, Err(StoreErrorKind::Unreachable));
    assert_eq!(rig.limiter.health().breaker(), BreakerState::Open);
}

#[tokio::test]
async fn one_that_fails_leaves_the_leases_of_others() {
    let rig = Rig::new();
    rig.open(&["x"]).await;
    let limit = Limit::new("leased", Quota::per_hour(10_000)).lease(100);
    let asked = rig.asked()[0];
    for _ in 0..100 {
        rig.limiter.check(&limit, "a").await.unwrap();
    }
    let asked = rig.asked()[0] - asked;
    assert!(asked < 50, "{asked} of 100 requests were asked about");
}

#[tokio::test]
async fn the_log_says_by_name_which_one_is_not_asked() {
    let log = Log::start();
    let rig = Rig::new();
    rig.open(&["x"]).await;
    rig.parts.0[1].mend();
    rig.clock.advance(secs(1));
    rig.ask(&["x"]).await.unwrap();
    let lines: Vec<String> = log.notices().into_iter().map(|line| line.1).collect();
    for said in ["the breaker opens", "the breaker closes"] {
        let line = lines.iter().find(|line| line.contains(said)).unwrap();
        assert!(line.contains("10.0.0.2:7000") && line.contains("shard=2"), "{line}");
    }
}

#[test]
fn a_store_behind_a_pointer_has_the_same_names() {
    let (store, _) = memory();
    assert_eq!(store.shard_name(0), None);
    let parts = Parts([Flaky::new(store.clone()), Flaky::new(store)]);
    let boxed: Box<dyn Store> = Box::new(parts.clone());
    let shared: Arc<dyn Store> = Arc::new(parts);
    assert_eq!(boxed.shard_name(2).unwrap(), "10.0.0.2:7000");
    assert_eq!(shared.shard_name(2).unwrap(), "10.0.0.2:7000");
}
