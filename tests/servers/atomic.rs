//! Many processes that charge one key at once admit exactly what the limit holds.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

use deadpool_redis::redis::{self, AsyncCommands, aio::MultiplexedConnection};
use tollgate::{
    Limit, Limiter, Quota, RedisStore, Source, Store, StoreError, StoreErrorKind, Timestamp,
    algorithm::{Backlog, Meter},
    store::{Answer, Hit, Refund, Reply},
};

use crate::support::RedisServer;

const PROCESSES: usize = 4;
const REQUESTS: usize = 250;
const CAPACITY: u64 = 10;
const URL: &str = "TOLLGATE_TEST_URL";
const NAIVE: &str = "TOLLGATE_TEST_NAIVE";

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_charge_one_key_at_once_admit_exactly_its_capacity() {
    for _ in 0..3 {
        assert_eq!(admitted(false).await, CAPACITY);
    }
}

/// The test above bites: it catches a store that reads, computes and then writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_reads_and_then_writes_admits_more() {
    assert!(admitted(true).await > CAPACITY);
}

/// How many of all requests of all processes were admitted, on a fresh server.
async fn admitted(naive: bool) -> u64 {
    let server = RedisServer::start().await;
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let mut children: Vec<_> = (0..PROCESSES).map(|_| spawn(&url, naive)).collect();
        let mut outputs: Vec<_> = children
            .iter_mut()
            .map(|child| BufReader::new(child.stdout.take().expect("a pipe")))
            .collect();
        for output in &mut outputs {
            line_with(output, "ready");
        }
        for child in &mut children {
            writeln!(child.stdin.as_mut().expect("a pipe"), "go").expect("the child listens");
        }
        let counts = outputs.iter_mut().map(|output| {
            let line = line_with(output, "admitted ");
            line.rsplit(' ')
                .next()
                .and_then(|count| count.trim().parse::<u64>().ok())
                .expect("a number")
        });
        let sum = counts.sum::<u64>();
        for mut child in children {
            assert!(child.wait().expect("a child").success());
        }
        sum
    })
    .await
    .expect("the parent's part")
}

fn spawn(url: &str, naive: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["atomic::one_of_several_processes", "--exact", "--ignored", "--nocapture"]);
    command.env(URL, url).stdin(Stdio::piped()).stdout(Stdio::piped());
    if naive {
        command.env(NAIVE, "1");
    }
    command.spawn().expect("a child")
}

/// The first line that contains `part`; the test runner writes lines of its own.
fn line_with(output: &mut impl BufRead, part: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).expect("text") > 0, "the child ended before `{part}`");
        if line.contains(part) {
            return line;
        }
    }
}

#[ignore = "started by the tests above, as a process of its own"]
#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_processes() {
    let url = std::env::var(URL).expect("the parent says where");
    let limiter = if std::env::var(NAIVE).is_ok() {
        Limiter::new(Naive::connect(&url).await)
    } else {
        // The time to answer is not what this is about.
        let store = RedisStore::builder(&url).deadline(Duration::from_secs(30));
        let store = store.connect().await.expect("a server");
        // The server decides about everything.
        Limiter::builder(store).remember_denials(Duration::ZERO).breaker(None).build()
    };
    println!("ready");
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()))
        .await
        .expect("a thread")
        .expect("the parent says go");
    let limit = Limit::new("tries", Quota::per_day(CAPACITY));
    let requests: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let (limiter, limit) = (limiter.clone(), limit.clone());
            tokio::spawn(async move { limiter.check(&limit, "everybody").await })
        })
        .collect();
    let mut admitted = 0;
    for request in requests {
        let decision = request.await.expect("no panic").expect("an answer");
        admitted += u64::from(decision.is_allowed());
    }
    println!("admitted {admitted}");
}

/// What many write first: GET, compute, SET.
#[derive(Clone)]
struct Naive(MultiplexedConnection);

impl Naive {
    async fn connect(url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        Self(client.get_multiplexed_async_connection().await.expect("a server"))
    }

    async fn decide(mut self, key: Vec<u8>, hit: Hit<'static>) -> redis::RedisResult<Answer> {
        let (secs, micros): (u64, u64) = redis::cmd("TIME").query_async(&mut self.0).await?;
        let now = secs * 1_000_000 + micros;
        let state: Option<u64> = self.0.get(&key).await?;
        let backlog = state.unwrap_or(0).saturating_sub(now);
        let Meter::TokenBucket(bucket) = hit.meter else { panic!("{hit:?}") };
        let standing =
            bucket.standing(Backlog::new(backlog, 0), hit.cost, true, Timestamp::default());
        let admitted = bucket.fits(Backlog::new(backlog, 0), hit.cost);
        if admitted {
            let increment = u64::try_from(bucket.increment(hit.cost) / 1_000_000).unwrap();
            let () = self.0.set(&key, now + backlog + increment).await?;
        }
        Ok(Answer {
            now: Timestamp::from_micros(now),
            source: Source::Other,
            standings: [standing].into_iter().collect(),
            found: Vec::new(),
        })
    }
}

impl std::fmt::Debug for Naive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Naive")
    }
}

impl Store for Naive {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let key = hits[0].key.to_vec();
        let hit = Hit { key: b"", ..hits[0] };
        let decided = self.clone().decide(key, hit);
        Reply::later(async move {
            decided.await.map_err(|error| {
                StoreError::new(StoreErrorKind::Unexpected, "naive").with_source(error)
            })
        })
    }

    fn refund(&self, _: &[Refund<'_>]) -> Reply<()> {
        unreachable!("nobody asks it to")
    }

    fn reset(&self, _: &[&[u8]]) -> Reply<()> {
        unreachable!("nobody asks it to")
    }
}
