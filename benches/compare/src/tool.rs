//! The server's own benchmark tool: what one call per check can reach at best, as it waits for no
//! answer before the next question and does nothing with it.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    contenders::{WIDE, script_sha},
    cpu::Used,
    series::Round,
};

/// Connections, and calls that each sends at a time.
const WAYS: [(usize, usize); 6] = [(64, 1), (64, 16), (64, 64), (256, 1), (256, 16), (256, 64)];
/// Requests that tell how many make a round.
const TRIAL: f64 = 20_000.0;
/// With thousands of calls on their way, a shorter round would be mostly its end.
const LEAST: Duration = Duration::from_millis(250);

#[derive(Clone, Copy)]
pub(crate) struct Tool {
    connections: usize,
    calls: usize,
    requests: f64,
    port: u16,
    server: u32,
}

impl Tool {
    /// The tool in several ways; none where it is not installed. The server has the script.
    pub(crate) fn all(url: &str, server: u32, keys: usize, round: Duration) -> Vec<Self> {
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a valid URL");
        let way = |(connections, calls)| {
            let mut tool = Self { connections, calls, requests: TRIAL, port, server };
            tool.requests = tool.run(keys)?.rate * round.max(LEAST).as_secs_f64();
            Some(tool)
        };
        WAYS.into_iter().filter_map(way).collect()
    }

    pub(crate) fn name(&self) -> String {
        format!("{NAME} -c {} -P {}", self.connections, self.calls)
    }

    pub(crate) fn run(&self, keys: usize) -> Option<Round> {
        let used = Used::now(self.server);
        let output = Command::new(NAME)
            .args(["-p", &self.port.to_string()])
            .args(["-c", &self.connections.to_string(), "-P", &self.calls.to_string()])
            .args(["-n", &format!("{:.0}", self.requests), "-r", &keys.to_string(), "--csv"])
            .args(["EVALSHA", &script_sha(), "1", "tool:{id:user:__rand_int__}:-/bench:tb", "1"])
            .arg(WIDE.parameters())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        // "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95…","p99…","max…"
        let last = text.lines().last()?;
        let fields: Vec<_> = last.trim_matches('"').split("\",\"").collect();
        let field = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        Some(Round {
            rate: field(1)?,
            p50: field(4)? * 1e3,
            p99: field(6)? * 1e3,
            cpu: used.per(self.requests as usize, self.server),
        })
    }
}

/// Of the program, and of what it reaches.
pub(crate) const NAME: &str = "redis-benchmark";
