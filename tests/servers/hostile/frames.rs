//! Answers that are not whole, or no answers at all.

use std::{fs, time::Duration};

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tollgate::{Limit, Quota, RedisStore, StoreErrorKind};

use super::{BOUND, Liar, check};
use crate::support::fake::{Act, FakeServer, ready};

const DEADLINE: Duration = Duration::from_millis(100);
const WHOLE: &[u8] = b"*2\r\n:1700000000000000\r\n:0\r\n";

fn limits() -> [Limit; 1] {
    [Limit::new("all", Quota::per_hour(100))]
}

/// The kind of error of a request over a new connection.
async fn meets(liar: &Liar, act: Act, deadline: Duration) -> StoreErrorKind {
    liar.tell(act.clone());
    let limiter = liar.limiter(deadline).await;
    let error = check(&limiter, &limits()).await.map(|decision| decision.outcome());
    let error = error.expect_err(&format!("{act:?}"));
    assert!(error.to_string().len() < 3_000, "{} bytes", error.to_string().len());
    error.kind()
}

#[tokio::test]
async fn a_connection_that_is_cut_within_an_answer_is_unreachable() {
    let liar = Liar::new().await;
    for length in 0..WHOLE.len() {
        let kind = meets(&liar, Act::Cut(WHOLE[..length].to_vec()), BOUND).await;
        assert_eq!(kind, StoreErrorKind::Unreachable, "after {length} bytes");
    }
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_times_out() {
    let liar = Liar::new().await;
    for length in [0, 1, 3, 10, 20, WHOLE.len() - 1] {
        let kind = meets(&liar, Act::Reply(WHOLE[..length].to_vec()), DEADLINE).await;
        assert_eq!(kind, StoreErrorKind::Timeout, "after {length} bytes");
    }
}

#[tokio::test]
async fn bytes_that_are_no_answer_are_unexpected() {
    let liar = Liar::new().await;
    for bytes in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"*2\r\n:one\r\n:0\r\n",
        b"*two\r\n:1\r\n:0\r\n",
        b":99999999999999999999\r\n",
        b"$3\r\nabcdef\r\n",
        b"+\xff\xfe\r\n",
        b"#x\r\n",
        b",word\r\n",
        b"=3\r\nabc\r\n",
        b"\0\0\0\0",
    ] {
        let kind = meets(&liar, Act::Reply(bytes.to_vec()), BOUND).await;
        assert_eq!(kind, StoreErrorKind::Unexpected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[tokio::test]
async fn an_error_of_any_length_fills_no_log() {
    let liar = Liar::new().await;
    for code in ["ERR ", "NOPERM ", "", "WORD"] {
        let text = format!("-{code}{}\r\n", "long \u{1} ü ".repeat(100_000));
        meets(&liar, Act::Reply(text.into()), BOUND).await;
    }
    let text = "long \u{1} ü ".repeat(100_000);
    let fault = format!("*2\r\n:1700000000000000\r\n${}\r\n{text}\r\n", text.len());
    meets(&liar, Act::Reply(fault.into()), BOUND).await;
}

#[tokio::test]
async fn lengths_that_no_memory_holds_are_waited_for_in_vain() {
    let liar = Liar::new().await;
    let before = resident();
    for start in ["$", "*", "=", "!", "~", ">", "%", "|"] {
        for length in ["-2", "4096", "1000000000", "4611686018427387903", "9223372036854775807"] {
            let kind = meets(&liar, Act::Reply(format!("{start}{length}\r\n").into()), DEADLINE);
            let kind = kind.await;
            assert!(
                matches!(kind, StoreErrorKind::Timeout | StoreErrorKind::Unexpected),
                "{start}{length}: {kind:?}"
            );
        }
    }
    let nested = "*4096\r\n".repeat(90);
    assert_eq!(meets(&liar, Act::Reply(nested.into()), DEADLINE).await, StoreErrorKind::Timeout);
    let grown = resident().saturating_sub(before);
    assert!(grown < 512 << 20, "{grown} bytes more");
}

#[tokio::test]
async fn arrays_within_arrays_without_an_end_are_unexpected() {
    let liar = Liar::new().await;
    for depth in [5, 50, 99, 100, 101, 1_000, 100_000] {
        let nested = "*1\r\n".repeat(depth) + ":0\r\n";
        let kind = meets(&liar, Act::Reply(nested.into()), BOUND).await;
        assert_eq!(kind, StoreErrorKind::Unexpected, "{depth} deep");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_ends_with_its_connection() {
    let liar = Liar::new().await;
    let limiter = liar.limiter(DEADLINE).await;
    let before = resident();
    liar.tell(Act::Stream(b"$9223372036854775807\r\n".to_vec()));
    for _ in 0..3 {
        let error = check(&limiter, &limits()).await.expect_err("it has no end");
        assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
    }
    liar.tell(Act::Reply(WHOLE.to_vec()));
    let answered = async {
        while check(&limiter, &limits()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(BOUND, answered).await.expect("a new connection");
    let grown = resident().saturating_sub(before);
    assert!(grown < 512 << 20, "{grown} bytes more");
}

#[test]
fn no_bytes_admit_a_request_or_hold_it_up() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let liar = runtime.block_on(Liar::new());
    let start = prop_oneof![
        Just(String::new()),
        prop::sample::select("+-:$*%|~>_#!=(,".chars().map(String::from).collect::<Vec<_>>()),
        Just("*2\r\n:1700000000000000\r\n".to_owned()),
        Just("*2\r\n:1700000000000000\r\n*2\r\n".to_owned()),
    ];
    let bytes = prop_oneof![
        vec(any::<u8>(), 0..60),
        "[0-9]{0,20}(\r\n)?[*$:+-]?[0-9]{0,3}(\r\n)?".prop_map(String::into_bytes),
    ];
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&(start, bytes), |(start, bytes)| {
        let bytes = [start.as_bytes(), &bytes].concat();
        // What would be an answer.
        let text = String::from_utf8_lossy(&bytes);
        prop_assume!(!text.starts_with("*2\r\n:1700000000000000\r\n:"));
        runtime.block_on(meets(&liar, Act::Cut(bytes), BOUND));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn a_server_that_answers_anything_to_a_new_connection_is_refused_in_time() {
    for name in ["CLIENT", "PING", "HELLO", "SCRIPT", "EVALSHA", "EVAL"] {
        for (bytes, cut) in [
            (&b""[..], false),
            (b"", true),
            (b"*1\r\n", true),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
            (b"*1\r\n:-1\r\n", false),
            (b"$9223372036854775807\r\n", false),
            (b"-ERR any\r\n", false),
        ] {
            let told = bytes.to_vec();
            let server = FakeServer::start(move |command| match command[0] == name {
                true if cut => Act::Cut(told.clone()),
                true => Act::Reply(told.clone()),
                false => ready(command),
            })
            .await;
            let store = RedisStore::builder(server.url()).connect_timeout(DEADLINE).connect();
            let outcome = tokio::time::timeout(BOUND, store).await.expect("no attempt hangs");
            // Nobody looks at the answers to these.
            let ignored = bytes.starts_with(b"*1\r\n:") || bytes.starts_with(b"-");
            let taken = match name {
                "CLIENT" | "HELLO" => ignored,
                "PING" | "SCRIPT" | "EVAL" => bytes.starts_with(b"*1\r\n:"),
                _ => false,
            };
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(outcome.is_ok(), taken, "{name} {shown:?}: {outcome:?}");
        }
    }
}

/// Bytes of memory that this process has; nothing where the system does not tell.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
