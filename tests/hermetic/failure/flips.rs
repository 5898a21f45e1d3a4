//! What the log says: once when a store begins to fail, once when it answers again, and nothing for
//! each request, which would amplify a flood.

use std::time::Duration;

use tollgate::{Limit, OnFailure, Quota, StoreErrorKind};
use tracing::Level;

use super::{ALL, KINDS, api, breakable};
use crate::support::{Broken, Client, Log, secs};

const QUOTA: Quota = Quota::per_minute(4);

fn levels(log: &Log) -> Vec<Level> {
    log.notices().into_iter().map(|(level, _)| level).collect()
}

async fn many(client: &mut Client) {
    for _ in 0..200 {
        client.send().await;
    }
}

#[tokio::test]
async fn each_flip_is_logged_once_and_not_once_per_request() {
    for on_failure in ALL {
        let log = Log::start();
        let (limiter, store, clock) = breakable();
        let mut client = Client::sharing(&limiter, api(QUOTA, on_failure));
        for flips in 0..3 {
            many(&mut client).await;
            assert_eq!(levels(&log), [Level::WARN, Level::INFO].repeat(flips));
            store.break_(Broken::Now(StoreErrorKind::Unreachable));
            many(&mut client).await;
            assert_eq!(levels(&log).len(), 2 * flips + 1);
            store.mend();
            clock.advance(secs(1));
            many(&mut client).await;
        }
        let notices = log.notices();
        assert!(notices[0].1.contains("broken on demand"), "{notices:?}");
        assert!(notices[1].1.contains("answers again"), "{notices:?}");
    }
}

#[tokio::test]
async fn a_store_that_fails_now_and_then_does_not_fill_the_log() {
    let log = Log::start();
    let (limiter, store, clock) = breakable();
    let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Allow));
    for _ in 0..500 {
        store.break_(Broken::Now(StoreErrorKind::Timeout));
        client.send().await;
        store.mend();
        client.send().await;
        clock.advance(Duration::from_millis(900));
    }
    assert_eq!(levels(&log), [Level::WARN]);
    clock.advance(Duration::from_millis(100));
    client.send().await;
    assert_eq!(levels(&log), [Level::WARN, Level::INFO]);
}

#[tokio::test]
async fn another_kind_of_failure_is_news() {
    let log = Log::start();
    let (limiter, store, _) = breakable();
    let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Deny));
    for _ in 0..3 {
        for kind in KINDS {
            store.break_(Broken::Later(kind));
            client.send().await;
        }
    }
    let notices = log.notices();
    assert_eq!(notices.len(), KINDS.len(), "{notices:?}");
    for ((_, text), kind) in notices.iter().zip(KINDS) {
        assert!(text.contains(kind.as_str()), "{text}");
    }
}

#[tokio::test]
async fn a_store_that_is_misconfigured_is_an_error_whatever_the_policy() {
    for on_failure in ALL {
        let log = Log::start();
        let (limiter, store, _) = breakable();
        store.break_(Broken::Now(StoreErrorKind::Misconfigured));
        let mut client = Client::sharing(&limiter, api(QUOTA, on_failure));
        many(&mut client).await;
        let notices = log.notices();
        let [(Level::ERROR, text)] = notices.as_slice() else { panic!("not one: {notices:?}") };
        assert!(text.contains("misconfigured") && text.contains("broken on demand"), "{text}");
    }
}

#[tokio::test]
async fn a_misconfiguration_is_not_hidden_by_another_failure_before_it() {
    let log = Log::start();
    let (limiter, store, _) = breakable();
    let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Allow));
    store.break_(Broken::Now(StoreErrorKind::Unreachable));
    many(&mut client).await;
    store.break_(Broken::Now(StoreErrorKind::Misconfigured));
    many(&mut client).await;
    assert_eq!(levels(&log), [Level::WARN, Level::ERROR]);
}

#[tokio::test]
async fn checks_without_http_are_logged_the_same_way() {
    let log = Log::start();
    let (limiter, store, clock) = breakable();
    let limit = Limit::new("tries", QUOTA);
    for broken in [true, false] {
        if broken {
            store.break_(Broken::Now(StoreErrorKind::Busy));
        } else {
            store.mend();
            clock.advance(secs(1));
        }
        for _ in 0..50 {
            let _ = limiter.check(&limit, "user").await;
        }
    }
    assert_eq!(levels(&log), [Level::WARN, Level::INFO]);
}

#[tokio::test]
async fn denials_are_for_debugging_only_and_no_line_names_a_key() {
    let log = Log::start();
    let (limiter, _, _) = breakable();
    let mut client = Client::sharing(&limiter, api(QUOTA, OnFailure::Allow));
    many(&mut client).await;
    assert_eq!(log.notices(), []);
    let limit = Limit::new("mails", QUOTA);
    for _ in 0..9 {
        limiter.check(&limit, "secret-user").await.unwrap();
    }
    let events = log.events();
    assert_eq!(events.len(), 209);
    for (level, text) in events {
        assert_eq!(level, Level::DEBUG);
        assert!(!text.contains("secret-user"), "{text}");
    }
}

#[tokio::test]
async fn the_event_of_a_decision_says_what_was_decided_and_by_whom() {
    let log = Log::start();
    let (limiter, _, _) = breakable();
    let mut client = Client::sharing(&limiter, api(Quota::per_minute(1), OnFailure::Allow));
    client.send().await;
    client.send().await;
    let texts: Vec<String> = log.events().into_iter().map(|(_, text)| text).collect();
    for (text, outcome) in texts.iter().zip(["allowed", "denied"]) {
        for part in ["policy=api", "limit=tries", "source=Memory", "remaining=0"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(text.contains(&format!("outcome={outcome}")), "{text}");
    }
}
