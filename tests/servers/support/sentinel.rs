//! A primary with two replicas, and three sentinels that watch them.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::Path,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    RedisServer,
    binary::Binary,
    front::Front,
    port::free_port,
    process::{self, Process},
    resp::{Connection, Reply},
};

pub(crate) const NAME: &str = "mymaster";

/// What a change may take, with much to spare on a busy machine.
const BOUND: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

/// Servers and sentinels of a test's own. Two of three sentinels agree on a primary that was silent for
/// half a second.
#[derive(Debug)]
pub(crate) struct Topology {
    /// The first one is the primary at the start.
    pub(crate) servers: Vec<RedisServer>,
    pub(crate) sentinels: Vec<Sentinel>,
    /// What stands before each server, if anything does.
    fronts: Vec<Front>,
}

impl Topology {
    pub(crate) async fn start() -> Self {
        Self::start_as(Vec::new(), |_| Vec::new()).await
    }

    /// The same, with one of these before each of the servers, which alone others hear of.
    pub(crate) async fn start_behind(fronts: Vec<Front>) -> Self {
        Self::start_as(fronts, |_| Vec::new()).await
    }

    /// The same, each server with variables of its own in its environment.
    pub(crate) async fn start_each_in(
        environment: impl Fn(usize) -> Vec<(&'static str, OsString)>,
    ) -> Self {
        Self::start_as(Vec::new(), environment).await
    }

    async fn start_as(
        fronts: Vec<Front>,
        environment: impl Fn(usize) -> Vec<(&'static str, OsString)>,
    ) -> Self {
        let mut servers = Vec::new();
        for at in 0..3 {
            let front = fronts.get(at);
            let announced = front.map(|front| front.port().to_string());
            let announce = announced.iter().flat_map(|port| ["--replica-announce-port", port]);
            let options = ["--repl-diskless-sync-delay", "0"].into_iter().chain(announce);
            let server = RedisServer::start_in(&options.collect::<Vec<_>>(), environment(at)).await;
            if let Some(front) = front {
                front.lead_to(server.port());
            }
            servers.push(server);
        }
        let port = fronts.first().map_or(servers[0].port(), Front::port);
        for replica in &servers[1..] {
            replica.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        }
        let linked = |server: &RedisServer| {
            server.command(&["INFO", "replication"]).contains("master_link_status:up")
        };
        until("the replicas follow", async || servers[1..].iter().all(linked)).await;
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            sentinels.push(Sentinel::start(port).await);
        }
        let ready = |sentinel: &Sentinel| {
            let told = sentinel.command(&["SENTINEL", "MASTER", NAME]).unwrap_or_default();
            told.contains("num-slaves\n2\n") && told.contains("num-other-sentinels\n2\n")
        };
        until("the sentinels know each other", async || sentinels.iter().all(ready)).await;
        Self { servers, sentinels, fronts }
    }

    /// The URL of all sentinels.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port)).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    /// Which server all sentinels that run call the primary, if they agree.
    pub(crate) fn primary(&self) -> Option<usize> {
        let running = self.sentinels.iter().filter(|sentinel| sentinel.process.is_some());
        let mut told: Vec<_> = running.map(Sentinel::primary).collect();
        told.dedup();
        let [Some(port)] = told.as_slice() else { return None };
        let told = |at: usize| self.fronts.get(at).map_or(self.servers[at].port(), Front::port);
        (0..self.servers.len()).find(|at| told(*at) == *port)
    }

    /// Waits until the sentinels agree on another primary than `old`.
    pub(crate) async fn failed_over(&self, old: usize) -> usize {
        until("there is another primary", async || {
            self.primary().is_some_and(|primary| primary != old)
        })
        .await;
        self.primary().expect("they agree")
    }
}

/// A sentinel process.
#[derive(Debug)]
pub(crate) struct Sentinel {
    pub(crate) port: u16,
    process: Option<Process>,
    _dir: TempDir,
}

impl Sentinel {
    /// Watches the primary on that port.
    pub(crate) async fn start(primary: u16) -> Self {
        Self::start_with(primary, "").await
    }

    /// The same, with further settings.
    pub(crate) async fn start_with(primary: u16, settings: &str) -> Self {
        loop {
            let dir = TempDir::with_prefix("tollgate-sentinel-").expect("a temporary folder");
            let port = free_port();
            if let Some(process) = launch(dir.path(), port, primary, settings).await {
                return Self { port, process: Some(process), _dir: dir };
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn freeze(&self) {
        self.process.as_ref().expect("it runs").freeze().expect("it can be stopped");
    }

    /// Runs a command.
    pub(crate) fn command(&self, args: &[&str]) -> Reply {
        let mut connection = Connection::open(self.port, None).expect("a connection");
        connection.call(args).expect("an answer")
    }

    fn primary(&self) -> Option<u16> {
        let told = self.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).ok()?;
        told.lines().nth(1)?.parse().ok()
    }
}

/// Waits until it holds.
///
/// # Panics
///
/// If that takes longer than ninety seconds.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Nothing, if somebody else has the port.
async fn launch(dir: &Path, port: u16, primary: u16, further: &str) -> Option<Process> {
    let (file, log) = (dir.join("sentinel.conf"), dir.join("sentinel.log"));
    let settings = format!(
        "{further}port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {NAME} 127.0.0.1 {primary} 2\n\
         sentinel down-after-milliseconds {NAME} 500\nsentinel failover-timeout {NAME} 3000\n\
         sentinel parallel-syncs {NAME} 2\n",
        dir.display()
    );
    fs::write(&file, settings).expect("a file for the settings");
    let mut command = process::command(&Binary::find().path);
    command.arg(&file).arg("--sentinel").stdout(File::create(&log).expect("a file for the log"));
    let mut process = Process::spawn(command).expect("a sentinel can be run");
    let begun = Instant::now();
    loop {
        let ended = process.has_ended();
        let text = fs::read_to_string(&log).unwrap_or_default();
        if ended {
            assert!(text.contains("Address already in use"), "the sentinel ended at once:\n{text}");
            return None;
        }
        if text.contains("+monitor master") {
            return Some(process);
        }
        assert!(begun.elapsed() < BOUND, "the sentinel does not start:\n{text}");
        tokio::time::sleep(PAUSE).await;
    }
}
