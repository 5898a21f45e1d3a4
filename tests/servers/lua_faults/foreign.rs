//! Keys that hold what no limiter put there.

use tollgate::{Quota, StoreErrorKind, Timestamp};

use super::{START, charge, hit, redis, try_charge};
use crate::{
    script::{Found, Joined, Model, Request, SOURCE, Script},
    support::{RedisServer, Value},
};

const QUOTA: Quota = Quota::per_day(10);

/// Strings that are no state.
const GARBAGE: &[&[u8]] = &[
    b"",
    b"abc",
    b"1e9",
    b"1.7644611e+15",
    b"-5",
    b"+5",
    b" 12",
    b"12 ",
    b"12\n",
    b"1,5",
    b".5",
    b"5.",
    b"1.5",
    b"1.5.5",
    b"1764461091000007.12345",
    b"1764461091000007.1234567",
    b"0x10",
    b"inf",
    b"nan",
    b"\x00",
    b"12\x0034",
    b"\xff\xfe\x00\x01",
    b"1234567890123456789012345678901234567890",
    b"12345678901234567",
    b"0",
    b"0000000000000012",
    b"07.000001",
];

/// Commands that make `bad` a key of another type.
const TYPES: &[&[&[u8]]] = &[
    &[b"RPUSH", b"bad", b"x"],
    &[b"HSET", b"bad", b"x", b"1"],
    &[b"SADD", b"bad", b"x"],
    &[b"ZADD", b"bad", b"1", b"x"],
];

/// All commands that spoil the key `bad`.
fn spoilers() -> Vec<Vec<&'static [u8]>> {
    let set = |text: &&'static [u8]| vec![&b"SET"[..], b"bad", text];
    GARBAGE.iter().map(set).chain(TYPES.iter().map(|command| command.to_vec())).collect()
}

/// What the key `bad` holds, with its type and its time to live.
fn dump(script: &mut Script) -> [Value; 2] {
    [script.command(&["DUMP", "bad"]), script.command(&["PTTL", "bad"])]
}

#[tokio::test]
async fn a_foreign_key_fails_only_its_own_requests_of_a_batch() {
    let server = RedisServer::start().await;
    let mut script = Script::load(&server, SOURCE);
    let (bad, a, b, c) =
        (hit("bad", QUOTA, 1), hit("a", QUOTA, 3), hit("b", QUOTA, 4), hit("c", QUOTA, 10));
    let batch: [Request<'_>; 7] =
        [vec![a], vec![bad], vec![a, bad, b], vec![a, b], vec![bad, c], vec![b], vec![c, a]];
    for spoiler in spoilers() {
        script.command(&["FLUSHALL"]);
        script.command(&spoiler);
        let before = dump(&mut script);
        let (now, found) = script.acquire(&batch);
        // What the others must see: as if the spoilt requests had only looked at them.
        let mut model = Model::default();
        let mut found = found.into_iter();
        for request in &batch {
            let spoilt = request.iter().any(|hit| hit.key == b"bad");
            let cost = |cost| if spoilt { 0 } else { cost };
            for (hit, found) in model_of(&mut model, request, cost, now).zip(found.by_ref()) {
                match (hit, found) {
                    (None, Found::Fault(fault)) => {
                        assert!(fault.trim_start_matches('-').starts_with("WRONGTYPE "), "{fault}");
                    }
                    (Some(Found::Read { reading, admitted }), found) => {
                        let admitted = admitted && !spoilt;
                        assert_eq!(found, Found::Read { reading, admitted }, "{spoiler:?}");
                    }
                    other => panic!("{other:?} after {spoiler:?}"),
                }
            }
        }
        assert_eq!(dump(&mut script), before, "{spoiler:?} was changed");
    }
}

/// What a model finds for the sound hits of a request, and nothing for the others.
fn model_of(
    model: &mut Model,
    request: &Request<'_>,
    cost: impl Fn(u64) -> u64,
    now: Timestamp,
) -> impl Iterator<Item = Option<Found>> {
    let sound = |hit: &&tollgate::store::Hit<'_>| hit.key != b"bad";
    let hits: Request<'_> = request
        .iter()
        .filter(sound)
        .map(|hit| tollgate::store::Hit { cost: cost(hit.cost), ..*hit })
        .collect();
    let mut found = model.acquire(&[hits], now).into_iter();
    let all: Vec<_> =
        request.iter().map(|hit| sound(&hit).then(|| found.next()).flatten()).collect();
    all.into_iter()
}

#[tokio::test]
async fn a_foreign_key_is_a_typed_error_and_never_a_silent_pass() {
    let (server, store) = redis().await;
    let mut script = Script::load(&server, SOURCE);
    for mut spoiler in spoilers() {
        script.command(&["FLUSHALL"]);
        spoiler[1] = b"faults:bad";
        script.command(&spoiler);
        for cost in [0, 1, 11] {
            let hits = [hit("good", QUOTA, 1), hit("bad", QUOTA, cost)];
            let error = try_charge(&store, &hits).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{spoiler:?}: {error}");
            let error = try_charge(&store, &hits[1..]).await.unwrap_err();
            assert!(error.to_string().contains("WRONGTYPE"), "{error}");
        }
        assert_eq!(charge(&store, "good", QUOTA, 0).await.remaining(), 10, "{spoiler:?}");
    }
}

#[tokio::test]
async fn a_deleted_foreign_key_begins_as_a_full_bucket() {
    let (server, store) = redis().await;
    server.command(&["SET", "faults:bad", "abc"]);
    assert!(try_charge(&store, &[hit("bad", QUOTA, 1)]).await.is_err());
    server.command(&["DEL", "faults:bad"]);
    assert_eq!(charge(&store, "bad", QUOTA, 1).await.remaining(), 9);
}

/// Of those, none is a state; these are, if of a time long gone or one that never comes.
#[tokio::test]
async fn a_state_of_any_time_is_one() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    for (state, left) in [
        ("7", 10),
        ("7.000001", 10),
        ("1764461091000007", 10),
        ("1764461091000007.000001", 9),
        ("9007199254740993.999999", 0),
        ("9999999999999999", 0),
    ] {
        lua.server().command(&["SET", "k", state]);
        let look = hit("k", QUOTA, 0);
        let now = Timestamp::from_micros(START);
        let (found, _) = lua.acquire(&[vec![look]], now);
        assert_eq!(found[0].standing(&look, now).remaining(), left, "{state}");
    }
}
