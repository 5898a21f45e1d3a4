//! What became of all requests.

use std::{
    array, fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tollgate::{Source, StoreErrorKind};

use crate::{
    LONGEST,
    faults::Faults,
    policies::{
        CLOSED, HANDLES, KEYS, LEASED, LOCAL, NAMES, OPEN, WIDE, is_shared, local_bound,
        shared_bound,
    },
};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Redis,
    Lease,
    Local,
    Open,
    Denied,
    Remembered,
    DeniedLocally,
    Failed(StoreErrorKind),
    /// Its caller went away.
    Dropped,
    Hung,
    Unexpected,
}

const ENDS: [&str; 11] = [
    "redis",
    "lease",
    "local",
    "open",
    "denied",
    "remembered",
    "denied locally",
    "503",
    "dropped",
    "hung",
    "unexpected",
];

impl End {
    const fn place(self) -> usize {
        match self {
            Self::Redis => 0,
            Self::Lease => 1,
            Self::Local => 2,
            Self::Open => 3,
            Self::Denied => 4,
            Self::Remembered => 5,
            Self::DeniedLocally => 6,
            Self::Failed(_) => 7,
            Self::Dropped => 8,
            Self::Hung => 9,
            Self::Unexpected => 10,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    pages: [Page; NAMES.len()],
    /// Why requests were answered 503, and handles failed, by the place of the kind.
    failed: [AtomicU64; 16],
    handles_failed: [AtomicU64; 16],
}

/// A policy's.
#[derive(Debug, Default)]
struct Page {
    begun: AtomicU64,
    ends: [AtomicU64; ENDS.len()],
    /// Requests that reached the service.
    entered: AtomicU64,
    keys: [Units; KEYS],
    /// The longest that any took, in microseconds.
    longest: AtomicU64,
}

/// Units of a key.
#[derive(Debug, Default)]
struct Units {
    shared: AtomicU64,
    local: AtomicU64,
    back: AtomicU64,
}

impl Books {
    pub(crate) fn begun(&self, policy: usize) {
        self.pages[policy].begun.fetch_add(1, Relaxed);
    }

    pub(crate) fn ended(&self, policy: usize, end: End, took: Duration) {
        let page = &self.pages[policy];
        page.ends[end.place()].fetch_add(1, Relaxed);
        if let End::Failed(kind) = end {
            self.failed[place(kind)].fetch_add(1, Relaxed);
        }
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        page.longest.fetch_max(took, Relaxed);
    }

    /// A request reached the service.
    pub(crate) fn entered(&self, policy: usize, key: usize, source: Source, units: u64) {
        let page = &self.pages[policy];
        page.entered.fetch_add(1, Relaxed);
        // The keys of the wide policy are too many to be told apart.
        let key = &page.keys[key % KEYS];
        if is_shared(source) {
            key.shared.fetch_add(units, Relaxed);
        } else if source == Source::Fallback {
            key.local.fetch_add(units, Relaxed);
        }
    }

    /// It took more.
    pub(crate) fn entered_again(&self, policy: usize, key: usize, units: u64) {
        self.pages[policy].keys[key].shared.fetch_add(units, Relaxed);
    }

    /// It gave some back.
    pub(crate) fn gave_back(&self, policy: usize, key: usize, units: u64) {
        self.pages[policy].keys[key].back.fetch_add(units, Relaxed);
    }

    pub(crate) fn handle_failed(&self, kind: StoreErrorKind) {
        self.handles_failed[place(kind)].fetch_add(1, Relaxed);
    }

    /// Requests that Redis decided.
    pub(crate) fn decided(&self) -> u64 {
        let page = |page: &Page| page.count(End::Redis) + page.count(End::Denied);
        self.pages.iter().map(page).sum()
    }

    /// Fails where something is not as it must be.
    pub(crate) fn balance(&self, faults: &Faults, took: Duration, stall: Duration) {
        for (at, page) in self.pages.iter().enumerate() {
            let name = NAMES[at];
            let count = |end| page.count(end);
            assert_eq!(count(End::Hung), 0, "hung, of `{name}`:\n{self}");
            assert_eq!(count(End::Unexpected), 0, "of `{name}`:\n{self}");
            let longest = Duration::from_micros(page.longest.load(Relaxed));
            assert!(longest < LONGEST + stall, "`{name}` took {longest:?}:\n{self}");

            // All that began has ended, and the service saw what was admitted.
            let ends: u64 = page.ends.iter().map(|end| end.load(Relaxed)).sum();
            assert_eq!(page.begun.load(Relaxed), ends, "of `{name}`:\n{self}");
            let admitted =
                count(End::Redis) + count(End::Lease) + count(End::Local) + count(End::Open);
            let entered = page.entered.load(Relaxed);
            assert!(entered >= admitted, "`{name}`: {entered} entered:\n{self}");
            assert!(entered <= admitted + count(End::Dropped), "`{name}`: {entered}:\n{self}");

            // What the policy is for.
            let failed = count(End::Failed(StoreErrorKind::Timeout));
            let local = count(End::Local) + count(End::DeniedLocally);
            let never = match at {
                OPEN => failed + local,
                CLOSED | LEASED | HANDLES => count(End::Open) + local,
                LOCAL => count(End::Open) + failed,
                _ => count(End::Open),
            };
            assert_eq!(never, 0, "`{name}` does what its policy does not say:\n{self}");
            self.within_bounds(at, faults.restarts + 1, took);
        }
        self.as_expected();
    }

    fn within_bounds(&self, policy: usize, lives: u64, took: Duration) {
        let name = NAMES[policy];
        let keys = &self.pages[policy].keys;
        let one =
            |key: &Units| [&key.shared, &key.local, &key.back].map(|units| units.load(Relaxed));
        let mut keys: Vec<[u64; 3]> = keys.iter().map(one).collect();
        if policy == WIDE {
            let all = |at: usize| keys.iter().map(|key| key[at]).sum();
            keys = vec![array::from_fn(all)];
        }
        for [shared, local, back] in keys {
            let most = shared_bound(policy).most(lives, took) + back as f64;
            assert!(shared as f64 <= most, "`{name}` admitted {shared}, of {most}:\n{self}");
            if let Some(bound) = local_bound(policy) {
                let most = bound.most(1, took);
                assert!(local as f64 <= most, "`{name}` admitted {local}, of {most}:\n{self}");
            }
        }
    }

    /// Each outcome was seen that is to be tried, and no failure that nobody caused.
    fn as_expected(&self) {
        let seen = |policy: usize, end: End| {
            assert!(
                self.pages[policy].count(end) > 0,
                "no {end:?} of `{}`:\n{self}",
                NAMES[policy]
            );
        };
        for policy in 0..NAMES.len() {
            seen(policy, if policy == LEASED { End::Lease } else { End::Redis });
            seen(policy, End::Dropped);
        }
        seen(OPEN, End::Open);
        seen(CLOSED, End::Failed(StoreErrorKind::BreakerOpen));
        seen(CLOSED, End::Denied);
        seen(LOCAL, End::Remembered);
        seen(LOCAL, End::Local);
        seen(LOCAL, End::DeniedLocally);
        for kind in StoreErrorKind::ALL {
            let count = |counts: &[AtomicU64]| counts[place(*kind)].load(Relaxed);
            let caused = matches!(
                kind,
                StoreErrorKind::Timeout | StoreErrorKind::Unreachable | StoreErrorKind::BreakerOpen
            );
            let (failed, handles) = (count(&self.failed), count(&self.handles_failed));
            assert!(caused || failed + handles == 0, "{kind:?}: {failed}, {handles}:\n{self}");
        }
    }
}

impl Page {
    fn count(&self, end: End) -> u64 {
        self.ends[end.place()].load(Relaxed)
    }
}

/// The place of a kind among all.
fn place(kind: StoreErrorKind) -> usize {
    StoreErrorKind::ALL.iter().position(|it| *it == kind).expect("one of all")
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| policy | requests | longest | ended |\n|---|---:|---:|---|")?;
        for (name, page) in NAMES.iter().zip(&self.pages) {
            let longest = Duration::from_micros(page.longest.load(Relaxed));
            write!(f, "| {name} | {} | {longest:.1?} |", page.begun.load(Relaxed))?;
            for (end, count) in ENDS.iter().zip(&page.ends) {
                let count = count.load(Relaxed);
                if count > 0 {
                    write!(f, " {end} {count}")?;
                }
            }
            writeln!(f, " |")?;
        }
        for (what, counts) in [("503", &self.failed), ("handles", &self.handles_failed)] {
            write!(f, "{what}:")?;
            for (kind, count) in StoreErrorKind::ALL.iter().zip(counts) {
                if count.load(Relaxed) > 0 {
                    write!(f, " {} {}", kind.as_str(), count.load(Relaxed))?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
