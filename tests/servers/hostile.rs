//! A server that answers what no script of ours does: an error, within the deadline, and never
//! an admission.

mod frames;
mod reply;
mod values;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tollgate::{Decision, Limit, Limiter, RedisStore, StoreError};

use crate::support::fake::{Act, FakeServer, ready};

/// What a request may take, with much to spare on a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// A server that gets every client ready, and then answers requests as it was told last.
struct Liar {
    server: FakeServer,
    next: Arc<Mutex<Act>>,
}

impl Liar {
    async fn new() -> Self {
        let next = Arc::new(Mutex::new(Act::Reply(Vec::new())));
        let told = Arc::clone(&next);
        let server = FakeServer::start(move |command| match command[0].as_str() {
            "EVALSHA" if command[2] == "0" => ready(command),
            "EVALSHA" | "DEL" => told.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            _ => ready(command),
        });
        Self { server: server.await, next }
    }

    fn tell(&self, act: Act) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = act;
    }

    /// A limiter that asks about each request over one connection.
    async fn limiter(&self, deadline: Duration) -> Limiter {
        let store = RedisStore::builder(self.server.url()).connections(1).deadline(deadline);
        let store = store.connect().await.expect("a server");
        Limiter::builder(store).breaker(None).remember_denials(Duration::ZERO).build()
    }
}

async fn check(limiter: &Limiter, limits: &[Limit]) -> Result<Decision, StoreError> {
    let checked = limiter.check_all(limits.iter().map(|limit| (limit, "somebody")));
    tokio::time::timeout(BOUND, checked).await.expect("no request hangs")
}
