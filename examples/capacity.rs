//! How many shards, how much memory and how much network a load needs.
//!
//! ```sh
//! cargo run --example capacity -- requests=50000 keys=2000000 limits=2
//! cargo run --example capacity -- requests=500000 keys=10000 lease=20
//! ```

use std::{env, fmt, process::ExitCode};

/// Processor time of a shard for one call with one limit, and for each further limit of the same key, in
/// microseconds: by `cargo bench --bench cluster`, on a machine whose clock says little about yours. Measure
/// there, and put in what you find.
const CALL: f64 = 7.9;
const FURTHER: f64 = 7.7;
/// What a shard reads and writes for a call with one limit, and for each further one, without what TCP adds.
const READ: (f64, f64) = (127.0, 46.0);
const WRITTEN: (f64, f64) = (27.0, 4.0);
/// What a token bucket takes, with the server's own tables.
const BUCKET: f64 = 149.0;
/// A shard has one processor for commands. Above this share of it, waits grow.
const BUSY: f64 = 0.5;
/// What the server may use for keys, so that it can rewrite, grow its tables and meet floods.
const FULL: f64 = 0.5;

/// What may be told of a load, and within which bounds, so that all that is told is a number.
const NAMES: [(&str, f64, f64); 7] = [
    ("requests", 1.0, 1e9),
    ("keys", 1.0, 1e12),
    ("limits", 1.0, 64.0),
    ("identities", 1.0, 64.0),
    ("lease", 0.0, 1e6),
    ("hottest", 0.0, 1.0),
    ("memory", 0.1, 1e5),
];

fn bounds(name: &str) -> Option<(f64, f64)> {
    NAMES.iter().find(|(known, ..)| *known == name).map(|(_, least, most)| (*least, *most))
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    /// Requests per second, at their peak.
    requests: f64,
    /// Keys that are in use within one refill time.
    keys: f64,
    /// Limits of each request.
    limits: f64,
    /// Identities that these count by: limits of one share a call.
    identities: f64,
    /// Units that are charged ahead; 0 or 1 charges each request.
    lease: f64,
    /// Of all requests, those of the busiest key.
    hottest: f64,
    /// Memory of a shard, in gigabytes.
    memory: f64,
}

impl Load {
    const fn new() -> Self {
        Self {
            requests: 10_000.0,
            keys: 1_000_000.0,
            limits: 1.0,
            identities: 1.0,
            lease: 0.0,
            hottest: 0.0,
            memory: 4.0,
        }
    }

    /// Reads `name=number` for each that is not as by default.
    fn read(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut load = Self::new();
        for arg in args {
            let (name, text) = arg.split_once('=').ok_or_else(|| {
                format!("{arg:?}: it must be a name and a number, as in `requests=50000`")
            })?;
            let (least, most) = bounds(name).ok_or_else(|| {
                format!(
                    "there is no {name:?}; there are {}",
                    NAMES.map(|(name, ..)| name).join(", ")
                )
            })?;
            let number = text.replace('_', "").parse::<f64>().ok();
            // No comparison holds for what is not a number.
            let number =
                number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
                    format!("{name}={text}: it must be a number from {least} to {most}")
                })?;
            *load.field(name) = number;
        }
        let Self { limits, identities, .. } = load;
        if identities > limits {
            return Err(format!(
                "identities={identities}: it must be at most limits, which is {limits}"
            ));
        }
        Ok(load)
    }

    fn field(&mut self, name: &str) -> &mut f64 {
        match name {
            "requests" => &mut self.requests,
            "keys" => &mut self.keys,
            "limits" => &mut self.limits,
            "identities" => &mut self.identities,
            "lease" => &mut self.lease,
            "hottest" => &mut self.hottest,
            _ => &mut self.memory,
        }
    }

    fn needs(self) -> Needs {
        // A lease charges for many requests at once, at best.
        let calls = self.requests * self.identities / self.lease.max(1.0);
        let further = self.limits / self.identities - 1.0;
        let busy = |calls: f64| calls * (CALL + FURTHER * further) / 1e6;
        let bytes = self.keys * self.limits * BUCKET;
        let by_load = (busy(calls) / BUSY).ceil().max(1.0);
        let by_memory = (bytes / FULL / (self.memory * 1e9)).ceil();
        let per_call = READ.0 + WRITTEN.0 + further * (READ.1 + WRITTEN.1);
        Needs {
            calls,
            busy: busy(calls),
            shards: by_load.max(by_memory),
            by_load,
            by_memory,
            memory: bytes / FULL / 1e9,
            network: calls * per_call * 8.0 / 1e6,
            hottest: busy(calls * self.hottest) / BUSY,
        }
    }
}

/// What it needs.
#[derive(Debug)]
struct Needs {
    calls: f64,
    /// Processors, if they did nothing else.
    busy: f64,
    shards: f64,
    by_load: f64,
    by_memory: f64,
    /// Gigabytes in all, with room.
    memory: f64,
    /// Megabits per second in all.
    network: f64,
    /// Of what one shard carries, what the busiest key takes.
    hottest: f64,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, busy, shards, by_load, by_memory, memory, network, .. } = self;
        writeln!(f, "shards   {shards} ({by_load} for the load, {by_memory} for the memory)")?;
        writeln!(f, "calls    {calls:.0} per second, {busy:.2} processors of servers")?;
        writeln!(f, "memory   {memory:.1} GB in all, half of it room")?;
        write!(f, "network  {network:.0} Mbit/s in all, without what TCP adds")?;
        if self.hottest > 1.0 {
            let share = self.hottest * 100.0;
            write!(
                f,
                "\nhot key  {share:.0} % of what one shard carries: no number of shards helps, a lease does"
            )?;
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    match Load::read(env::args().skip(1)) {
        Ok(load) => {
            println!("{}", load.needs());
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("capacity: {fault}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Load, String> {
        Load::read(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn more_load_and_more_keys_need_more() {
        let small = load("requests=1000 keys=1000").unwrap().needs();
        assert_eq!((small.shards, small.by_load, small.by_memory), (1.0, 1.0, 1.0));
        let busy = load("requests=1_000_000").unwrap().needs();
        assert_eq!(busy.shards, (1_000_000.0 * CALL / 1e6 / BUSY).ceil());
        let full = load("keys=1000000000 memory=64").unwrap().needs();
        assert_eq!(full.shards, (1e9 * BUCKET / FULL / 64e9).ceil());
    }

    #[test]
    fn limits_of_one_identity_share_a_call_and_leases_spare_them() {
        let shared = load("requests=100000 limits=2").unwrap().needs();
        let apart = load("requests=100000 limits=2 identities=2").unwrap().needs();
        assert_eq!((shared.calls, apart.calls), (100_000.0, 200_000.0));
        assert!(shared.busy < apart.busy && shared.network < apart.network);
        assert_eq!(load("requests=100000 lease=20").unwrap().needs().calls, 5_000.0);
    }

    #[test]
    fn a_key_that_is_too_hot_is_told() {
        let hot = load("requests=500000 hottest=0.5").unwrap().needs().to_string();
        assert!(hot.contains("a lease does"), "{hot}");
        let leased = load("requests=500000 hottest=0.5 lease=20").unwrap().needs().to_string();
        assert!(!leased.contains("hot key"), "{leased}");
    }

    #[test]
    fn what_cannot_be_is_told_with_its_bounds() {
        for (wrong, says) in [
            ("requests", "`requests=50000`"),
            ("colour=1", "there is no \"colour\"; there are requests, keys"),
            ("Memory=1", "there is no \"Memory\""),
            ("requests=many", "requests=many: it must be a number from 1 to 1000000000"),
            ("requests=", "requests=: it must be"),
            ("requests=-1", "requests=-1: it must be"),
            ("requests=0", "requests=0: it must be"),
            ("keys=inf", "keys=inf: it must be"),
            ("keys=1e300", "keys=1e300: it must be a number from 1 to 1000000000000"),
            ("limits=65", "limits=65: it must be a number from 1 to 64"),
            ("identities=0", "identities=0: it must be"),
            ("limits=1 identities=2", "identities=2: it must be at most limits, which is 1"),
            ("lease=-0.1", "lease=-0.1: it must be a number from 0"),
            ("hottest=2", "hottest=2: it must be a number from 0 to 1"),
            ("hottest=NaN", "hottest=NaN: it must be"),
            ("memory=0", "memory=0: it must be a number from 0.1 to 100000"),
        ] {
            let fault = load(wrong).unwrap_err();
            assert!(fault.contains(says), "{wrong}: {fault}");
        }
    }

    #[test]
    fn all_that_can_be_told_comes_to_numbers() {
        for (name, least, most) in NAMES {
            for value in [least, most] {
                let limits = if name == "identities" { "limits=64 " } else { "" };
                let needs = load(&format!("{limits}{name}={value}")).unwrap().needs();
                let text = needs.to_string();
                assert!(!text.contains("inf") && !text.contains("NaN"), "{name}={value}: {text}");
                assert!(needs.shards >= 1.0, "{name}={value}: {text}");
            }
        }
    }
}
