//! What the process takes: memory, open files, and tasks.

use std::{
    fmt, fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, time::sleep};

use crate::CALLERS;

const TICK: Duration = Duration::from_millis(10);
const INTERVAL: Duration = Duration::from_millis(250);
/// How much more memory may be taken at the end: a quarter, and so many KiB.
const MORE_MEMORY: u64 = 8 * 1_024;
/// How many more files may be open at any time: connections are made before others have ended.
const MORE_FILES: usize = 8;
/// How many more tasks may be alive at any time: a request may have one of its own.
const MORE_TASKS: usize = CALLERS;
/// Tasks that end by themselves do so by then.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// KiB that no file is behind.
    memory: Option<u64>,
    files: Option<usize>,
    tasks: usize,
}

/// Samples, in order.
#[derive(Debug)]
pub(crate) struct Vitals(Vec<Sample>);

impl Vitals {
    /// Samples until it is told to stop.
    pub(crate) async fn watch(stop: Arc<AtomicBool>) -> Self {
        let mut samples = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            let (memory, files) = (memory(), open_files());
            samples.push(Sample { memory, files, tasks: alive_tasks() });
            sleep(INTERVAL).await;
        }
        Self(samples)
    }

    /// Fails if memory, files or tasks grew, after a fifth of the time to warm up.
    pub(crate) fn assess(&self) {
        let (first, last) = self.thirds();
        if let (Some(before), Some(after)) = (memory_of(first), memory_of(last)) {
            let most = before + before / 4 + MORE_MEMORY;
            assert!(after <= most, "memory grew from {before} to {after} KiB:\n{self}");
        }
        if let (Some(before), Some(after)) = (most_files(first), most_files(last)) {
            assert!(after <= before + MORE_FILES, "open files grew:\n{self}");
        }
        let most = |samples: &[Sample]| samples.iter().map(|sample| sample.tasks).max();
        let (before, after) = (most(first).unwrap_or(0), most(last).unwrap_or(0));
        assert!(after <= before + MORE_TASKS, "tasks grew from {before} to {after}:\n{self}");
    }

    fn thirds(&self) -> (&[Sample], &[Sample]) {
        let warm = &self.0[self.0.len() / 5..];
        let third = warm.len() / 3;
        assert!(third > 2, "too short to tell");
        (&warm[..third], &warm[warm.len() - third..])
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.0.len().div_ceil(12).max(1);
        writeln!(f, "| at | memory, KiB | files | tasks |\n|---:|---:|---:|---:|")?;
        for (at, Sample { memory, files, tasks }) in self.0.iter().enumerate().step_by(step) {
            let (memory, files) = (memory.unwrap_or(0), files.unwrap_or(0));
            let at = INTERVAL * u32::try_from(at).unwrap_or(u32::MAX);
            writeln!(f, "| {at:.1?} | {memory} | {files} | {tasks} |")?;
        }
        let (first, last) = self.thirds();
        write!(
            f,
            "median memory {:?} KiB, then {:?}; most files {:?}, then {:?}",
            memory_of(first),
            memory_of(last),
            most_files(first),
            most_files(last)
        )
    }
}

fn memory_of(samples: &[Sample]) -> Option<u64> {
    let mut all: Vec<u64> = samples.iter().filter_map(|sample| sample.memory).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

fn most_files(samples: &[Sample]) -> Option<usize> {
    samples.iter().filter_map(|sample| sample.files).max()
}

/// The longest time for which a thread that had to run could not: another's work, on a busy machine,
/// holds up this process as a whole.
pub(crate) fn watch_stalls(stop: Arc<AtomicBool>) -> JoinHandle<Duration> {
    thread::spawn(move || {
        let mut longest = Duration::ZERO;
        while !stop.load(Ordering::SeqCst) {
            let begun = Instant::now();
            thread::sleep(TICK);
            longest = longest.max(begun.elapsed().saturating_sub(TICK));
        }
        longest
    })
}

/// KiB of memory that no file is behind.
pub(crate) fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}

pub(crate) fn open_files() -> Option<usize> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count())
}

/// Tasks of this runtime that have not ended.
pub(crate) fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Fails if more tasks than these stay alive.
pub(crate) async fn tasks_come_down_to(most: usize, when: &str) {
    let begun = Instant::now();
    while alive_tasks() > most {
        let alive = alive_tasks();
        assert!(begun.elapsed() < PATIENCE, "{alive} tasks are left {when}, of at most {most}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Fails if more files than these stay open.
pub(crate) async fn files_come_down_to(most: Option<usize>) {
    let begun = Instant::now();
    while open_files() > most {
        let open = open_files();
        assert!(begun.elapsed() < PATIENCE, "{open:?} files are open, of at most {most:?}");
        sleep(Duration::from_millis(20)).await;
    }
}
