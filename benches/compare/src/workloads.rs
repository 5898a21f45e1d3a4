//! What is asked of whom.

use std::time::Duration;

use tollgate::{HeaderFormat, Limit, Limiter, MemoryStore};
use tower::Layer as _;

use crate::{
    contenders::{
        Checkout, HOT, Layered, NARROW, Raw, Room, SLOW, Tollgate, WIDE, bare, governor,
        governor_with_headers, layer, redis, tower_rate_limit_redis,
    },
    cpu::Others,
    measure::{Entry, Pace, Plan, Task, take_turns},
    probe::Probe,
    results::{Group, Load, names::*},
    server::Server,
    tool::Tool,
};

const KEYS: usize = 10_000;
const FLOODED: usize = 100;
const LEASED: u64 = 500;
/// By then, what was on lease of many keys was given back, and keeps the server busy no more.
const GIVEN_BACK: Duration = Duration::from_millis(1_000);
const SIZES: [(&str, usize); 3] = [(K1, 1_000), (K100, 100_000), (M1, 1_000_000)];

/// A server, and how long to ask it.
pub(crate) struct Field<'a> {
    pub(crate) server: &'a Server,
    pub(crate) plan: Plan,
}

impl Field<'_> {
    fn task(&self, pace: Pace, keys: usize, admits: bool) -> Task {
        Task { pace, keys, admits, server: self.server.id() }
    }

    async fn limiter(&self, prefix: &str) -> Limiter {
        Limiter::new(redis(&self.server.url(), prefix).await)
    }

    /// One that asks Redis about every request.
    async fn forgetful(&self, prefix: &str) -> Limiter {
        let store = redis(&self.server.url(), prefix).await;
        Limiter::builder(store).remember_denials(Duration::ZERO).build()
    }

    /// Many keys, all admitted, by so many callers at a time.
    pub(crate) async fn many(&self, levels: &[usize], done: &mut impl FnMut(Group)) {
        let url = &self.server.url();
        let limit = limit(WIDE);
        let leased = limit.clone().lease(LEASED);
        let (own, forgetful) = (self.limiter("many").await, self.forgetful("forget").await);
        let (lease, local) = (self.limiter("lease").await, Limiter::new(MemoryStore::new()));
        let layered = layer(&self.limiter("layer").await, limit.clone(), HEADERS).layer(bare());
        let timed = self.task(Pace::Timed, KEYS, true);
        let counted = self.task(Pace::Counted, KEYS, true);
        let checkout = Checkout::new(url, WIDE, KEYS);
        let peer = tower_rate_limit_redis(url, WIDE, "many").await;
        let mut entries = vec![
            Entry::new(TOLLGATE, TOLLGATE, timed, Tollgate::new(&own, &limit)).await,
            Entry::new(FORGETFUL, TOLLGATE, timed, Tollgate::new(&forgetful, &limit)).await,
            Entry::new(MEMORY, TOLLGATE, counted, Tollgate::new(&local, &limit)).await,
            Entry::new(CHECKOUT, TOLLGATE, timed, checkout).await,
            Entry::new(LAYER, LAYER, timed, Layered(layered)).await,
            Entry::new(PEER, LAYER, timed, peer).await,
            Entry::new(GOVERNOR, LAYER, counted, governor_with_headers(WIDE)).await,
        ];
        let everywhere = entries.len();
        for callers in levels {
            entries.truncate(everywhere);
            let (name, count) = if *callers == 1 { (RAW_ONE, 1) } else { (RAW, 4) };
            let raw = Raw::connect(url, WIDE, KEYS, count).await;
            entries.push(Entry::new(name, TOLLGATE, timed, raw).await);
            // With fewer callers none of so many keys is busy.
            if *callers >= 64 {
                let entry =
                    Entry::new(LEASE, TOLLGATE, timed, Tollgate::new(&lease, &leased)).await;
                entries.push(entry.settle(GIVEN_BACK));
            }
            if Some(callers) == levels.last() {
                let round = self.plan.round;
                for tool in Tool::all(&self.server.url(), self.server.id(), KEYS, round) {
                    let run = move || tool.run(KEYS).expect("the tool ran before");
                    entries.push(Entry::other(&tool.name(), TOLLGATE, run));
                }
            }
            self.turns(Load::Many, *callers, &entries, done).await;
        }
    }

    /// One key that all ask about, and that has enough for all.
    pub(crate) async fn hot(&self, levels: &[usize], done: &mut impl FnMut(Group)) {
        let url = &self.server.url();
        let limit = limit(HOT);
        let leased = limit.clone().lease(LEASED);
        let task = self.task(Pace::Timed, 1, true);
        let (own, lease) = (self.limiter("hot").await, self.limiter("hotlease").await);
        let layered = layer(&own, limit.clone(), HEADERS).layer(bare());
        let layered_lease = layer(&lease, leased.clone(), HEADERS).layer(bare());
        let raw = Raw::connect(url, HOT, 1, 4).await;
        let peer = tower_rate_limit_redis(url, HOT, "hot").await;
        let entries = [
            Entry::new(TOLLGATE, TOLLGATE, task, Tollgate::new(&own, &limit)).await,
            Entry::new(LEASE, TOLLGATE, task, Tollgate::new(&lease, &leased)).await,
            Entry::new(RAW, TOLLGATE, task, raw).await,
            Entry::new(LAYER, LAYER, task, Layered(layered)).await,
            Entry::new(LAYER_LEASE, LAYER, task, Layered(layered_lease)).await,
            Entry::new(PEER, LAYER, task, peer).await,
        ];
        for callers in levels {
            self.turns(Load::Hot, *callers, &entries, done).await;
        }
    }

    /// Keys that have nothing left.
    pub(crate) async fn flood(&self, callers: usize, done: &mut impl FnMut(Group)) {
        let url = &self.server.url();
        let task = self.task(Pace::Counted, FLOODED, false);
        let passes = Task { admits: true, ..task };
        let own = layer(&self.limiter("flood").await, limit(NARROW), HEADERS);
        let forgetful = layer(&self.forgetful("flood0").await, limit(NARROW), HEADERS);
        let peer = tower_rate_limit_redis(url, NARROW, "flood").await;
        let entries = [
            Entry::new(LAYER, LAYER, task, Layered(own.layer(bare()))).await,
            Entry::new(LAYER_FORGETFUL, LAYER, task, Layered(forgetful.layer(bare()))).await,
            Entry::new(BARE, LAYER, passes, Layered(bare())).await,
            Entry::new(PEER, LAYER, task, peer).await,
            Entry::new(GOVERNOR, LAYER, task, governor_with_headers(NARROW)).await,
        ];
        self.turns(Load::Flood, callers, &entries, done).await;
    }

    /// Layers with their states in this process, and what they add to a service.
    pub(crate) async fn memory(&self, done: &mut impl FnMut(Group)) {
        let task = self.task(Pace::Direct, KEYS, true);
        let denied = Task { admits: false, ..task };
        let own = |room, headers| {
            let limiter = Limiter::new(MemoryStore::new());
            Layered(layer(&limiter, limit(room), headers).layer(bare()))
        };
        let entries = [
            Entry::new(BARE, BARE, task, Layered(bare())).await,
            Entry::new(NO_FIELDS, BARE, task, own(WIDE, HeaderFormat::None)).await,
            Entry::new(X_FIELDS, BARE, task, own(WIDE, HeaderFormat::XRateLimit)).await,
            Entry::new(ALL_FIELDS, BARE, task, own(WIDE, HeaderFormat::Both)).await,
            Entry::new(GOVERNOR_PLAIN, BARE, task, governor(WIDE)).await,
            Entry::new(GOVERNOR, BARE, task, governor_with_headers(WIDE)).await,
            Entry::new(X_DENIED, BARE, denied, own(NARROW, HeaderFormat::XRateLimit)).await,
            Entry::new(GOVERNOR_DENIED, BARE, denied, governor_with_headers(NARROW)).await,
        ];
        self.turns(Load::Memory, 1, &entries, done).await;
    }

    /// Ever more keys, each number of them in a database of its own. Also tells what they take.
    pub(crate) async fn sizes(&self, callers: usize, done: &mut impl FnMut(Group)) -> Vec<Size> {
        let mut probe = Probe::connect(&self.server.url());
        let mut memory = || probe.info("memory", "used_memory").parse().unwrap_or(f64::NAN);
        let (mut entries, mut sizes) = (Vec::new(), Vec::new());
        for (database, (name, keys)) in (1..).zip(SIZES) {
            let url = format!("{}/{database}", self.server.url());
            let limiter = Limiter::new(redis(&url, "tg1").await);
            let contender = Tollgate::new(&limiter, &limit(SLOW));
            let before = memory();
            entries.push(Entry::new(name, K1, self.task(Pace::Timed, keys, true), contender).await);
            sizes.push(Size { keys, database, all: memory() - before, one: String::new() });
        }
        for size in &mut sizes {
            probe.ask(&format!("SELECT {}", size.database));
            let key = probe.ask("RANDOMKEY");
            size.one = probe.ask(&format!("MEMORY USAGE {key}"));
        }
        self.turns(Load::Sizes, callers, &entries, done).await;
        sizes
    }

    async fn turns(
        &self,
        load: Load,
        callers: usize,
        entries: &[Entry],
        done: &mut impl FnMut(Group),
    ) {
        let others = Others::watch(self.server.id());
        let series = take_turns(entries, callers, self.plan).await;
        done(Group { load, callers, series, others: others.share() });
    }
}

/// What so many keys take at the server.
pub(crate) struct Size {
    pub(crate) keys: usize,
    database: usize,
    /// Bytes of all, with the tables that they stand in.
    pub(crate) all: f64,
    /// What the server says of one of them.
    pub(crate) one: String,
}

/// What layers send beside Redis; the peer sends nothing.
const HEADERS: HeaderFormat = HeaderFormat::XRateLimit;

fn limit(room: Room) -> Limit {
    Limit::new("bench", room.quota())
}
