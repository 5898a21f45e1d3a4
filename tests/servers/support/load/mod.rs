//! Many callers that keep calling while the test changes the world under them.

mod report;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use self::report::Phase;
pub(crate) use self::report::Report;

/// A call without an outcome for so long counts as hung, and fails the test.
const HANG_BOUND: Duration = Duration::from_secs(10);
/// Callers that nobody stops end after that, and fail the test.
const LOAD_BOUND: Duration = Duration::from_secs(120);

/// How to call: how many callers, how often, how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    callers: usize,
    count: Option<u64>,
    pace: Duration,
    hang_bound: Duration,
}

impl Load {
    /// `callers` callers at once. Each makes its next call when the last one has its outcome.
    pub(crate) fn new(callers: usize) -> Self {
        Self { callers, count: None, pace: Duration::ZERO, hang_bound: HANG_BOUND }
    }

    /// Ends after `count` calls, all callers together.
    pub(crate) fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Lets each caller pause between its calls.
    pub(crate) fn pace(mut self, pause: Duration) -> Self {
        self.pace = pause;
        self
    }

    /// Changes how long a call may take, ten seconds otherwise, before the test fails.
    pub(crate) fn hang_bound(mut self, bound: Duration) -> Self {
        self.hang_bound = bound;
        self
    }

    /// Starts to call `call`, which is given the caller's number and returns a label for the
    /// outcome, such as `"allowed"`. The first phase is called `start`.
    pub(crate) fn start<C, F>(self, call: C) -> Running
    where
        C: Fn(usize) -> F + Clone + Send + 'static,
        F: Future<Output = &'static str> + Send + 'static,
    {
        let shared = Arc::new(Shared {
            load: self,
            begun: Instant::now(),
            state: Mutex::new(State { phases: vec![Phase::new("start")], ..State::default() }),
        });
        let mut callers = JoinSet::new();
        for number in 0..self.callers {
            callers.spawn(Arc::clone(&shared).keep_calling(number, call.clone()));
        }
        Running { shared, callers }
    }
}

/// Callers at work. They are gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    shared: Arc<Shared>,
    callers: JoinSet<()>,
}

impl Running {
    /// Books calls that begin from now on under `name`. A name may come again.
    pub(crate) fn phase(&self, name: &'static str) {
        self.shared.state().enter(name);
    }

    /// Waits until two thirds of the calls of this phase had this outcome: on a machine that is busy
    /// with something else, some do not at first.
    ///
    /// # Panics
    ///
    /// If that takes longer than ten seconds.
    pub(crate) async fn until_most(&self, label: &str) {
        let begun = Instant::now();
        while !self.shared.state().most_are(label) {
            assert!(begun.elapsed() < HANG_BOUND, "most calls do not become `{label}`");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Tells the callers to stop, and waits for their last outcomes.
    ///
    /// # Panics
    ///
    /// If a call hung, or panicked.
    pub(crate) async fn stop(self) -> Report {
        self.shared.state().stopped = true;
        self.finish().await
    }

    /// Waits until [`Load::count`] calls were made.
    ///
    /// # Panics
    ///
    /// If a call hung or panicked, or the calls took longer than two minutes.
    pub(crate) async fn finish(mut self) -> Report {
        while let Some(ended) = self.callers.join_next().await {
            if let Err(error) = ended {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        Report::new(std::mem::take(&mut self.shared.state().phases))
    }
}

#[derive(Debug)]
struct Shared {
    load: Load,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    made: u64,
    stopped: bool,
    current: usize,
    phases: Vec<Phase>,
}

impl State {
    fn enter(&mut self, name: &'static str) {
        let known = self.phases.iter().position(|phase| phase.name() == name);
        self.current = known.unwrap_or(self.phases.len());
        if known.is_none() {
            self.phases.push(Phase::new(name));
        }
    }

    /// The phase of the next call, if there is to be one.
    fn next(&mut self, count: Option<u64>) -> Option<usize> {
        if self.stopped || count.is_some_and(|count| self.made >= count) {
            return None;
        }
        self.made += 1;
        Some(self.current)
    }

    fn most_are(&self, label: &str) -> bool {
        let phase = &self.phases[self.current];
        phase.count(label) * 3 > phase.total() * 2
    }

    fn book(&mut self, phase: usize, outcome: Option<&'static str>, latency: Duration) {
        let phase = &mut self.phases[phase];
        match outcome {
            Some(label) => phase.add(label, latency),
            None => {
                self.stopped = true;
                panic!("a call hung in phase `{}`", phase.name());
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep_calling<C, F>(self: Arc<Self>, number: usize, call: C)
    where
        C: Fn(usize) -> F,
        F: Future<Output = &'static str>,
    {
        loop {
            let Some(phase) = self.state().next(self.load.count) else {
                return;
            };
            assert!(self.begun.elapsed() < LOAD_BOUND, "nobody stopped the callers");
            let begun = Instant::now();
            let outcome = tokio::time::timeout(self.load.hang_bound, call(number)).await;
            self.state().book(phase, outcome.ok(), begun.elapsed());
            if self.load.pace.is_zero() {
                // A call that never waits must not keep the others from theirs.
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(self.load.pace).await;
            }
        }
    }
}
