//! What a user of the server must be allowed to do: no less, and no more.

use tollgate::{
    Algorithm, Global, Key, Limit, Limiter, Lockout, Policy, Quota, RedisStore, RequestHead,
    Ruling, StoreErrorKind,
};

use crate::support::RedisServer;

/// The least rights, as the documentation of the store has them.
fn documented() -> Vec<String> {
    let source = include_str!("../../src/store/redis/mod.rs");
    let (_, rest) = source.split_once("/// ACL SETUSER limits ").expect("the rights");
    let (rights, _) = rest.split_once("```").expect("the end of the rights");
    rights.split_whitespace().filter(|word| *word != "///").map(str::to_owned).collect()
}

/// A server whose user `app` has these rights, and the URL for it.
async fn server(rights: &[String]) -> (RedisServer, String) {
    let server = RedisServer::start().await;
    let rights: Vec<_> = rights.iter().map(String::as_str).collect();
    server.command(&[&["ACL", "SETUSER", "app"], rights.as_slice()].concat());
    let url = format!("redis://app:password@127.0.0.1:{}/", server.port());
    (server, url)
}

const WINDOWS: [Algorithm; 3] =
    [Algorithm::SlidingLog, Algorithm::SlidingCounter, Algorithm::FixedWindow];

#[tokio::test]
async fn the_documented_rights_are_enough_for_all_there_is() {
    let (server, url) = server(&documented()).await;
    let store = RedisStore::builder(&url).deadline(std::time::Duration::from_secs(5));
    let limiter = Limiter::new(store.connect().await.expect("enough rights"));
    let limit = Limit::new("all", Quota::per_hour(1_000));
    let keyed = |word: &'static str| Key::from(word);
    for algorithm in [&[Algorithm::TokenBucket], WINDOWS.as_slice()].concat() {
        let limit = limit.clone().algorithm(algorithm);
        for cost in [1, 7, 0] {
            let limit = limit.clone().cost(cost);
            let decision = limiter.check(&limit, "somebody").await.expect("enough rights");
            assert!(decision.is_allowed());
        }
        assert!(limiter.look(&limit, "somebody").await.expect("enough rights").is_allowed());
        let decision = limiter.check(&limit.clone().cost(5), "somebody").await.expect("an answer");
        decision.settle("all", 3).await.expect("enough rights");
        decision.charge("all", 2).await.expect("enough rights");
        decision.refund().await.expect("enough rights");
        // Up to the limit, and over it.
        let all = limit.clone().cost(900);
        assert!(limiter.check(&all, "somebody").await.expect("enough rights").is_allowed());
        assert!(!limiter.check(&all, "somebody").await.expect("enough rights").is_allowed());
        limiter.reset(&limit, "somebody").await.expect("enough rights");
        assert!(limiter.check(&all, "somebody").await.expect("enough rights").is_allowed());
    }
    // Several limits, a shadow, and a lock, together.
    let limits = [
        limit.clone(),
        Limit::new("log", Quota::per_hour(2)).algorithm(Algorithm::SlidingLog),
        Limit::new("counter", Quota::per_hour(1)).algorithm(Algorithm::SlidingCounter).shadow(),
        Limit::new("tries", Quota::per_hour(5))
            .lockout(Lockout::new(std::time::Duration::from_secs(3_600))),
    ];
    let all = limits.iter().map(|limit| (limit, keyed("everybody")));
    let all: Vec<_> = all.collect();
    for allowed in [true, true, false, false] {
        let decision = limiter.check_all(all.clone()).await.expect("enough rights");
        assert_eq!(decision.is_allowed(), allowed);
    }
    let tries = &limits[3];
    for _ in 0..5 {
        _ = limiter.check(tries, "everybody").await.expect("enough rights");
    }
    limiter.reset(tries, "everybody").await.expect("enough rights");
    // Leases, charged ahead, and given back at the end.
    let leased = Limit::new("leased", Quota::per_hour(1_000)).lease(50);
    let policy = Policy::new("leased").limit(Global, leased).build().expect("a policy");
    let request = http::Request::new(());
    for _ in 0..120 {
        let ruling = limiter.decide(&policy, RequestHead::new(&request)).await;
        let Ruling::Admit(decision) = ruling else { panic!("{ruling:?}") };
        assert_eq!(decision.outcome(), tollgate::Outcome::Allowed);
    }
    // A script that the server has forgotten, and connections that are made anew.
    server.command(&["SCRIPT", "FLUSH"]);
    assert!(limiter.check(&limit, "another").await.expect("enough rights").is_allowed());
    limiter.ready().await.expect("enough rights");
    limiter.shutdown().await;
    let log = server.command(&["ACL", "LOG"]);
    let lines: Vec<_> = log.lines().collect();
    // The client tells its name where it may.
    // Before 7.0 the log has no names of subcommands.
    let naming = if server.version() < (7, 0) { "client" } else { "client|setinfo" };
    let refused = |pair: &[&str]| pair[0] == "object" && pair[1] != naming;
    assert!(!lines.windows(2).any(refused), "{log}");
}

#[tokio::test]
async fn each_of_the_documented_rights_is_needed() {
    let documented = documented();
    for right in documented.iter().filter(|word| word.starts_with('+')) {
        let others: Vec<_> = documented.iter().filter(|word| *word != right).cloned().collect();
        let (server, url) = server(&others).await;
        let Err(error) = use_all(&server, &url).await else { panic!("{right} is not needed") };
        println!("without {right}: {error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{right}: {error}");
    }
}

/// The first error of a use of all algorithms.
async fn use_all(server: &RedisServer, url: &str) -> Result<(), tollgate::StoreError> {
    let limiter = Limiter::new(RedisStore::connect(url).await?);
    for algorithm in [&[Algorithm::TokenBucket], WINDOWS.as_slice()].concat() {
        let limit = Limit::new("all", Quota::per_hour(3)).algorithm(algorithm);
        for _ in 0..5 {
            let decision = limiter.check(&limit, "somebody").await?;
            limiter.look(&limit, "somebody").await?;
            decision.refund().await?;
            let _kept = limiter.check(&limit, "somebody").await?;
        }
        limiter.reset(&limit, "somebody").await?;
        if algorithm == Algorithm::SlidingLog {
            // As a clock that stepped back leaves it.
            server.command(&["FLUSHALL"]);
            let _charged = limiter.check(&limit, "somebody").await?;
            let key = server.command(&["KEYS", "*"]);
            server.command(&["ZADD", &key, "9000000000000000", "0000000000000009"]);
            let _ahead = limiter.check(&limit, "somebody").await?;
            limiter.reset(&limit, "somebody").await?;
        }
        // Long enough for what is charged to fall out of its window.
        let short = Quota::new(3, std::time::Duration::from_millis(20)).expect("a quota");
        let limit = Limit::new("short", short).algorithm(algorithm);
        for _ in 0..4 {
            let _charged = limiter.check(&limit, "somebody").await?;
            tokio::time::sleep(std::time::Duration::from_millis(15)).await;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_right_that_is_taken_away_later_is_a_misconfiguration_until_it_is_back() {
    let (server, url) = server(&documented()).await;
    let limiter = Limiter::new(RedisStore::connect(&url).await.expect("enough rights"));
    let limit = Limit::new("all", Quota::per_hour(1_000));
    limiter.check(&limit, "somebody").await.expect("an answer");
    for (missing, key) in [
        ("-get", "somebody"),
        ("-set", "somebody new"),
        ("-incrby", "somebody"),
        ("-expireat", "somebody"),
        ("-time", "somebody"),
        ("-evalsha", "somebody"),
    ] {
        server.command(&["ACL", "SETUSER", "app", missing]);
        let error = limiter.check(&limit, key).await.expect_err(missing);
        println!("{missing}: {error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{missing}: {error}");
        server.command(&["ACL", "SETUSER", "app", &missing.replace('-', "+")]);
        assert!(limiter.check(&limit, "somebody").await.expect("an answer").is_allowed());
    }
    server.command(&["ACL", "SETUSER", "app", "resetkeys", "~other:*"]);
    let error = limiter.check(&limit, "somebody").await.expect_err("no right to the key");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    let stored = RedisStore::builder(&url).prefix("other").connect().await.expect("a server");
    assert!(Limiter::new(stored).check(&limit, "x").await.expect("an answer").is_allowed());
}
