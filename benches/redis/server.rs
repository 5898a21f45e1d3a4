//! A server of the benchmark's own.

use std::{
    env,
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use tempfile::TempDir;

const VARIABLE: &str = "TOLLGATE_REDIS_SERVER";
const PATIENCE: u32 = 500;

/// A server on a free port, with nothing kept on disk; killed when dropped.
pub(crate) struct Server {
    process: Child,
    port: u16,
    _dir: TempDir,
}

impl Server {
    /// Starts the program that `TOLLGATE_REDIS_SERVER` names, or `redis-server` from the path.
    pub(crate) fn start() -> Result<Self, String> {
        Self::with(&[])
    }

    /// The same, with further arguments.
    pub(crate) fn with(arguments: &[&str]) -> Result<Self, String> {
        let program = env::var_os(VARIABLE).unwrap_or_else(|| "redis-server".into());
        let dir = TempDir::with_prefix("tollgate-").map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let process = Command::new(&program)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--port", &port.to_string()])
            .args(arguments)
            .arg("--dir")
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        let mut server = Self { process, port, _dir: dir };
        for _ in 0..PATIENCE {
            if let Ok(Some(status)) = server.process.try_wait() {
                return Err(format!("{} ended: {status}", program.display()));
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            sleep(Duration::from_millis(10));
        }
        Err(format!("{} does not listen on port {port}", program.display()))
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.kill().is_ok() {
            _ = self.process.wait();
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
