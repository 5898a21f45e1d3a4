//! Where the connections are driven.

use std::{io, sync::Arc, thread};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

/// The caller's runtime, or a thread with one of its own, which ends with the last clone of this.
#[derive(Clone, Default)]
pub(super) struct Worker(Option<Arc<Thread>>);

struct Thread {
    handle: Handle,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Worker {
    pub(super) fn thread() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let handle = runtime.handle().clone();
        thread::Builder::new().name("tollgate-redis".to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self(Some(Arc::new(Thread { handle, _end: end }))))
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle().spawn(task));
    }

    /// The runtime that they are driven on.
    pub(super) fn handle(&self) -> Handle {
        match &self.0 {
            Some(thread) => thread.handle.clone(),
            None => Handle::current(),
        }
    }

    /// What `task` comes to. None, if the thread ended before.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        match &self.0 {
            Some(thread) => thread.handle.spawn(task).await.ok(),
            None => Some(task.await),
        }
    }
}
