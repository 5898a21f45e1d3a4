//! A Redis (or Valkey) server of a test's own.

use std::{
    ffi::OsString,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    binary::Binary,
    launch::launch,
    port::free_port,
    process::Process,
    resp::{Connection, Reply},
};

const RESTART_BOUND: Duration = Duration::from_secs(20);
const ATTEMPTS: usize = 10;

/// A server on a free loopback port, with its own temporary folder and nothing kept on disk.
///
/// Dropping it kills the process, also a frozen one, and removes the folder.
#[derive(Debug)]
pub(crate) struct RedisServer {
    port: u16,
    args: Vec<String>,
    environment: Vec<(&'static str, OsString)>,
    // Dropped before `dir`: the process ends before its folder goes.
    process: Option<Process>,
    frozen: AtomicBool,
    control: Mutex<Option<Connection>>,
    dir: TempDir,
}

impl RedisServer {
    /// Whether the server program was built with TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn has_tls() -> bool {
        Binary::find().has_tls()
    }

    /// Starts a server and waits until it answers.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with further options, such as `["--requirepass", "x"]`.
    ///
    /// # Panics
    ///
    /// If it does not start; the message has the server's log.
    pub(crate) async fn start_with(args: &[&str]) -> Self {
        Self::start_in(args, Vec::new()).await
    }

    /// Starts a server with further options and variables in its environment.
    pub(crate) async fn start_in(
        args: &[&str],
        environment: Vec<(&'static str, OsString)>,
    ) -> Self {
        let mut server = Self {
            port: free_port(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            environment,
            process: None,
            frozen: AtomicBool::new(false),
            control: Mutex::default(),
            dir: TempDir::with_prefix("tollgate-").expect("a temporary folder"),
        };
        for _ in 0..ATTEMPTS {
            if server.launch().await {
                return server;
            }
            server.port = free_port();
        }
        panic!("somebody else took the port {ATTEMPTS} times");
    }

    /// The port, which stays the same over [`restart`](Self::restart).
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The URL for a client, with the password that `--requirepass` set at the start.
    pub(crate) fn url(&self) -> String {
        let login = self.password().map(|word| format!(":{word}@")).unwrap_or_default();
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// The server's name and full version, as its program tells them.
    pub(crate) fn name(&self) -> &'static str {
        &Binary::find().name
    }

    /// The server's major and minor version, by its own numbering.
    pub(crate) fn version(&self) -> (u32, u32) {
        Binary::find().version
    }

    /// Kills the process (SIGKILL) and waits for its end. Connecting is refused from then on.
    pub(crate) fn kill(&mut self) {
        self.process = None;
        self.frozen.store(false, Ordering::SeqCst);
        *self.control() = None;
    }

    /// Kills the process if it runs, and starts it anew on the same port, empty.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        let begun = Instant::now();
        while !self.launch().await {
            assert!(begun.elapsed() < RESTART_BOUND, "somebody else keeps port {}", self.port);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops the process (SIGSTOP): the system still accepts connections, nobody answers.
    pub(crate) fn freeze(&self) {
        self.running().freeze().expect("the server can be stopped");
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// Lets a frozen process go on.
    pub(crate) fn thaw(&self) {
        self.running().thaw().expect("the server can go on");
        self.frozen.store(false, Ordering::SeqCst);
    }

    /// Whether it was neither killed nor frozen.
    #[cfg(feature = "redis-cluster")]
    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some() && !self.frozen.load(Ordering::SeqCst)
    }

    /// Runs a command on a connection that is opened once and kept, so that later changes of the
    /// password or of the number of clients do not lock it out.
    ///
    /// # Panics
    ///
    /// If the reply is an error. [`try_command`](Self::try_command) returns it.
    pub(crate) fn command(&self, args: &[&str]) -> String {
        self.try_command(args).unwrap_or_else(|error| panic!("{args:?}: {error}"))
    }

    /// Runs a command as [`command`](Self::command) does, and returns the server's error.
    pub(crate) fn try_command(&self, args: &[&str]) -> Reply {
        let mut control = self.control();
        match control.as_mut().map(|kept| kept.call(args)) {
            Some(Ok(reply)) => return reply,
            Some(Err(error)) if is_timeout(&error) => panic!("{args:?}: {error}"),
            // The server closed it, or there was none yet.
            Some(Err(_)) | None => (),
        }
        let fresh = control.insert(self.connection());
        fresh.call(args).unwrap_or_else(|error| panic!("{args:?}: {error}"))
    }

    /// A further connection, logged in, to hold or to block.
    pub(crate) fn connection(&self) -> Connection {
        Connection::open(self.port, self.password())
            .unwrap_or_else(|error| panic!("connecting to {}: {error}", self.url()))
    }

    /// One attempt; `false` if somebody else has the port.
    async fn launch(&mut self) -> bool {
        self.process = launch(self.dir.path(), self.port, &self.args, &self.environment).await;
        if self.process.is_some() {
            // Any reply will do: an error may be what the options ask for.
            _ = self.try_command(&["PING"]);
        }
        self.process.is_some()
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("the server was killed and not restarted")
    }

    fn control(&self) -> MutexGuard<'_, Option<Connection>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn password(&self) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == "--requirepass")?;
        self.args.get(at + 1).map(String::as_str)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
