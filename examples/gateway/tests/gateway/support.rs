//! A gateway and a Redis that end with the test, and a client.

#![cfg(test)]

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::port::free_port;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A process that is killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running gateway.
pub(crate) struct Gateway {
    process: Process,
    pub(crate) address: SocketAddr,
    /// Where its admin listener is, if it has one.
    pub(crate) admin: Option<SocketAddr>,
    /// What it printed at the start.
    pub(crate) banner: String,
    /// What it has logged.
    log: Arc<Mutex<String>>,
    logging: JoinHandle<()>,
}

impl Gateway {
    /// Starts it on a free port, and waits until it says that it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// The same, with this environment.
    pub(crate) fn start_with(args: &[&str], environment: &[(&str, &Path)]) -> Self {
        let mut command = gateway(args);
        command.envs(environment.iter().copied());
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(command.spawn().expect("the gateway can be run"));
        let mut banner = String::new();
        let mut stdout = BufReader::new(process.0.stdout.take().expect("a pipe"));
        while !banner.contains("Ctrl-C") {
            let read = stdout.read_line(&mut banner).expect("text");
            assert_ne!(read, 0, "the gateway ended at once, after:\n{banner}");
        }
        let first = banner.lines().next().unwrap_or_default();
        let address = first.rsplit_once("http://").expect("an address").1.parse();
        let admin = banner.lines().find_map(|line| line.strip_prefix("  admin    http://"));
        let admin = admin.map(|rest| rest.split('/').next().unwrap_or_default());
        let admin = admin.map(|address| address.parse().expect("an address"));
        let log = Arc::<Mutex<String>>::default();
        let lines = BufReader::new(process.0.stderr.take().expect("a pipe")).lines();
        let all = Arc::clone(&log);
        let logging = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut all = all.lock().expect("a lock");
                all.push_str(&line);
                all.push('\n');
            }
        });
        Self { address: address.expect("an address"), admin, process, banner, log, logging }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\n"))
    }

    /// Sends a request line and headers, each with its line end.
    pub(crate) fn send(&self, head: &str) -> Response {
        Response::read(self.begin(head))
    }

    /// Sends a request, and does not wait for its response.
    pub(crate) fn begin(&self, head: &str) -> TcpStream {
        begin(self.address, &format!("{head}host: gateway\r\n"), "")
    }

    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.process.0), Signal::TERM).expect("it runs");
    }

    /// Asks it to read its file again.
    pub(crate) fn hang_up(&self) {
        kill_process(Pid::from_child(&self.process.0), Signal::HUP).expect("it runs");
    }

    /// Whether this stands in its log.
    pub(crate) fn logged(&self, text: &str) -> bool {
        self.log.lock().expect("a lock").contains(text)
    }

    /// Bytes of memory that it uses now.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.0.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("a number") << 10
    }

    /// Waits for its end; returns its status and what it logged.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        self.logging.join().expect("text");
        let log = self.log.lock().expect("a lock").clone();
        (self.process.0.wait().expect("it can be waited for"), log)
    }
}

/// Sends a request line and headers, each with its line end, and a body, and does not wait for the
/// response.
pub(crate) fn begin(address: SocketAddr, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the gateway accepts");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let length = body.len();
    let request = format!("{head}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("the gateway reads");
    stream
}

/// Runs the gateway to its end, which is to come by itself.
pub(crate) fn run(args: &[&str]) -> Output {
    run_with(gateway(args))
}

pub(crate) fn run_with(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process(command.spawn().expect("the gateway can be run"));
    eventually(|| process.0.try_wait().is_ok_and(|status| status.is_some()));
    let status = process.0.wait().expect("it can be waited for");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    process.0.stdout.take().expect("a pipe").read_to_end(&mut stdout).expect("its output");
    process.0.stderr.take().expect("a pipe").read_to_end(&mut stderr).expect("its log");
    Output { status, stdout, stderr }
}

/// The program, without what the environment says.
pub(crate) fn gateway(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate-gateway"));
    // As if nobody had said where.
    let given = args.strip_prefix(&["--admin", "default"]);
    let (args, defaults) = (given.unwrap_or(args), given.is_some());
    command.args(args).env_remove("RUST_LOG").env_remove("TOLLGATE_ADMIN_TOKEN");
    command.env_remove("TOLLGATE_REDIS_URL");
    // Many run at a time here.
    let speaks = ["--admin", "--check", "--print-config"].iter().any(|arg| args.contains(arg));
    if !speaks && !defaults {
        command.args(["--admin", "off"]);
    }
    command.stdin(Stdio::null());
    command
}

/// A response, whole.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn read(mut stream: TcpStream) -> Self {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a response");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
    }

    /// The value of a header that is there once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|line| line.0.eq_ignore_ascii_case(name)).map(|line| line.1);
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is there twice");
        value
    }

    /// The number in a header.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let value = self.header(name).unwrap_or_else(|| panic!("no {name} in {self:?}"));
        value.parse().expect("a number")
    }
}

/// A Redis server with nothing on disk.
pub(crate) struct Redis {
    process: Process,
    port: u16,
    /// Where a node of a cluster keeps what it knows of the others.
    _folder: tempfile::TempDir,
}

impl Redis {
    /// Starts one on a free port; returns its URL as well.
    pub(crate) fn start() -> (Self, String) {
        let port = free_port();
        (Self::start_on(port), url(port))
    }

    /// Starts one, and waits until it answers.
    pub(crate) fn start_on(port: u16) -> Self {
        Self::start_with(port, &[])
    }

    pub(crate) fn start_with(port: u16, arguments: &[&str]) -> Self {
        let listen = port.to_string();
        let plain = ["--port", &listen, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
        Self::run(port, &[&plain, arguments].concat())
    }

    /// A sentinel, as this file has it.
    pub(crate) fn sentinel(port: u16, file: &Path) -> Self {
        Self::run(port, &[file.to_str().expect("a path"), "--sentinel"])
    }

    fn run(port: u16, arguments: &[&str]) -> Self {
        let program = env::var_os("TOLLGATE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let folder = tempfile::tempdir().expect("a folder");
        let server = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("`redis-server` is installed, or TOLLGATE_REDIS_SERVER names one");
        let mut server = Self { process: Process(server), port, _folder: folder };
        eventually(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        let runs = server.process.0.try_wait().is_ok_and(|status| status.is_none());
        assert!(runs, "the port was taken");
        server
    }

    /// What it answers to a command, as it stands on the wire.
    pub(crate) fn ask(&self, command: &[&str]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it accepts");
        let quit = "*1\r\n$4\r\nQUIT\r\n";
        let arguments = command.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let text = format!("*{}\r\n{}{quit}", command.len(), arguments.collect::<String>());
        stream.write_all(text.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    }

    pub(crate) fn kill(self) {
        drop(self);
    }
}

pub(crate) fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}/")
}

/// Waits until `done`.
pub(crate) fn eventually(mut done: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(20);
    for _ in 0..TIMEOUT.as_millis() / STEP.as_millis() {
        if done() {
            return;
        }
        thread::sleep(STEP);
    }
    panic!("it did not happen within {TIMEOUT:?}");
}
