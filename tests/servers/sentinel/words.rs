//! What one sentinel says, and what others or the servers themselves do: sentinels of the tests' own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tollgate::{RedisStore, StoreErrorKind};

use super::{is_primary, keys, patient, recovers, takes};
use crate::support::{
    Log, RedisServer,
    fake::{Act, FakeServer, bulk},
    sentinel::until,
};

/// What a sentinel tells, and may come to tell: an epoch and a port, or nothing while that is 0.
#[derive(Clone, Default)]
struct Word(Arc<AtomicU64>);

impl Word {
    fn new(epoch: u64, port: u16) -> Self {
        let word = Self::default();
        word.say(epoch, port);
        word
    }

    fn say(&self, epoch: u64, port: u16) {
        self.0.store(epoch << 16 | u64::from(port), Ordering::SeqCst);
    }

    fn said(&self) -> (u64, u16) {
        let said = self.0.load(Ordering::SeqCst);
        (said >> 16, u16::try_from(said & 0xffff).expect("a port"))
    }
}

async fn sentinel(word: &Word) -> FakeServer {
    let word = word.clone();
    FakeServer::start(move |command| {
        let (epoch, port) = word.said();
        let asked = command.get(1).map(String::as_str);
        Act::Reply(match (command[0].as_str(), asked) {
            ("PING", _) => b"+PONG\r\n".to_vec(),
            ("SENTINEL", Some(_)) if port == 0 => b"*-1\r\n".to_vec(),
            ("SENTINEL", Some("GET-MASTER-ADDR-BY-NAME")) => pair("127.0.0.1", &port.to_string()),
            ("SENTINEL", Some("MASTER")) => pair("config-epoch", &epoch.to_string()),
            ("AUTH", _) if command.last().is_none_or(|word| word != "hunter2") => {
                b"-WRONGPASS no\r\n".to_vec()
            }
            _ => b"+OK\r\n".to_vec(),
        })
    })
    .await
}

fn pair(name: &str, value: &str) -> Vec<u8> {
    [b"*2\r\n".to_vec(), bulk(name), bulk(value)].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_still_admits_is_left_when_the_sentinels_name_another() {
    let (old, new) = (RedisServer::start().await, RedisServer::start().await);
    let word = Word::new(0, old.port());
    let sentinel = sentinel(&word).await;
    let limiter = patient(RedisStore::sentinel([sentinel.url()], "mymaster")).await;
    assert!(takes(&limiter, "somebody").await);
    assert_eq!((keys(&old), keys(&new)), (1, 0));
    word.say(1, new.port());
    until("the new primary is used", async || {
        // None fails on the way: the old one is well.
        assert!(takes(&limiter, "another").await);
        keys(&new) > 0
    })
    .await;
    let had = keys(&old);
    for at in 0..50 {
        assert!(takes(&limiter, &format!("{at}")).await);
    }
    assert_eq!((keys(&old), keys(&new)), (had, 51));

    // Back, by sentinels that have forgotten all.
    word.say(0, old.port());
    until("the old primary is used again", async || {
        assert!(takes(&limiter, "back").await);
        keys(&old) > had
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_not_used_whatever_a_sentinel_says() {
    let (primary, replica) = (RedisServer::start().await, RedisServer::start().await);
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    until("it follows", async || {
        replica.command(&["INFO", "replication"]).contains("master_link_status:up")
    })
    .await;
    assert!(!is_primary(&replica));
    let liar = sentinel(&Word::new(9, replica.port())).await;
    let alone = RedisStore::sentinel([liar.url()], "mymaster").connect().await;
    let error = alone.expect_err("there is no primary");
    println!("{error}");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("is a replica"), "{error}");

    let honest = sentinel(&Word::new(1, primary.port())).await;
    let urls = [liar.url(), honest.url()];
    let limiter = patient(RedisStore::sentinel(urls, "mymaster")).await;
    // Longer than it takes to look for another primary, more than once.
    for at in 0..50 {
        assert!(takes(&limiter, &format!("{at}")).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(keys(&primary), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_has_missed_a_failover_is_not_believed() {
    let (old, new) = (RedisServer::start().await, RedisServer::start().await);
    let stale = sentinel(&Word::new(1, old.port())).await;
    let word = Word::new(1, old.port());
    let other = sentinel(&word).await;
    let urls = [stale.url(), other.url()];
    let limiter = patient(RedisStore::sentinel(urls, "mymaster")).await;
    assert!(takes(&limiter, "first").await);
    word.say(2, new.port());
    until("the new primary is used", async || {
        assert!(takes(&limiter, "during").await);
        keys(&new) > 0
    })
    .await;
    let had = keys(&old);
    for at in 0..30 {
        // Whichever sentinel is asked for the next connection.
        new.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        recovers(&limiter, &format!("{at}")).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(keys(&old), had);
}

#[tokio::test]
async fn without_a_primary_requests_fail_in_time_and_the_log_says_so_once() {
    let log = Log::local();
    let mut server = RedisServer::start().await;
    let word = Word::new(0, server.port());
    let sentinel = sentinel(&word).await;
    let limiter = patient(RedisStore::sentinel([sentinel.url()], "mymaster")).await;
    assert!(takes(&limiter, "before").await);
    server.kill();
    until("requests fail", async || !takes(&limiter, "first").await).await;
    let limit = tollgate::Limit::new("all", tollgate::Quota::per_day(1_000));
    for _ in 0..20 {
        let error = limiter.check(&limit, "somebody").await.expect_err("there is no primary");
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let lines = log.with("the store fails");
    assert_eq!(lines.len(), 1, "{lines:?}");
    println!("{}", lines[0]);

    let next = RedisServer::start().await;
    word.say(1, next.port());
    recovers(&limiter, "after").await;
    assert_eq!(keys(&next), 1);
}

#[tokio::test]
async fn sentinels_and_servers_have_logins_of_their_own() {
    let server = RedisServer::start_with(&["--requirepass", "data"]).await;
    let sentinel = sentinel(&Word::new(0, server.port())).await;
    let host = sentinel.url().replace("redis://", "");
    let url = format!("redis+sentinel://:data@{host}/mymaster/3");
    let builder = RedisStore::builder(&url);
    assert!(takes(&patient(builder.clone().sentinel_password("hunter2")).await, "a").await);
    let user = builder.clone().sentinel_user("me").sentinel_password("hunter2");
    assert!(takes(&patient(user).await, "b").await);
    assert!(server.command(&["INFO", "keyspace"]).contains("db3:keys=2,"));
    let wrong = builder.sentinel_password("wrong").connect().await.expect_err("another word");
    println!("{wrong}");
    assert_eq!(wrong.kind(), StoreErrorKind::Misconfigured, "{wrong}");
    let url = url.replace(":data@", ":other@");
    let wrong = RedisStore::builder(url).sentinel_password("hunter2").connect().await;
    let wrong = wrong.expect_err("another word");
    println!("{wrong}");
    assert_eq!(wrong.kind(), StoreErrorKind::Misconfigured, "{wrong}");
}
