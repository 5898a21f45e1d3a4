//! Callers that ask, one thing after another, for as long as planned.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::{task::coop::consume_budget, time::sleep};

use crate::{
    contenders::Contender,
    cpu::Used,
    series::{Round, Series},
};

/// Checks between two looks at the clock, where one check takes little longer than a look.
const STRIDE: usize = 64;
/// Callers that touch all keys before the first round.
const FILLING: usize = 256;

#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) round: Duration,
}

/// How checks are made.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// By tasks of the runtime, with a clock at each check.
    Timed,
    /// By tasks of the runtime, counted only.
    Counted,
    /// By one thread without a runtime, counted only; nothing may wait.
    Direct,
}

/// What is asked of a contender.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) pace: Pace,
    pub(crate) keys: usize,
    /// What every answer has to be.
    pub(crate) admits: bool,
    /// Whose processor time counts beside this process's.
    pub(crate) server: u32,
}

type Run = Box<dyn Fn(usize, Plan) -> Pin<Box<dyn Future<Output = Round>>>>;

/// A contender with its task, ready to take its turns.
pub(crate) struct Entry {
    name: String,
    beside: &'static str,
    run: Run,
    settle: Duration,
}

impl Entry {
    /// Touches all keys once, so that no round has to.
    pub(crate) async fn new(
        name: &str,
        beside: &'static str,
        task: Task,
        contender: impl Contender,
    ) -> Self {
        fill(&contender, task.keys).await;
        let run: Run = Box::new(move |callers, plan| {
            let contender = contender.clone();
            match task.pace {
                Pace::Direct => Box::pin(async move { direct(contender, task, plan) }),
                _ => Box::pin(measure(contender, callers, task, plan)),
            }
        });
        Self { name: name.to_owned(), beside, run, settle: Duration::ZERO }
    }

    /// Waits after each round for so long, until what it left to be done is done.
    pub(crate) fn settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
    }

    /// Something that measures itself.
    pub(crate) fn other(
        name: &str,
        beside: &'static str,
        run: impl Fn() -> Round + 'static,
    ) -> Self {
        let run: Run = Box::new(move |_, _| Box::pin(std::future::ready(run())));
        Self { name: name.to_owned(), beside, run, settle: Duration::ZERO }
    }
}

/// Lets all take turns in short rounds, so that whatever else the machine does meets all of them.
pub(crate) async fn take_turns(entries: &[Entry], callers: usize, plan: Plan) -> Vec<Series> {
    let series = |entry: &Entry| Series {
        name: entry.name.clone(),
        beside: entry.beside,
        rounds: Vec::new(),
    };
    let mut all: Vec<_> = entries.iter().map(series).collect();
    for turn in 0..plan.rounds {
        // Nobody always comes first, or after the same other.
        let mut order: Vec<_> = (0..entries.len()).collect();
        order.rotate_left(turn % entries.len());
        if turn % 2 == 1 {
            order.reverse();
        }
        for who in order {
            all[who].rounds.push((entries[who].run)(callers, plan).await);
            sleep(entries[who].settle).await;
        }
    }
    all
}

async fn fill(contender: &impl Contender, keys: usize) {
    let callers = FILLING.min(keys);
    let fill = |at: usize| {
        let mut caller = contender.caller(at);
        tokio::spawn(async move {
            for key in (at..keys).step_by(callers) {
                caller.check(key).await;
                consume_budget().await;
            }
        })
    };
    let callers: Vec<_> = (0..callers).map(fill).collect();
    for caller in callers {
        caller.await.expect("no caller panics");
    }
}

async fn measure(contender: impl Contender, callers: usize, task: Task, plan: Plan) -> Round {
    let used = Used::now(task.server);
    let start = Instant::now() + plan.warm_up;
    let end = start + plan.round;
    let callers: Vec<_> =
        (0..callers).map(|at| tokio::spawn(ask(contender.caller(at), task, start, end))).collect();
    let (mut taken, mut count, mut early) = (Vec::new(), 0, 0);
    for caller in callers {
        let one = caller.await.expect("no caller panics");
        taken.extend(one.taken);
        count += one.count;
        early += one.early;
    }
    let cpu = used.per(count + early, task.server);
    Round::new(count, taken, plan.round, cpu)
}

/// What one caller has seen.
#[derive(Default)]
struct Seen {
    taken: Vec<Duration>,
    count: usize,
    /// Checks before the start, which do not count.
    early: usize,
}

async fn ask(mut contender: impl Contender, task: Task, start: Instant, end: Instant) -> Seen {
    let mut random = fastrand::Rng::new();
    let mut seen = Seen::default();
    let timed = task.pace == Pace::Timed;
    let checks = if timed { 1 } else { STRIDE };
    loop {
        let before = Instant::now();
        if before >= end {
            return seen;
        }
        let counts = before >= start;
        for _ in 0..checks {
            let admitted = contender.check(random.usize(0..task.keys)).await;
            if timed && counts {
                seen.taken.push(before.elapsed());
            }
            assert_eq!(admitted, task.admits, "the quota decides all alike");
            // What never waits would keep the others from their turn, as no server's requests do.
            consume_budget().await;
        }
        *if counts { &mut seen.count } else { &mut seen.early } += checks;
    }
}

fn direct(mut contender: impl Contender, task: Task, plan: Plan) -> Round {
    let mut random = fastrand::Rng::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut run = |over: Duration| {
        let (mut count, begin, used) = (0, Instant::now(), Used::now(task.server));
        while begin.elapsed() < over {
            for _ in 0..STRIDE {
                let check = pin!(contender.check(random.usize(0..task.keys)));
                assert_eq!(check.poll(&mut cx), Poll::Ready(task.admits), "nothing waits here");
            }
            count += STRIDE;
        }
        let taken = begin.elapsed();
        Round::new(count, Vec::new(), taken, used.per(count, task.server))
    };
    run(plan.warm_up);
    run(plan.round)
}
