//! Everything at once, for a time: callers at full speed through the layer, while Redis is killed,
//! frozen, restarted and made to forget its scripts, and some callers go away. Nothing may hang, panic,
//! or be left behind, and no more may pass than the limits and the policies say.
//!
//! A plain `cargo test` takes 20 seconds of it. Longer, with what was counted:
//!
//! ```sh
//! TOLLGATE_SOAK=600 cargo test --all-features --test soak soak -- --nocapture
//! ```
//!
//! Memory and open files are read from `/proc`, and are not looked at where there is none.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a soak takes time")]

mod books;
mod callers;
mod faults;
mod flood;
mod policies;
mod support;
mod turn;
mod vitals;

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;
use tollgate::{Breaker, Limiter, MemoryStore, RedisStore};

use self::{
    books::Books,
    support::RedisServer,
    turn::Turn,
    vitals::{Vitals, alive_tasks, open_files, tasks_come_down_to},
};

const CALLERS: usize = 96;
const SHORT: Duration = Duration::from_secs(20);
/// The longest that a call to Redis may take.
const DEADLINE: Duration = Duration::from_millis(100);
/// No request takes longer, beyond the time that this whole process was kept from running.
const LONGEST: Duration = Duration::from_millis(2_100);
/// One that takes so long is given up.
const HANG: Duration = Duration::from_secs(20);
/// Connections of the store, each with a task of its own.
const CONNECTIONS: usize = 3;

#[test]
fn soak() {
    let turn = Turn::take();
    let time = env::var("TOLLGATE_SOAK").map_or(SHORT, |secs| {
        Duration::from_secs(secs.parse().expect("TOLLGATE_SOAK is a number of seconds"))
    });
    turn.runtime().block_on(run(time));
    turn.end();
}

async fn run(time: Duration) {
    let (tasks_before, files_before) = (alive_tasks(), open_files());
    let mut server = RedisServer::start().await;
    let books = Arc::new(Books::default());
    let limiter = limiter(&server).await;
    let services = policies::services(&limiter, &books);

    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (services, books) = (services.clone(), Arc::clone(&books));
        callers.spawn(callers::keep_calling(services, books, Arc::clone(&stop)));
    }
    let begun = Instant::now();
    let vitals = tokio::spawn(Vitals::watch(Arc::clone(&stop)));
    let stalls = vitals::watch_stalls(Arc::clone(&stop));
    let faults = faults::play(&mut server, &books, begun + time).await;
    stop.store(true, Ordering::SeqCst);
    while let Some(ended) = callers.join_next().await {
        ended.expect("no panic");
    }
    let took = begun.elapsed();
    let vitals = vitals.await.expect("no panic");
    let stall = stalls.join().expect("no panic");

    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    println!("{CALLERS} callers, {took:.1?}, {build} build, {}", server.name());
    println!("the longest stall of this process: {stall:.1?}");
    println!("{faults}\n{books}{vitals}");
    println!("{:?}", limiter.health());
    books.balance(&faults, took, stall);
    vitals.assess();

    // What is left when nobody calls: the connections, the sampler being gone.
    tasks_come_down_to(tasks_before + CONNECTIONS, "at rest").await;
    limiter.shutdown().await;
    drop((limiter, services));
    tasks_come_down_to(tasks_before, "after the end").await;
    drop(server);
    vitals::files_come_down_to(files_before).await;
}

async fn limiter(server: &RedisServer) -> Limiter {
    let store = RedisStore::builder(server.url()).connections(CONNECTIONS).deadline(DEADLINE);
    let store = store.connect().await.expect("a server");
    // A busy machine may be slow at any time.
    let breaker = Breaker::default().slower_than(Duration::from_secs(60));
    // Room for all keys: what has to be evicted is forgotten.
    let fallback = MemoryStore::builder().capacity(4 * policies::MANY).build();
    Limiter::builder(store).breaker(breaker).fallback(fallback).build()
}
