//! Child processes that do not outlive the test process.

use std::{
    ffi::OsStr,
    io,
    process::{Child, Command, Stdio},
    sync::{OnceLock, mpsc},
    thread,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A child process. It is killed when dropped, and where `setpriv` exists also when the test
/// process itself is killed.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts what [`command`] prepared.
    pub(crate) fn spawn(command: Command) -> io::Result<Self> {
        let (answer, child) = mpsc::channel();
        keeper().send((command, answer)).map_err(io::Error::other)?;
        child.recv().map_err(io::Error::other)?.map(Self)
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Stops it (SIGSTOP), and returns once it stands still.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::STOP)?;
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED)?;
        Ok(())
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn thaw(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.0), Signal::CONT)?)
    }
}

impl Drop for Process {
    /// Kills (SIGKILL, which also ends a frozen process) and waits.
    fn drop(&mut self) {
        if self.0.kill().is_ok() {
            _ = self.0.wait();
        }
    }
}

/// A command for [`Process::spawn`], with no standard input.
pub(crate) fn command(program: &OsStr) -> Command {
    let mut command = if can_die_with_parent() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.stdin(Stdio::null());
    command
}

fn can_die_with_parent() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let probe = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "true"])
            .stderr(Stdio::null())
            .status();
        probe.is_ok_and(|status| status.success())
    })
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// The thread that starts all children and never ends.
///
/// "The parent's death" is, to the kernel, the death of the thread that started the child, and a
/// test's thread ends before a server that several tests share.
fn keeper() -> &'static mpsc::Sender<Order> {
    static KEEPER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    KEEPER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                _ = answer.send(command.spawn());
            }
        });
        sender
    })
}
