//! One test at a time: they measure the whole process.

use std::{
    panic,
    sync::{
        Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::runtime::Runtime;

static TURN: Mutex<()> = Mutex::new(());
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// A test's turn, in which nothing may panic, on no thread.
pub(crate) struct Turn {
    _guard: MutexGuard<'static, ()>,
    before: usize,
}

impl Turn {
    pub(crate) fn take() -> Self {
        static HOOK: Once = Once::new();
        let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                PANICS.fetch_add(1, Ordering::SeqCst);
                usual(info);
            }));
        });
        Self { _guard: guard, before: PANICS.load(Ordering::SeqCst) }
    }

    /// A runtime for it, with more threads than a small machine has, so that they interrupt each other.
    pub(crate) fn runtime(&self) -> Runtime {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(4).enable_all().build().expect("a runtime")
    }

    pub(crate) fn end(self) {
        assert_eq!(PANICS.load(Ordering::SeqCst) - self.before, 0, "panics");
    }
}
