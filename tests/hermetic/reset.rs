//! A reset forgets what one key has taken of one limit.

use std::net::IpAddr;

use http::Request;
use tollgate::{
    ApiKey, Calendar, ClientIp, Header, Key, KeyExtractor, Limit, Limiter, Outcome, PeerIp, Policy,
    Quota, RequestHead, Ruling, StoreErrorKind,
};

use crate::support::{ALGORITHMS, Broken, Flaky, Log, about, decide, left, limiters, memory};

fn tries(units: u64) -> Limit {
    Limit::new("tries", Quota::per_minute(units))
}

#[tokio::test]
async fn a_reset_key_has_all_its_units_at_once() {
    let plan = Limit::calendar("plan", 5, Calendar::Week);
    for limit in ALGORITHMS.map(|by| tries(5).algorithm(by)).into_iter().chain([plan]) {
        for (limiter, _clock) in limiters() {
            limiter.check(&limit.clone().cost(5), "user").await.unwrap();
            assert!(!limiter.check(&limit, "user").await.unwrap().is_allowed());
            limiter.reset(&limit, "user").await.unwrap();
            let look = limiter.look(&limit, "user").await.unwrap();
            let standing = look.binding().unwrap().standing();
            assert_eq!(standing.remaining(), 5, "{:?}", limit.counts_by());
            assert!(standing.reset().is_zero(), "{:?}", limit.counts_by());
            assert!(limiter.check(&limit.clone().cost(5), "user").await.unwrap().is_allowed());
            assert!(!limiter.check(&limit, "user").await.unwrap().is_allowed());
        }
    }
}

#[tokio::test]
async fn other_keys_and_other_limits_keep_what_they_have_taken() {
    for (limiter, _clock) in limiters() {
        let other = Limit::new("other", Quota::per_minute(5));
        let limits = [tries(5), other, tries(5).scope("s"), tries(5).algorithm(ALGORITHMS[1])];
        for limit in &limits {
            for key in ["user", "another", "use", ""] {
                limiter.check(&limit.clone().cost(3), key).await.unwrap();
            }
        }
        limiter.reset(&limits[0], "user").await.unwrap();
        for (at, limit) in limits.iter().enumerate() {
            for key in ["user", "another", "use", ""] {
                let expected = if (at, key) == (0, "user") { 5 } else { 2 };
                assert_eq!(left(&limiter, limit, key).await, expected, "{at} {key:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_limit_of_a_policy_is_not_the_limit_of_that_name_elsewhere() {
    for (limiter, _clock) in limiters() {
        let policy = |name| Policy::new(name).limit(about(), tries(5)).build().unwrap();
        let (api, web) = (policy("api"), policy("web"));
        decide(&limiter, &api, &["user"]).await;
        decide(&limiter, &web, &["user"]).await;
        limiter.reset(&tries(5), "user").await.unwrap();
        limiter.reset(web.limit("tries").unwrap(), "user").await.unwrap();
        assert_eq!(left(&limiter, api.limit("tries").unwrap(), "user").await, 4);
        assert_eq!(left(&limiter, web.limit("tries").unwrap(), "user").await, 5);
        assert!(api.limit("other").is_none() && api.limit("").is_none());
    }
}

#[tokio::test]
async fn a_key_that_was_never_seen_can_be_reset_whatever_its_name() {
    for (limiter, _clock) in limiters() {
        let long = "x".repeat(100_000);
        for key in ["", " ", "{}", "a}:-/tries", "\0", &long] {
            limiter.reset(&tries(5), key).await.unwrap();
            limiter.reset(&Limit::new("", Quota::per_minute(5)), key).await.unwrap();
            assert_eq!(left(&limiter, &tries(5), key).await, 5);
        }
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_an_error_that_is_logged_once() {
    let log = Log::start();
    let store = Flaky::new(memory().0);
    let limiter = Limiter::new(store.clone());
    limiter.check(&tries(5), "user").await.unwrap();
    store.break_(Broken::Now(StoreErrorKind::Unreachable));
    for _ in 0..2 {
        let error = limiter.reset(&tries(5), "user").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    }
    assert_eq!(log.notices().len(), 1, "{:?}", log.notices());
    store.mend();
    assert_eq!(left(&limiter, &tries(5), "user").await, 4);
}

/// Whether the limit of the only policy that counts by this extractor is reset by this key.
async fn resets(extractor: impl KeyExtractor, request: Request<()>, key: Key) -> bool {
    let [_, (limiter, _clock)] = limiters();
    let policy = Policy::new("api").limit(extractor, tries(5)).build().unwrap();
    let limit = policy.limit("tries").unwrap();
    let ruling = limiter.decide(&policy, RequestHead::new(&request)).await;
    assert!(matches!(ruling, Ruling::Admit(decision) if decision.outcome() == Outcome::Allowed));
    if left(&limiter, limit, key.clone()).await != 4 {
        return false;
    }
    limiter.reset(limit, key).await.unwrap();
    let Ruling::Admit(decision) = limiter.decide(&policy, RequestHead::new(&request)).await else {
        return false;
    };
    decision.remaining() == Some(4)
}

fn from(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    let address: IpAddr = peer.parse().unwrap();
    request.extensions_mut().insert(std::net::SocketAddr::new(address, 4711));
    request
}

#[tokio::test]
async fn addresses_are_reset_by_the_prefix_that_they_are_counted_by() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    for (peer, told) in [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7", "::ffff:192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::"),
    ] {
        assert!(resets(PeerIp, from(peer), PeerIp::key(ip(told))).await, "{peer} {told}");
        let client = ClientIp::peer();
        assert!(resets(client.clone(), from(peer), client.key(ip(told))).await, "{peer} {told}");
    }
    assert!(!resets(PeerIp, from("192.0.2.7"), PeerIp::key(ip("192.0.2.8"))).await);
    assert!(!resets(PeerIp, from("2001:db8:0:1::"), PeerIp::key(ip("2001:db8::1"))).await);
    let wide = ClientIp::peer().ipv4_prefix(24).unwrap().ipv6_prefix(48).unwrap();
    for (peer, told) in [("192.0.2.7", "192.0.2.8"), ("2001:db8:0:1::1", "2001:db8:0:2::1")] {
        assert!(resets(wide.clone(), from(peer), wide.key(ip(told))).await, "{peer} {told}");
    }
}

#[tokio::test]
async fn secrets_and_headers_are_reset_by_what_was_sent() {
    let sent = |name: &'static str, value: &'static str| {
        Request::builder().header(name, value).body(()).unwrap()
    };
    let (bearer, header) = (ApiKey::bearer(), ApiKey::header("x-api-key"));
    let request = || sent("authorization", "BEARER  s3cret");
    assert!(resets(bearer.clone(), request(), bearer.key("s3cret")).await);
    assert!(resets(bearer.clone(), request(), header.key(b"s3cret")).await);
    assert!(!resets(bearer.clone(), request(), bearer.key("s3cret ")).await);
    let hashed = bearer.clone().hash_key("pepper");
    assert!(resets(hashed.clone(), request(), hashed.key("s3cret")).await);
    assert!(!resets(hashed, request(), bearer.key("s3cret")).await);

    let tenant = Header::from_static("x-tenant");
    assert!(resets(tenant.clone(), sent("x-tenant", " a cme "), tenant.key("a cme")).await);
    let other = Header::from_static("x-other");
    assert!(!resets(tenant, sent("x-tenant", "acme"), other.key("acme")).await);
}
