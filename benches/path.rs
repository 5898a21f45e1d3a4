//! What one request allocates on its way, as a table. With the name of a case and a number, it sends
//! so many requests of that case and nothing else, for tools that count instructions.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say so and end")]
#![expect(clippy::print_stdout, reason = "the table")]

mod service;

use std::{
    alloc::System,
    env, mem,
    net::SocketAddr,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use http::Request;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tollgate::{
    ClientIp, Clock as _, HeaderFormat, KeyExtractor as _, Limit, Limiter, MemoryStore,
    MonotonicClock, Quota, RequestHead, Source, Store,
    algorithm::{Backlog, Reading},
    key::TrustError,
    store::{Answer, Hit, Refund, Reply},
};
use tower::{Layer as _, service_fn};

use self::service::{FORMATS, KEYS, NARROW, WIDE, hello, limit, peers, send};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const REQUESTS: usize = 20_000;
const PROXIES: [&str; 2] = ["10.0.0.0/8", "fd00::/8"];

/// A store elsewhere that denies everything, so that its denials are remembered.
#[derive(Debug)]
struct Denies(MonotonicClock);

impl Store for Denies {
    fn acquire(&self, hits: &[Hit<'_>]) -> Reply {
        let now = self.0.now();
        // Of the burst of `NARROW`, all is taken.
        let reading = Reading::TokenBucket(Backlog::new(86_400_000_000, 0));
        let standings = hits.iter().map(|hit| hit.meter.standing(reading, hit.cost, false, now));
        let (standings, found) = (standings.collect(), vec![reading; hits.len()]);
        Reply::now(Ok(Answer { now, source: Source::Redis, standings, found }))
    }

    fn refund(&self, _: &[Refund<'_>]) -> Reply<()> {
        Reply::now(Ok(()))
    }

    fn reset(&self, _: &[&[u8]]) -> Reply<()> {
        Reply::now(Ok(()))
    }
}

type Case = (String, Box<dyn FnMut()>);

fn cases() -> Vec<Case> {
    let mut peers_of_bare = peers();
    let mut bare = service_fn(hello);
    let mut cases: Vec<Case> =
        vec![("bare".into(), Box::new(move || drop(send(&mut bare, peers_of_bare()))))];
    for (name, format) in FORMATS {
        let limiter = Limiter::new(MemoryStore::new());
        cases.push(layered(format!("allowed, {name}"), &limiter, WIDE, format));
    }
    for (name, format) in FORMATS {
        let limiter = Limiter::new(MemoryStore::new());
        cases.push(layered(format!("denied, {name}"), &limiter, NARROW, format));
    }
    for (name, format) in FORMATS {
        let limiter = Limiter::builder(Denies(MonotonicClock::new()));
        let limiter = limiter.remember_denials(Duration::MAX).build();
        cases.push(layered(format!("cached denial, {name}"), &limiter, NARROW, format));
    }
    let (limiter, limit) = (Limiter::new(MemoryStore::new()), Limit::new("burst", WIDE));
    let mut user = 0;
    let check = move || {
        user = (user + 7_919) % KEYS;
        let mut cx = Context::from_waker(Waker::noop());
        drop(pin!(limiter.check(&limit, user)).poll(&mut cx));
    };
    cases.push(("`Limiter::check`".into(), Box::new(check)));
    let list = ClientIp::x_forwarded_for(PROXIES);
    cases.push(told("X-Forwarded-For", list, "6.6.6.6, 192.0.2.7, 10.0.0.2"));
    let elements = "for=6.6.6.6, for=\"192.0.2.7:80\";proto=https, for=10.0.0.2";
    cases.push(told("Forwarded", ClientIp::forwarded(PROXIES), elements));
    cases.push(told("X-Real-IP", ClientIp::header("x-real-ip", PROXIES), "192.0.2.7"));
    cases
}

/// The key of a client behind proxies.
fn told(header: &'static str, client: Result<ClientIp, TrustError>, line: &'static str) -> Case {
    let client = client.expect("valid proxies");
    let request = Request::get("/").header(header, line);
    let request = request.extension(SocketAddr::from(([10, 0, 0, 1], 4711))).body(());
    let request = request.expect("a valid request");
    (
        format!("`ClientIp`, {header}"),
        Box::new(move || drop(client.extract(RequestHead::new(&request)))),
    )
}

fn layered(name: String, limiter: &Limiter, quota: Quota, format: HeaderFormat) -> Case {
    let mut service = limit(limiter, quota, format).layer(service_fn(hello));
    let mut peers = peers();
    (name, Box::new(move || drop(send(&mut service, peers()))))
}

fn main() {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    if let (Some(name), Some(count)) = (arguments.next(), arguments.next()) {
        let case = cases().into_iter().find(|case| case.0 == name);
        let (_, mut send) = case.expect("the name of a case");
        (0..count.parse().expect("a number")).for_each(|_: usize| send());
        return;
    }
    println!("| case | allocations | bytes |\n|---|---|---|");
    for (name, mut send) in cases() {
        (0..2 * KEYS).for_each(|_| send());
        let region = Region::new(ALLOCATOR);
        (0..REQUESTS).for_each(|_| send());
        let change = region.change();
        let (count, bytes) = (change.allocations + change.reallocations, change.bytes_allocated);
        println!("| {name} | {} | {} |", count / REQUESTS, bytes / REQUESTS);
        mem::forget(send);
    }
}
