//! Runs events, and writes what was measured as a table.

use std::{
    collections::BTreeMap,
    env, fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread::available_parallelism,
    time::Duration,
};

use crate::{
    callers::{BURST, CALLERS, PACE, RATE},
    cell::{Cell, Plan, SHARE, Under},
    event::Event,
};

const SHORT: Plan = Plan {
    before: Duration::from_millis(100),
    hold: Duration::from_millis(600),
    quiet: Duration::from_millis(150),
};
const FULL: Plan = Plan {
    before: Duration::from_millis(500),
    hold: Duration::from_secs(3),
    quiet: Duration::from_millis(300),
};

/// One event at a time, or they would slow each other down.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

type Rows = BTreeMap<(Event, Under), Cell>;

/// An event under all policies, or in the short form under one.
pub(crate) async fn run(event: Event) {
    static ROWS: Mutex<Rows> = Mutex::new(Rows::new());
    let _turn = TURN.lock().await;
    let full = env::var_os("TOLLGATE_CHAOS").is_some_and(|form| form == "full");
    let one = Under::ALL[event as usize % Under::ALL.len()];
    let (plan, policies) = if full { (FULL, &Under::ALL[..]) } else { (SHORT, &[one][..]) };
    for &under in policies {
        let Some(cell) = Cell::measure(event, under, plan).await else {
            // Past the test runner, which shows nothing of a test that passes.
            _ = writeln!(io::stderr(), "skipped: {}", event.name());
            return;
        };
        if full {
            let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
            rows.insert((event, under), cell);
            write(&rows).expect("a file for the table");
        }
    }
}

fn write(rows: &Rows) -> io::Result<()> {
    let path = env::var_os("TOLLGATE_CHAOS_TABLE").map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("chaos.md"),
        PathBuf::from,
    );
    let server = rows.values().next().map_or("no server", |cell| cell.server);
    let cores = available_parallelism()?;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let hole = match env::var_os("TOLLGATE_CHAOS_NFT") {
        Some(_) => "a packet filter that drops what is sent to the server",
        None => "a proxy that forwards nothing",
    };
    let mut text = format!(
        "{server}; {CALLERS} callers, each with a pause of {PACE:?} between its requests; a {build} \
         build, {cores} cores for callers and server together. The scarce limit is {RATE} per second \
         with a burst of {BURST}; `Local` has a share of {SHARE}. The black hole is {hole}.\n\n\
         | event | policy | requests | failures of Redis | p50 | p99 | p99.9 | longest | back after | connects per second \
         | admitted, and at most, of the scarce limit |\n\
         |---|---|---|---|--:|--:|--:|--:|--:|--:|---|\n"
    );
    rows.values().for_each(|cell| text += &format!("{cell}\n"));
    fs::write(path, text)
}

/// A row.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = self.outcomes.iter().map(|(outcome, count)| format!("{outcome}: {count}"));
        let failures =
            self.failures.iter().map(|(kind, count)| format!("{}: {count}", kind.as_str()));
        write!(
            f,
            "| {} | {:?} | {} | {} | {:.1?} | {:.1?} | {:.1?} | {:.1?} | {} | {} | {} |",
            self.event.name(),
            self.under,
            outcomes.collect::<Vec<_>>().join(", "),
            failures.collect::<Vec<_>>().join(", "),
            self.per_mille(500),
            self.per_mille(990),
            self.per_mille(999),
            self.per_mille(1000),
            match self.back_after.as_millis() {
                0 => "at once".to_owned(),
                millis => format!("{millis} ms"),
            },
            self.attempts.map_or_else(|| "unknown".to_owned(), |rate| format!("{rate:.1}")),
            self.admissions(),
        )
    }
}

impl Cell {
    /// The nearest rank: the shortest time that so many of all do not exceed.
    fn per_mille(&self, share: usize) -> Duration {
        let rank = (self.times.len() * share).div_ceil(1000);
        self.times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    fn admissions(&self) -> String {
        let [(by_redis, redis_most), (by_policy, policy_most)] = self.admitted;
        match self.under {
            Under::Allow => format!("{by_redis} of {redis_most}, and {by_policy} without a limit"),
            Under::Deny => format!("{by_redis} of {redis_most}"),
            Under::Local => format!("{by_redis} of {redis_most}, and {by_policy} of {policy_most}"),
        }
    }
}
