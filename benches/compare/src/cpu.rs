//! Processor time: unlike the clock, it tells little of what else the machine does.

use std::{
    fs, process,
    thread::available_parallelism,
    time::{Duration, Instant},
};

use crate::series::Cpu;

/// What client and server have used so far.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    client: Duration,
    server: Duration,
}

impl Used {
    pub(crate) fn now(server: u32) -> Self {
        Self { client: used(process::id()) + of_children(), server: used(server) }
    }

    /// What each of so many checks has used since.
    pub(crate) fn per(self, checks: usize, server: u32) -> Cpu {
        let now = Self::now(server);
        let each =
            |before, now: Duration| now.saturating_sub(before).as_secs_f64() * 1e6 / checks as f64;
        Cpu { client: each(self.client, now.client), server: each(self.server, now.server) }
    }
}

/// How busy all else on this machine was while something was measured.
pub(crate) struct Others {
    begin: Instant,
    busy: Duration,
    used: Used,
    server: u32,
}

impl Others {
    pub(crate) fn watch(server: u32) -> Self {
        Self { begin: Instant::now(), busy: busy(), used: Used::now(server), server }
    }

    /// The share of all processors that others had since.
    pub(crate) fn share(&self) -> f64 {
        let used = self.used.per(1, self.server);
        let busy = busy().saturating_sub(self.busy).as_secs_f64();
        let others = busy - (used.client + used.server) / 1e6;
        let cores = available_parallelism().map_or(1, usize::from) as f64;
        (others / cores / self.begin.elapsed().as_secs_f64()).clamp(0.0, 1.0)
    }
}

/// For how long all processors together had something to do, or were taken away by a host.
fn busy() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = stat.lines().next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(1).map(|field| field.parse::<u64>().unwrap_or_default());
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two.
    let busy: u64 =
        ticks.take(8).enumerate().filter(|(at, _)| !matches!(at, 3 | 4)).map(|(_, n)| n).sum();
    Duration::from_millis(busy * 10)
}

/// What the threads of a process have used so far, in its own code and in the kernel; nothing where
/// there is no `/proc`.
fn used(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    // `/proc/PID/stat` has the sum, but only to 10 ms, of which a short round has few.
    let nanos = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// What children that have ended have used, to 10 ms.
fn of_children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name before it may hold anything, so the fields are counted from behind it.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
