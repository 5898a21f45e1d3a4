//! The store in this process, under everything that clients can do to it.

mod cleaning;
mod clock;
mod flood;
mod threads;

use tollgate::{
    Algorithm, Calendar, MemoryStore, Quota, Store,
    algorithm::Meter,
    store::{Answer, Hit},
};

/// One limit of each algorithm; those of the calendar by their own periods.
fn meters(quota: Quota) -> Vec<Meter> {
    let calendar = [Calendar::Day, Calendar::Week, Calendar::Month];
    let calendar = calendar.map(|unit| {
        Algorithm::Calendar(unit).meter(Quota::new(quota.quantity(), unit.nominal()).unwrap())
    });
    let others = [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingCounter,
        Algorithm::FixedWindow,
    ];
    others.map(|algorithm| algorithm.meter(quota)).into_iter().chain(calendar).collect()
}

/// Charges units of one limit.
fn take(store: &MemoryStore, key: &[u8], quota: Quota, cost: u64) -> Answer {
    take_by(store, key, Algorithm::TokenBucket.meter(quota), cost)
}

fn take_by(store: &MemoryStore, key: &[u8], meter: Meter, cost: u64) -> Answer {
    let hit = Hit { key, meter, cost, shadow: false, lease: 0 };
    store.acquire(&[hit]).try_now().expect("memory answers at once").unwrap()
}

/// Whether the units were taken.
fn takes(store: &MemoryStore, key: &[u8], quota: Quota, cost: u64) -> bool {
    take(store, key, quota, cost).standings[0].fits()
}

/// Memory of this process that is resident, in megabytes.
#[cfg(target_os = "linux")]
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Runs the test of this name in a process of its own: other tests take memory as well.
#[cfg(target_os = "linux")]
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "TOLLGATE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    let run = process.args(["--exact", name]).env(ALONE, "1").output().unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && told.contains("1 passed"), "{told}");
}
