//! Keys of windows that hold what no limiter put there.

use tollgate::{
    Algorithm, Calendar, Quota, StoreErrorKind, Timestamp, algorithm::Meter, store::Hit,
};

use super::{START, redis, try_charge};
use crate::{
    script::{Joined, Kept},
    support::RedisServer,
};

const LOG: Algorithm = Algorithm::SlidingLog;
const COUNTER: Algorithm = Algorithm::SlidingCounter;
const FIXED: Algorithm = Algorithm::FixedWindow;
const MONTH: Algorithm = Algorithm::Calendar(Calendar::Month);

fn meter(algorithm: Algorithm) -> Meter {
    match algorithm {
        Algorithm::Calendar(unit) => algorithm.meter(Quota::new(10, unit.nominal()).unwrap()),
        _ => algorithm.meter(Quota::per_minute(10)),
    }
}

/// Commands that make the key what it is not for an algorithm.
fn spoilers(algorithm: Algorithm) -> Vec<Vec<&'static str>> {
    let mut spoilers = vec![vec!["RPUSH", "x"], vec!["HSET", "x", "1"], vec!["SADD", "x"]];
    let texts: &[&str] = match algorithm {
        Algorithm::SlidingLog => &["", "abc", "0", "1764461091000007"],
        Algorithm::SlidingCounter => &[
            "",
            "abc",
            "1 2",
            "1 2 3 4",
            "1 2 -3",
            "1 2 3 ",
            " 1 2 3",
            "1 2 x",
            "1.5 2 3",
            "1 2 3\n",
            "12345678901234567 1 1",
            "1 12345678901 1",
            "1 1 12345678901",
            "1e9 1 1",
        ],
        _ => &[
            "",
            "abc",
            "1",
            "1 2 3",
            "1 -2",
            "1 2 ",
            " 1 2",
            "1 x",
            "1.5 2",
            "1 2\n",
            "1e9 1",
            "12345678901234567 1",
            "1 12345678901234567",
        ],
    };
    spoilers.extend(texts.iter().map(|text| vec!["SET", *text]));
    if algorithm == LOG {
        for member in [
            "x",
            "1",
            "0x00000000000010",
            "inf",
            "-000000000000001",
            "1234567.12345678",
            "00000000000000017",
            "000000000000001 ",
        ] {
            spoilers.push(vec!["ZADD", "1764461091000007", member]);
        }
    } else {
        spoilers.push(vec!["ZADD", "1", "x"]);
    }
    spoilers
}

#[tokio::test]
async fn a_foreign_key_of_a_window_is_a_typed_error_and_never_a_silent_pass() {
    let (server, store) = redis().await;
    for algorithm in [LOG, COUNTER, FIXED, MONTH] {
        for mut spoiler in spoilers(algorithm) {
            server.command(&["FLUSHALL"]);
            spoiler.insert(1, "faults:bad");
            server.command(&spoiler);
            let dump = server.command(&["DUMP", "faults:bad"]);
            for cost in [0, 1, 11] {
                let good =
                    Hit { key: b"good", meter: meter(LOG), cost: 1, shadow: false, lease: 0 };
                let bad =
                    Hit { key: b"bad", meter: meter(algorithm), cost, shadow: false, lease: 0 };
                for hits in [[good, bad], [bad, good]] {
                    let error = try_charge(&store, &hits).await.unwrap_err();
                    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{spoiler:?}: {error}");
                    assert!(error.to_string().contains("WRONGTYPE"), "{spoiler:?}: {error}");
                }
            }
            assert_eq!(server.command(&["DUMP", "faults:bad"]), dump, "{spoiler:?}");
            assert_eq!(server.command(&["EXISTS", "faults:good"]), "0", "{spoiler:?}");
        }
    }
}

/// Strings that are states, if of a time long gone or one that never comes, or of more units than
/// the limit has.
#[tokio::test]
async fn a_state_of_any_time_is_one_and_nobody_is_locked_for_long() {
    let server = RedisServer::start().await;
    let mut lua = Joined::load(&server);
    for (algorithm, state, left) in [
        (FIXED, "0 7", 10),
        (FIXED, "1764461040000000 7", 3),
        (FIXED, "1764461100000000 7", 3),
        (FIXED, "9999999999999999 9999999999999999", 0),
        (MONTH, "1761955200000000 4", 6),
        (MONTH, "1759276800000000 4", 10),
        (COUNTER, "0 7 7", 10),
        (COUNTER, "1764461040000000 7 0", 3),
        (COUNTER, "1764460980000000 0 7", 10),
        (COUNTER, "9999999999999999 9999999999 9999999999", 0),
    ] {
        lua.server().command(&["SET", "k", state]);
        let look = Hit { key: b"k", meter: meter(algorithm), cost: 0, shadow: false, lease: 0 };
        let now = Timestamp::from_micros(START);
        let (found, written) = lua.acquire(&[vec![look]], now);
        let standing = found[0].standing(&look, now);
        assert_eq!(standing.remaining(), left, "{algorithm:?}: {state}");
        for write in written {
            let Kept::Text(text) = &write.kept else { panic!("{write:?}") };
            assert!(text.starts_with("1764461040000000 "), "{text}");
            assert!(write.until <= (START + 120_000_000) / 1_000_000 + 1, "{write:?}");
        }
    }
}
