//! Starts a server process and waits until it is ready.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use super::{
    binary::Binary,
    process::{self, Process},
};

const START_BOUND: Duration = Duration::from_secs(20);

/// Starts a server in the folder `dir`. Nothing, if somebody else has the port.
///
/// # Panics
///
/// If the server ends for another reason or is not ready in time; the message has its log.
pub(crate) async fn launch(
    dir: &Path,
    port: u16,
    args: &[String],
    environment: &[(&'static str, OsString)],
) -> Option<Process> {
    let log_path = dir.join("server.log");
    let read_log = || fs::read_to_string(&log_path).unwrap_or_default();
    let mut command = command(dir, &log_path, port, args).expect("a file for the log");
    command.envs(environment.iter().cloned());
    let mut process = Process::spawn(command).expect("the server can be run");
    let begun = Instant::now();
    loop {
        // Read after the check, so that the log of a process that ended is complete.
        let ended = process.has_ended();
        let log = read_log();
        if ended {
            let taken = log.contains("Address already in use") || log.contains("Failed listening");
            assert!(taken, "the server ended at once:\n{log}");
            return None;
        }
        // The log is this process's own, while a PING might be answered by another server that
        // took the port first.
        if log.contains("Ready to accept connections") {
            return Some(process);
        }
        assert!(begun.elapsed() < START_BOUND, "the server does not start:\n{log}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn command(dir: &Path, log: &Path, port: u16, args: &[String]) -> io::Result<Command> {
    let binary = Binary::find();
    let log = File::create(log)?;
    let mut command = process::command(&binary.path);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(dir)
        .args(binary.options())
        .args(args)
        .stderr(log.try_clone()?)
        .stdout(log);
    Ok(command)
}
