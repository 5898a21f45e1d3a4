//! Requests that come while others are under way go out together.

#![cfg(test)]

mod answers;
mod calls;
mod deadlines;
mod failures;
mod gone;
mod runtimes;

use std::{thread::JoinHandle, time::Duration};

use tollgate::{
    Algorithm, Quota, RedisStore, RedisStoreBuilder, Store as _, StoreError, Timestamp,
    store::{Answer, Hit, Reply},
};

use crate::support::{Connection, RedisServer};

/// What the names of the keys begin with.
const PREFIX: &str = "batch:";
/// So many that nobody runs out of them, and so slow that none comes back during a test.
const PLENTY: Quota = Quota::per_day(1_000);

/// A store that is not in a hurry: the time to answer is not what most of these are about.
fn builder(server: &RedisServer) -> RedisStoreBuilder {
    let store = RedisStore::builder(server.url()).prefix(PREFIX.trim_end_matches(':'));
    store.deadline(Duration::from_secs(20))
}

async fn redis() -> (RedisServer, RedisStore) {
    let server = RedisServer::start().await;
    let store = builder(&server).connect().await.unwrap();
    (server, store)
}

fn hit(key: &str, quota: Quota) -> Hit<'_> {
    Hit::new(key.as_bytes(), Algorithm::TokenBucket.meter(quota), 1)
}

async fn take(store: &RedisStore, key: &str) -> Result<Answer, StoreError> {
    store.acquire(&[hit(key, PLENTY)]).await
}

/// Units of plenty that were taken of a key.
fn taken(answer: &Answer) -> u64 {
    PLENTY.quantity() - answer.standings[0].remaining()
}

async fn look(store: &RedisStore, key: &str) -> u64 {
    let look = Hit { cost: 0, ..hit(key, PLENTY) };
    taken(&store.acquire(&[look]).await.unwrap())
}

/// A request that would go out alone, and does not as long as nobody polls it. All that come after it
/// wait for each other, until this task yields.
fn hold(store: &RedisStore) -> Reply {
    store.acquire(&[hit("held", PLENTY)])
}

/// Has the store decide about all requests, which come at once.
async fn together(
    store: &RedisStore,
    requests: &[Vec<Hit<'_>>],
) -> Vec<Result<Answer, StoreError>> {
    let replies: Vec<Reply> = requests.iter().map(|hits| store.acquire(hits)).collect();
    let mut answers = Vec::new();
    for reply in replies {
        answers.push(reply.await);
    }
    answers
}

/// The moment of all these answers.
fn moment(answers: &[Answer]) -> Timestamp {
    assert!(answers.iter().all(|answer| answer.now == answers[0].now), "of several batches");
    answers[0].now
}

/// How often the server ran a command since its count was reset.
fn count(server: &RedisServer, command: &str) -> u64 {
    let info = server.command(&["INFO", "commandstats"]);
    let line = format!("cmdstat_{command}:calls=");
    let calls = info.lines().find_map(|it| it.strip_prefix(&line)?.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

/// What the server is asked, from now on.
struct Monitor(JoinHandle<Vec<Call>>);

/// A call of the script.
#[derive(Debug)]
struct Call {
    keys: Vec<String>,
    /// How many hits each request has.
    requests: Vec<usize>,
}

impl Monitor {
    fn start(server: &RedisServer) -> Self {
        let mut connection: Connection = server.connection();
        assert_eq!(connection.call(&["MONITOR"]).unwrap().as_deref(), Ok("OK"));
        Self(std::thread::spawn(move || {
            let mut calls = Vec::new();
            loop {
                let line = connection.receive().unwrap().unwrap();
                let Some((_, command)) = line.split_once("] ") else { panic!("{line}") };
                let words: Vec<&str> = command.trim_matches('"').split("\" \"").collect();
                match words[0].to_lowercase().as_str() {
                    "echo" if words[1] == "the end" => return calls,
                    "evalsha" | "eval" => calls.push(Call::read(&words)),
                    _ => {}
                }
            }
        }))
    }

    fn end(self, server: &RedisServer) -> Vec<Call> {
        server.command(&["ECHO", "the end"]);
        self.0.join().unwrap()
    }
}

impl Call {
    fn read(words: &[&str]) -> Self {
        let count: usize = words[2].parse().unwrap();
        let (keys, args) = words[3..].split_at(count);
        let mut requests = Vec::new();
        for run in args.chunks(2) {
            let (times, hits) = (run[0].parse().unwrap(), run[1].split('+').count());
            requests.extend(std::iter::repeat_n(hits, times));
        }
        assert_eq!(keys.len(), requests.iter().sum::<usize>());
        Self { keys: keys.iter().map(|&key| key.to_owned()).collect(), requests }
    }
}
