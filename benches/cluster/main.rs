//! One limit over several servers: a cluster of three shards against one server, what a decision costs there
//! in commands and bytes, and what a million keys take. From these come the constants of the example
//! `capacity`.
//!
//! All of it runs on this machine, client and servers together: where that has few processors, three servers
//! are no faster than one, and the processor time of a decision says what a shard of its own can carry.
//! `--quick` makes the rounds shorter and fewer.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say so and end")]
#![expect(clippy::disallowed_methods, reason = "what is measured here is time")]

#[path = "../redis/cpu.rs"]
mod cpu;
#[path = "../redis/server.rs"]
mod server;

use std::{
    env, process, thread,
    time::{Duration, Instant},
};

use deadpool_redis::redis::{Client, Connection, cmd};
use server::Server;
use tollgate::{
    Algorithm, Key, Limit, Limiter, Quota, RedisStore, Store,
    store::{Hit, Reply},
};

const SLOTS: usize = 16_384;
const CALLERS: usize = 256;
const KEYS: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(10);
/// Keys whose memory is measured.
const MANY: usize = 200_000;

#[tokio::main]
async fn main() {
    let quick = env::args().any(|arg| arg == "--quick");
    let (rounds, round) =
        if quick { (3, Duration::from_millis(300)) } else { (7, Duration::from_secs(2)) };
    let one = Server::start();
    let nodes: Result<Vec<_>, _> =
        (0..3).map(|_| Server::with(&["--cluster-enabled", "yes"])).collect();
    match (one, nodes) {
        (Ok(one), Ok(nodes)) => {
            join(&nodes);
            run(&one, &nodes, rounds, round).await;
        }
        (Err(reason), _) | (_, Err(reason)) => {
            println!("skipped, because there is no Redis server: {reason}");
        }
    }
}

/// Makes the nodes one cluster, each with a third of the slots.
fn join(nodes: &[Server]) {
    for (at, node) in nodes.iter().enumerate() {
        let mut connection = connect(node);
        let mut add = cmd("CLUSTER");
        add.arg("ADDSLOTS");
        (at * SLOTS / nodes.len()..(at + 1) * SLOTS / nodes.len()).for_each(|slot| {
            add.arg(slot);
        });
        add.exec(&mut connection).expect("the slots are free");
        let first = nodes[0].url();
        let port = first.rsplit(':').next().expect("a port");
        let meet = ("MEET", "127.0.0.1", port);
        cmd("CLUSTER").arg(meet).exec(&mut connection).expect("the nodes meet");
    }
    for node in nodes {
        let mut connection = connect(node);
        let state = |connection: &mut Connection| -> String {
            cmd("CLUSTER").arg("INFO").query(connection).expect("it answers")
        };
        while !state(&mut connection).contains("cluster_state:ok") {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn connect(server: &Server) -> Connection {
    let client = Client::open(server.url()).expect("a URL");
    client.get_connection().expect("it accepts")
}

async fn run(one: &Server, nodes: &[Server], rounds: usize, round: Duration) {
    // Where the machine has others to serve, an answer may be late, which is not what is measured.
    let single = RedisStore::builder(one.url()).deadline(PATIENCE);
    let single = single.connect().await.expect("it can be used");
    let urls: Vec<String> = nodes.iter().map(Server::url).collect();
    let cluster = RedisStore::cluster(&urls).deadline(PATIENCE);
    let cluster = cluster.connect().await.expect("it can be used");
    let all: Vec<&Server> = nodes.iter().collect();
    println!("{CALLERS} callers, {KEYS} keys, medians of {rounds} rounds of {round:?}:\n");
    println!(
        "| a decision about | | per s | µs of servers | µs of client | calls | bytes in | out |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (what, limits) in [
        ("one limit", Limits { count: 1, one_key: true }),
        ("two limits of one key", Limits { count: 2, one_key: true }),
        ("two limits of two keys", Limits { count: 2, one_key: false }),
    ] {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for turn in 0..rounds {
            // Nobody always comes first.
            if turn % 2 == 0 {
                first.push(measure(&single, &[one], limits, round).await);
                second.push(measure(&cluster, &all, limits, round).await);
            } else {
                second.push(measure(&cluster, &all, limits, round).await);
                first.push(measure(&single, &[one], limits, round).await);
            }
        }
        for (who, series) in [("one server", &first), ("cluster of three", &second)] {
            let [rate, servers, client, calls, into, out] =
                std::array::from_fn(|at| median(series.iter().map(|round| round[at]).collect()));
            println!(
                "| {what} | {who} | {rate:.0} | {servers:.2} | {client:.2} | {calls:.3} | {into:.0} | \
                 {out:.0} |"
            );
        }
    }
    memory(one, &single).await;
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Decisions per second, and for each of them: processor time of the servers and of this process in
/// microseconds, calls of scripts, and bytes that the servers have read and written.
async fn measure(
    store: &RedisStore,
    servers: &[&Server],
    limits: Limits,
    round: Duration,
) -> [f64; 6] {
    let used = || servers.iter().map(|server| cpu::used(server.id())).sum::<Duration>();
    let counters = || {
        let told = servers.iter().map(|server| counters(server));
        told.fold([0.0; 3], |sum, one| std::array::from_fn(|at| sum[at] + one[at]))
    };
    let (servers_before, client_before) = (used(), cpu::used(process::id()));
    let before = counters();
    let begun = Instant::now();
    let end = begun + round;
    let callers: Vec<_> =
        (0..CALLERS).map(|_| tokio::spawn(ask(store.clone(), limits, end))).collect();
    let mut count = 0.0;
    for caller in callers {
        count += caller.await.expect("no caller panics");
    }
    let taken = begun.elapsed().as_secs_f64();
    let after = counters();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count;
    let [calls, into, out] = std::array::from_fn(|at| (after[at] - before[at]) / count);
    let servers = each(used() - servers_before);
    [count / taken, servers, each(cpu::used(process::id()) - client_before), calls, into, out]
}

/// Calls of scripts, bytes read, bytes written.
fn counters(server: &Server) -> [f64; 3] {
    let mut connection = connect(server);
    let info: String = cmd("INFO").arg("all").query(&mut connection).expect("it answers");
    let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
    let calls = line("cmdstat_evalsha:calls=").and_then(|rest| rest.split(',').next());
    [
        number(calls).unwrap_or(0.0),
        number(line("total_net_input_bytes:")).unwrap_or(0.0),
        number(line("total_net_output_bytes:")).unwrap_or(0.0),
    ]
}

/// What a request is charged to.
#[derive(Clone, Copy)]
struct Limits {
    count: usize,
    one_key: bool,
}

fn limit(at: usize) -> Limit {
    Limit::new(["burst", "daily"][at % 2], Quota::per_second(1_000_000))
}

async fn ask(store: RedisStore, limits: Limits, end: Instant) -> f64 {
    let mut random = fastrand::Rng::new();
    let one_key = limits.one_key;
    let limits: Vec<Limit> = (0..limits.count).map(limit).collect();
    let limiter = Limiter::new(store);
    let mut count = 0.0;
    while Instant::now() < end {
        let shared = random.usize(0..KEYS);
        let mut key = || if one_key { shared } else { random.usize(0..KEYS) };
        let pairs: Vec<_> = limits.iter().map(|limit| (limit, Key::new("user", key()))).collect();
        limiter.check_all(pairs).await.expect("the store answers");
        count += 1.0;
    }
    count
}

/// What a million keys take, whose limits have just been used once.
async fn memory(server: &Server, store: &RedisStore) {
    println!("\n| a million keys of | MB |\n|---|---|");
    for (name, algorithm) in [
        ("token buckets", Algorithm::TokenBucket),
        ("sliding counters", Algorithm::SlidingCounter),
        ("fixed windows", Algorithm::FixedWindow),
        ("sliding logs of one entry", Algorithm::SlidingLog),
    ] {
        let mut connection = connect(server);
        cmd("FLUSHALL").exec(&mut connection).expect("it answers");
        let before = used_memory(&mut connection);
        let meter = algorithm.meter(Quota::per_day(1_000));
        let mut replies: Vec<Reply> = Vec::new();
        for key in 0..MANY {
            let name = format!("{{user:{key:08}}}:api/daily:t86400");
            replies.push(store.acquire(&[Hit::new(name.as_bytes(), meter, 1)]));
            if replies.len() == CALLERS {
                for reply in replies.drain(..) {
                    reply.await.expect("the store answers");
                }
            }
        }
        for reply in replies {
            reply.await.expect("the store answers");
        }
        let taken = used_memory(&mut connection) - before;
        println!("| {name} | {:.0} |", taken / MANY as f64);
    }
}

fn used_memory(connection: &mut Connection) -> f64 {
    let info: String = cmd("INFO").arg("memory").query(connection).expect("it answers");
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.parse().ok()).expect("a number")
}
