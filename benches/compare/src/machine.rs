//! Where it was measured, and what.

use std::{fs, process::Command, thread::available_parallelism};

use crate::probe::Probe;

const LOCK: &str = include_str!("../../../Cargo.lock");

/// Crates whose versions matter.
const CRATES: [&str; 6] =
    ["tower-rate-limit-redis", "tower_governor", "governor", "deadpool-redis", "redis", "tokio"];

/// A few lines of Markdown.
pub(crate) fn describe(probe: &mut Probe) -> String {
    let cores = available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("of an unknown kind", |(_, model)| model);
    let redis = probe.info("server", "redis_version");
    let rust = Command::new("rustc").arg("--version").output().ok();
    let rust = rust.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let crates: Vec<_> = CRATES.into_iter().filter_map(versions).collect();
    format!(
        "{cores} cores ({model}), shared by client and server; Redis {redis} over loopback; {}.\n\n{}.\n",
        rust.as_deref().unwrap_or("an unknown Rust"),
        crates.join(", "),
    )
}

/// A crate with its versions, by the lock file.
fn versions(name: &str) -> Option<String> {
    let head = format!("name = \"{name}\"\nversion = \"");
    let versions: Vec<_> =
        LOCK.split(&head).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    (!versions.is_empty()).then(|| format!("{name} {}", versions.join(" and ")))
}
