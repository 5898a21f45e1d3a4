//! This crate against other ways to ask Redis, on a server of its own and on this machine:
//!
//! * a connection checked out of a stock pool for each request, with a script as one writes it;
//! * raw shared connections with this crate's own script, one call per check: the least that
//!   a limiter with one call per check can cost.
//!
//! Contenders take turns in short rounds, so that whatever else the machine does meets all of them.
//! The table has medians over the rounds and, in brackets, the range of the ratios within a round.
//! Where the machine is busy, the processor time of client and server together says more than the
//! clock. `--quick` makes the rounds shorter and fewer.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say so and end")]
#![expect(clippy::disallowed_methods, reason = "what is measured here is time")]

mod contenders;
mod cpu;
mod report;
mod server;
#[expect(dead_code, reason = "only the script that decides is called here")]
#[path = "../../src/store/redis/source.rs"]
mod source;

use std::{
    env, process,
    time::{Duration, Instant},
};

use contenders::{Checkout, Contender, Raw, Tollgate};
use report::{Round, Series};
use server::Server;

const KEYS: usize = 10_000;
const CALLERS: [usize; 4] = [1, 16, 64, 256];

#[derive(Clone, Copy)]
struct Plan {
    rounds: usize,
    warm_up: Duration,
    round: Duration,
}

const FULL: Plan =
    Plan { rounds: 9, warm_up: Duration::from_millis(100), round: Duration::from_millis(600) };
const QUICK: Plan =
    Plan { rounds: 5, warm_up: Duration::from_millis(50), round: Duration::from_millis(200) };

#[tokio::main]
async fn main() {
    let quick = env::args().any(|arg| arg == "--quick");
    match Server::start() {
        Ok(server) => compare(&server, if quick { QUICK } else { FULL }).await,
        Err(reason) => println!("skipped, because there is no Redis server: {reason}"),
    }
}

async fn compare(server: &Server, plan: Plan) {
    let url = &server.url();
    let tollgate = Tollgate::connect(url, KEYS).await;
    let checkout = Checkout::new(url, KEYS);
    let raw = Raw::connect(url, KEYS, 4).await;
    let alone = Raw::connect(url, KEYS, 1).await;
    let mut series = Vec::new();
    for callers in CALLERS {
        let raw_name = if callers == 1 { "one raw connection" } else { "four raw connections" };
        for name in ["tollgate", "checkout per request", raw_name] {
            series.push(Series { name, callers, rounds: Vec::new() });
        }
    }
    for turn in 0..plan.rounds {
        for (level, callers) in CALLERS.into_iter().enumerate() {
            for step in 0..3 {
                // Nobody always comes first.
                let who = (turn + step) % 3;
                let round = match who {
                    0 => measure(&tollgate, callers, plan, server).await,
                    1 => measure(&checkout, callers, plan, server).await,
                    _ if callers == 1 => measure(&alone, callers, plan, server).await,
                    _ => measure(&raw, callers, plan, server).await,
                };
                series[level * 3 + who].rounds.push(round);
            }
        }
    }
    report::print(&series);
}

/// Lets `callers` ask, each one thing after another, for as long as planned.
async fn measure(contender: &impl Contender, callers: usize, plan: Plan, server: &Server) -> Round {
    let used = || cpu::used(process::id()) + cpu::used(server.id());
    let before = used();
    let start = Instant::now() + plan.warm_up;
    let end = start + plan.round;
    let callers: Vec<_> =
        (0..callers).map(|at| tokio::spawn(ask(contender.caller(at), start, end))).collect();
    let (mut taken, mut all) = (Vec::new(), 0);
    for caller in callers {
        let (measured, early) = caller.await.expect("no caller panics");
        all += early + measured.len();
        taken.extend(measured);
    }
    Round::new(taken, plan.round, (used() - before).as_secs_f64() * 1e6 / all as f64)
}

/// How long each check took, and the number of those before the start, which do not count.
async fn ask(
    mut contender: impl Contender,
    start: Instant,
    end: Instant,
) -> (Vec<Duration>, usize) {
    let mut random = fastrand::Rng::new();
    let (mut taken, mut early) = (Vec::new(), 0);
    loop {
        let before = Instant::now();
        if before >= end {
            return (taken, early);
        }
        assert!(contender.check(random.usize(0..KEYS)).await, "the quota is wide enough");
        if before >= start {
            taken.push(before.elapsed());
        } else {
            early += 1;
        }
    }
}
