//! Reading the configuration again.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, task::JoinHandle};
use tollgate::PolicyHandle;

use crate::{
    app::App,
    config::{FileError, Fixed, Source},
    routes::{Around, Routes},
    serve,
};

/// How often the file is looked at. A change counts once it is there twice, so that nothing is read that is
/// being written.
const EVERY: Duration = Duration::from_millis(500);

/// What a new configuration replaces.
pub(crate) struct Reload {
    pub(crate) source: Source,
    pub(crate) app: App,
    /// Those that the admin listener asks about.
    pub(crate) policies: PolicyHandle,
    pub(crate) around: Around,
}

impl Reload {
    /// Reads the file again when it changes, and when the process is asked to, until the task is aborted.
    ///
    /// All of it is done by a thread of its own: disks block, and ten thousand routes take a while, which no
    /// request is to wait for.
    pub(crate) fn start(self) -> io::Result<JoinHandle<()>> {
        let mut signals = serve::asked_to_reload()?;
        let (ask, asked) = mpsc::channel();
        let runtime = Handle::current();
        thread::Builder::new().name("reload".to_owned()).spawn(move || {
            let _within = runtime.enter();
            self.run(&asked);
        })?;
        Ok(tokio::spawn(async move {
            loop {
                signals.recv().await;
                if ask.send(()).is_err() {
                    return;
                }
            }
        }))
    }

    fn run(&self, asked: &mpsc::Receiver<()>) {
        let first = self.app.load();
        let (mut seen, fixed) = (first.config().version(), first.config().fixed());
        drop(first);
        let mut coming = seen.clone();
        loop {
            match asked.recv_timeout(EVERY) {
                Ok(()) => {
                    // Once, for all who have asked by now.
                    while asked.try_recv().is_ok() {}
                    seen = self.source.version();
                    self.reload(&fixed);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let now = self.source.version();
                    if now != seen && now == coming {
                        seen.clone_from(&now);
                        self.reload(&fixed);
                    }
                    coming = now;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// `fixed` is what the process has started with.
    fn reload(&self, fixed: &Fixed) {
        if !self.source.is_file() {
            return tracing::info!("asked to read a file again, but there is none");
        }
        match self.replace(fixed) {
            Ok((changes, restart)) if restart.is_empty() => {
                tracing::info!(changes, "the configuration was read again");
            }
            Ok((changes, restart)) => {
                let restart = restart.join(", ");
                tracing::warn!(
                    changes,
                    restart,
                    "the configuration was read again; some of it \
                     applies after a restart only"
                );
            }
            Err(error) => {
                tracing::error!(%error, "the configuration cannot be used; it stays as it was");
            }
        }
    }

    fn replace(&self, fixed: &Fixed) -> Result<(String, Vec<&'static str>), FileError> {
        let old = self.app.load();
        let new = Routes::build(self.source.read()?, &self.around, Some(&old))?;
        let (changes, restart) = (new.changes(&old), new.config().fixed().changes(fixed));
        self.policies.replace(new.policies());
        self.app.replace(new);
        Ok((changes, restart))
    }
}
