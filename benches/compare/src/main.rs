//! This crate beside others, on a server of its own and on this machine. It prints tables in
//! Markdown, says which bars are met, and draws a chart.
//!
//! Contenders take turns in short rounds, so that whatever else the machine does meets all of them.
//! The tables have medians over the rounds and, in brackets, the range of the ratios within a round.
//! Where the machine is busy, the processor time of client and server together says more than the
//! clock.
//!
//! Peers that are only a tower layer are asked through one, around a bare service, and so is this
//! crate beside them: from a request that is made to a response that is dropped.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say so and end")]
#![expect(clippy::disallowed_methods, reason = "what is measured here is time")]

mod bars;
mod chart;
mod contenders;
mod cpu;
mod machine;
mod measure;
mod probe;
mod report;
mod results;
mod series;
#[path = "../../redis/server.rs"]
mod server;
#[expect(dead_code, reason = "only the script that decides is called here")]
#[path = "../../../src/store/redis/source.rs"]
mod source;
mod tool;
mod workloads;

use std::{env, fs, path::PathBuf, time::Duration};

use measure::Plan;
use probe::Probe;
use results::Group;
use server::Server;
use workloads::Field;

const USAGE: &str = "\
Compares tollgate with other rate limiters. Needs redis-server.

  --quick    about a minute, instead of ten
  --out DIR  where compare.md and compare.svg go (default: target/compare)";

const FULL: Plan =
    Plan { rounds: 9, warm_up: Duration::from_millis(100), round: Duration::from_millis(600) };
const QUICK: Plan =
    Plan { rounds: 5, warm_up: Duration::from_millis(20), round: Duration::from_millis(100) };

#[tokio::main]
async fn main() {
    let (mut plan, mut out) = (FULL, PathBuf::from("target/compare"));
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.len()) {
            ("--quick", _) => plan = QUICK,
            ("--out", 1..) => out = args.next().unwrap_or_default().into(),
            _ => return println!("{USAGE}"),
        }
    }
    match Server::start() {
        Ok(server) => compare(&Field { server: &server, plan }, &out).await,
        Err(reason) => println!("skipped, because there is no Redis server: {reason}"),
    }
}

async fn compare(field: &Field<'_>, out: &PathBuf) {
    let mut text = String::new();
    let mut say = |part: &str| {
        print!("{part}");
        text.push_str(part);
    };
    say(&machine::describe(&mut Probe::connect(&field.server.url())));
    let mut groups = Vec::new();
    let mut done = |group: Group| {
        say(&report::table(&group));
        groups.push(group);
    };
    field.many(&[1, 16, 64, 256], &mut done).await;
    field.hot(&[64, 256], &mut done).await;
    field.flood(64, &mut done).await;
    field.memory(&mut done).await;
    // Last, as the server is fuller after it.
    let sizes = field.sizes(64, &mut done).await;
    say(&report::sizes(&sizes));
    say(&bars::table(&groups));
    fs::create_dir_all(out).expect("the folder can be made");
    fs::write(out.join("compare.md"), &text).expect("the folder can be written to");
    chart::draw(&groups, &out.join("compare.svg")).expect("the folder can be written to");
    println!("\n{}", out.join("compare.{md,svg}").display());
}
