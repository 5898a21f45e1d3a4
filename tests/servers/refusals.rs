//! The server answers, but not with a decision: each such answer has its kind, and ends by itself.

use std::time::Duration;

use tollgate::{Algorithm, Limit, Limiter, Quota, RedisStore, StoreError, StoreErrorKind};

use crate::support::{Log, RedisServer, skip};

/// What a request may take: its deadline, with much to spare on a busy machine.
const BOUND: Duration = Duration::from_secs(10);

/// With a limiter that asks about each request, whatever the answers were.
struct Setup {
    server: RedisServer,
    limiter: Limiter,
    limit: Limit,
}

impl Setup {
    async fn new(args: &[&str]) -> Self {
        let server = RedisServer::start_with(args).await;
        // Long enough for a busy machine: what is awaited here is an answer, not the deadline.
        let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(3));
        let limiter =
            Limiter::builder(store.connect().await.expect("a server")).breaker(None).build();
        Self { server, limiter, limit: Limit::new("all", Quota::per_second(1_000_000)) }
    }

    async fn check(&self) -> Result<(), StoreError> {
        let decided = self.limiter.check(&self.limit, "somebody");
        let decision = tokio::time::timeout(BOUND, decided).await.expect("no request hangs");
        decision.map(|decision| assert!(decision.is_allowed()))
    }

    /// Asks until the error is of `kind`, and stays so.
    async fn expect(&self, kind: StoreErrorKind) -> StoreError {
        let found = async {
            loop {
                match self.check().await {
                    Err(error) if error.kind() == kind => return error,
                    Err(error) => println!("on the way to {kind:?}: {error}"),
                    Ok(()) => {}
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let error = tokio::time::timeout(Duration::from_secs(20), found).await;
        let error = error.unwrap_or_else(|_| panic!("no error of {kind:?}"));
        println!("{error}");
        for _ in 0..20 {
            let again = self.check().await.expect_err("it is still so");
            assert_eq!(again.kind(), kind, "{again}");
        }
        error
    }

    async fn recovers(&self) {
        let answered = async {
            while self.check().await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), answered).await.expect("it recovers");
    }
}

#[tokio::test]
async fn a_demoted_primary_is_read_only_until_it_is_promoted() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    setup.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    setup.expect(StoreErrorKind::ReadOnly).await;
    setup.server.command(&["REPLICAOF", "NO", "ONE"]);
    setup.recovers().await;
}

#[tokio::test]
async fn a_demoted_primary_is_not_asked_for_a_connection_by_every_request() {
    let setup = Setup::new(&[]).await;
    setup.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    setup.expect(StoreErrorKind::ReadOnly).await;
    let connections = || {
        let info = setup.server.command(&["INFO", "stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a number")
    };
    let before = connections();
    for _ in 0..500 {
        setup.check().await.expect_err("it is still so");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // With pauses that double there are a few for each of the three.
    assert!(connections() - before < 60, "{} connections", connections() - before);
}

#[tokio::test]
async fn a_wrong_password_is_a_misconfiguration_at_the_start() {
    let server = RedisServer::start_with(&["--requirepass", "right"]).await;
    for url in [
        format!("redis://:wrong@127.0.0.1:{}/", server.port()),
        format!("redis://127.0.0.1:{}/", server.port()),
    ] {
        let error = RedisStore::connect(url).await.expect_err("the password is wrong");
        println!("{error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(!error.to_string().contains("wrong@"));
    }
}

#[tokio::test]
async fn a_password_for_a_server_without_one_is_a_misconfiguration() {
    let server = RedisServer::start().await;
    let url = format!("redis://:word@127.0.0.1:{}/", server.port());
    let error = RedisStore::connect(url).await.expect_err("there is no password");
    println!("{error}");
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn a_password_that_is_set_later_is_logged_as_an_error_and_mended_by_the_server() {
    let log = Log::local();
    let mut setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    setup.server.command(&["CONFIG", "SET", "requirepass", "later"]);
    setup.server.command(&["AUTH", "later"]);
    setup.server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    setup.expect(StoreErrorKind::Misconfigured).await;
    let errors = log.with("ERROR");
    assert_eq!(errors.len(), 1, "one line, and not one per request: {errors:?}");
    assert!(errors[0].text.contains("misconfigured"), "{errors:?}");
    setup.server.command(&["CONFIG", "SET", "requirepass", ""]);
    setup.recovers().await;
    setup.server.kill();
}

#[tokio::test]
async fn a_full_server_is_out_of_memory_until_it_has_room() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    let limiter = &setup.limiter;
    let limits = [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
    ];
    let limits = limits.map(|by| Limit::new("full", Quota::per_hour(100)).algorithm(by));
    for limit in &limits {
        assert!(limiter.check(limit, "somebody").await.expect("an answer").is_allowed());
    }
    setup.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    setup.expect(StoreErrorKind::OutOfMemory).await;
    // A script that began with a removal could then write on.
    for limit in &limits {
        let error = limiter.check(limit, "somebody").await.expect_err("no room");
        assert_eq!(error.kind(), StoreErrorKind::OutOfMemory, "{:?}", limit.counts_by());
    }
    setup.server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    setup.recovers().await;
}

#[tokio::test]
async fn a_server_that_cannot_save_is_read_only_until_it_can() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    let folder = setup.server.command(&["CONFIG", "GET", "dir"]).replace("dir\n", "");
    let in_the_way = std::path::Path::new(&folder).join("dump.rdb");
    std::fs::create_dir(&in_the_way).expect("a folder where the file should be");
    setup.server.command(&["CONFIG", "SET", "save", "3600 1"]);
    setup.server.command(&["BGSAVE"]);
    let error = setup.expect(StoreErrorKind::ReadOnly).await;
    assert!(error.to_string().contains("MISCONF"), "{error}");
    std::fs::remove_dir(&in_the_way).expect("the folder goes");
    setup.server.command(&["BGSAVE"]);
    setup.recovers().await;
}

#[tokio::test]
async fn a_replica_that_lost_its_primary_and_serves_no_stale_data_is_busy() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    setup.server.command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    setup.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    setup.expect(StoreErrorKind::Busy).await;
    setup.server.command(&["REPLICAOF", "NO", "ONE"]);
    setup.recovers().await;
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_busy_until_it_has() {
    let setup = Setup::new(&["--key-load-delay", "2000", "--rdbcompression", "no"]).await;
    // While it loads, a server looks up from its work after every two megabytes.
    setup.server.command(&["DEBUG", "POPULATE", "900", "k", "100000"]);
    let mut reload = setup.server.connection();
    reload.send(&["DEBUG", "RELOAD"]).expect("it begins");
    setup.expect(StoreErrorKind::Busy).await;
    setup.recovers().await;
    assert_eq!(reload.receive().expect("an answer").as_deref(), Ok("OK"));
}

#[tokio::test]
async fn a_server_without_its_replicas_is_read_only() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    setup.server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    if setup.server.version() < (7, 0) {
        setup.check().await.expect("scripts write all the same");
        skip(&setup.server, "min-replicas-to-write does not concern scripts before Redis 7.0");
        return;
    }
    setup.expect(StoreErrorKind::ReadOnly).await;
    setup.server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    setup.recovers().await;
}

#[tokio::test]
async fn somebody_elses_long_script_makes_the_server_busy_and_no_request_hang() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    setup.server.command(&["CONFIG", "SET", "lua-time-limit", "5"]);
    let mut other = setup.server.connection();
    other.send(&["EVAL", "while true do end", "0"]).expect("the script starts");
    setup.expect(StoreErrorKind::Busy).await;
    setup.server.command(&["SCRIPT", "KILL"]);
    setup.recovers().await;
}

#[tokio::test]
async fn a_server_that_takes_no_more_clients_is_unreachable_until_it_does() {
    let mut server = RedisServer::start().await;
    server.command(&["CONFIG", "SET", "maxclients", "1"]);
    let error = RedisStore::connect(server.url()).await.expect_err("no room for a client");
    println!("{error}");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    server.command(&["CONFIG", "SET", "maxclients", "100"]);
    RedisStore::connect(server.url()).await.expect("room for a client");
    server.kill();
}

#[tokio::test]
async fn a_server_that_kills_our_connections_costs_only_the_requests_on_them() {
    let setup = Setup::new(&[]).await;
    setup.check().await.expect("an answer");
    setup.server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let mut failed = 0;
    for _ in 0..100 {
        failed += u32::from(setup.check().await.is_err());
    }
    // A connection is known to be gone when it is used: at most once for each of the three.
    assert!(failed <= 3, "{failed} requests failed");
}
