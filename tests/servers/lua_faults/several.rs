//! Several limits on one request.

use tollgate::{Key, Limit, Quota, StoreErrorKind, Timestamp};

use super::{START, asking, charge, hit, kept, redis, try_charge};
use crate::{
    differential::{Kind, Trace},
    script::Joined,
    support::RedisServer,
};

/// So slow that nothing comes back during a test.
const MANY: Quota = Quota::per_day(100);
const FEW: Quota = Quota::per_day(1);

#[tokio::test]
async fn ten_thousand_requests_denied_by_their_second_limit_have_not_spent_the_first() {
    let (server, store) = redis().await;
    let limiter = asking(store);
    let many = Limit::new("many", MANY);
    let few = Limit::new("few", FEW);
    let check = || limiter.check_all([(&many, Key::from("k")), (&few, Key::from("k"))]);
    assert!(check().await.unwrap().is_allowed());
    let before = server.command(&["GET", "faults:{id:k}:-/many:tb86400s"]);
    for _ in 0..10_000 {
        let decision = check().await.unwrap();
        assert!(!decision.is_allowed());
        assert_eq!(decision.binding().unwrap().name(), "few");
        assert_eq!(decision.verdicts()[0].standing().remaining(), 99);
    }
    assert_eq!(server.command(&["GET", "faults:{id:k}:-/many:tb86400s"]), before);
    assert!(limiter.check(&many, "k").await.unwrap().is_allowed());
}

#[tokio::test]
async fn whichever_limit_denies_no_other_is_spent() {
    let (server, store) = redis().await;
    let keys: Vec<String> = (0..8).map(|at| format!("k{at}")).collect();
    for denying in 0..8 {
        server.command(&["FLUSHALL"]);
        assert!(charge(&store, &keys[denying], FEW, 1).await.fits());
        let quota = |at| if at == denying { FEW } else { MANY };
        let hits: Vec<_> =
            keys.iter().enumerate().map(|(at, key)| hit(key, quota(at), 1)).collect();
        let standings = try_charge(&store, &hits).await.unwrap();
        for (at, standing) in standings.iter().enumerate() {
            let left = if at == denying { 0 } else { 100 };
            assert_eq!((standing.fits(), standing.remaining()), (at != denying, left));
        }
        assert_eq!(server.command(&["DBSIZE"]), "1", "only the exhausted one");
    }
}

#[tokio::test]
async fn one_key_twice_in_a_request_is_refused() {
    let (server, store) = redis().await;
    let twice = [hit("k", MANY, 1), hit("other", MANY, 1), hit("k", FEW, 1)];
    let error = try_charge(&store, &twice).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert_eq!(server.command(&["DBSIZE"]), "0");
}

#[tokio::test]
async fn requests_of_one_batch_see_what_those_before_them_took() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let (take, exhausted) = (hit("a", FEW, 1), hit("b", MANY, 101));
    let batch = [
        vec![take, exhausted],
        vec![take, hit("c", MANY, 1)],
        vec![hit("c", MANY, 1), take],
        vec![hit("c", MANY, 99)],
        vec![hit("c", MANY, 1)],
    ];
    let now = Timestamp::from_micros(START);
    let (found, written) = lua.acquire(&batch, now);
    let hits = batch.iter().flatten();
    let seen: Vec<_> = hits.zip(found).map(|(hit, found)| found.standing(hit, now)).collect();
    let fits: Vec<bool> = seen.iter().map(tollgate::Standing::fits).collect();
    assert_eq!(fits, [true, false, true, true, true, false, true, false]);
    let remaining: Vec<u64> = seen.iter().map(tollgate::Standing::remaining).collect();
    assert_eq!(remaining, [1, 100, 0, 99, 99, 0, 0, 0]);
    let keys: Vec<_> = written.iter().map(|write| write.key.as_str()).collect();
    assert_eq!(keys, ["a", "c"], "each changed key is written once");
}

/// The joined script refuses a key that was not declared, and a read after a write.
#[tokio::test]
async fn every_key_is_declared_and_read_before_any_is_written() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    let mut trace = Trace::new(fastrand::u64(..), Kind::Mixed);
    let pool = trace.pool();
    for _ in 0..500 {
        let (batch, now) = trace.batch(&pool);
        lua.acquire(&batch, now);
    }
}

#[tokio::test]
async fn the_keys_are_the_names_of_the_states_and_nothing_else() {
    let (server, store) = redis().await;
    try_charge(&store, &[hit("one", MANY, 1), hit("two", FEW, 1)]).await.unwrap();
    let keys = server.command(&["KEYS", "*"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["faults:one", "faults:two"]);
    assert_ne!(kept(&server, "one"), kept(&server, "two"));
}
