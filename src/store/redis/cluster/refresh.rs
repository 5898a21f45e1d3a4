//! Finding out which node serves what: at the start, when a node sends requests elsewhere or fails, and
//! from time to time.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deadpool_redis::{
    PoolError,
    redis::{self, AsyncConnectionConfig, Client, ConnectionInfo, Value},
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    Cluster,
    address::Address,
    map::Member,
    told::{self, Range},
};
use crate::{
    store::{
        StoreError, StoreErrorKind,
        redis::{error, slot::Link, url::Way},
    },
    time::{MonotonicClock, micros},
};

/// A map of a store in use is no older, but for a random part of it.
const OLDEST: Duration = Duration::from_secs(10);
/// The next node is asked as well when one has not answered for so long.
const HEDGE: Duration = Duration::from_millis(100);
/// No more nodes without a connection than so many are asked.
const STRANGERS: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// By so much may an attempt be late.
const OVERDUE: Duration = Duration::from_millis(50);
/// Trouble is over when nobody asked for a map for so long.
const QUIET: Duration = Duration::from_secs(2);

pub(super) struct Refresh {
    state: Mutex<State>,
    clock: MonotonicClock,
    /// When the map is too old, in microseconds of the clock.
    due: AtomicU64,
}

#[derive(Default)]
struct State {
    running: bool,
    /// Somebody wants a map that is younger than the one that is being asked for.
    again: bool,
    /// Attempts in a row, successful or not, since the last quiet time.
    attempts: u32,
    /// When the last attempt ended, by the clock.
    ended: Duration,
    /// Why there was no map at the last attempt.
    failure: Option<StoreError>,
    /// When the next attempt should begin, or the present one end.
    expected: Duration,
}

impl Refresh {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            clock: MonotonicClock::new(),
            due: AtomicU64::new(u64::MAX),
        }
    }

    pub(super) fn is_due(&self) -> bool {
        micros(self.clock.elapsed()) >= self.due.load(Ordering::Relaxed)
    }

    /// Why there was no map at the last attempt. None, if nobody makes the next when it is time to: on a
    /// runtime that runs only while somebody waits, somebody has to.
    pub(super) fn failure(&self) -> Option<StoreError> {
        let now = self.clock.elapsed();
        let state = self.lock();
        state.failure.clone().filter(|_| now < state.expected + OVERDUE)
    }

    /// An attempt is to begin after this time, or to end within it.
    fn expect_attempt(&self, within: Duration) {
        let now = self.clock.elapsed();
        self.lock().expected = now + within;
    }

    /// Takes the duty to ask for a map; false if somebody has it.
    fn begin(&self) -> bool {
        let mut state = self.lock();
        state.again = state.running;
        !std::mem::replace(&mut state.running, true)
    }

    /// How long to wait before the next attempt: nothing after a quiet time, then longer each time, less a
    /// random part.
    fn pause(&self) -> Duration {
        let now = self.clock.elapsed();
        let mut state = self.lock();
        state.again = false;
        if now.saturating_sub(state.ended) > QUIET && state.failure.is_none() {
            state.attempts = 0;
        }
        state.attempts += 1;
        match state.attempts {
            1 => Duration::ZERO,
            attempts => {
                let longest = FIRST_PAUSE.saturating_mul(1 << (attempts - 2).min(10));
                longest.min(LONGEST_PAUSE).mul_f64(0.5 + 0.5 * fastrand::f64())
            }
        }
    }

    /// An attempt has ended. Whether the duty has.
    fn end(&self, outcome: Result<(), StoreError>) -> bool {
        let now = self.clock.elapsed();
        let mut state = self.lock();
        state.ended = now;
        state.failure = outcome.err();
        self.due
            .store(micros(now + OLDEST.mul_f64(0.75 + 0.25 * fastrand::f64())), Ordering::Relaxed);
        let over = !state.again && state.failure.is_none();
        state.running = !over;
        over
    }

    /// A map was asked for at this time, by the clock.
    fn renew(&self, now: Duration) {
        let due = now + OLDEST.mul_f64(0.75 + 0.25 * fastrand::f64());
        self.due.store(micros(due), Ordering::Relaxed);
    }

    fn abandon(&self) {
        self.lock().running = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// The map may be wrong: it is asked for in the background, by one task at a time.
    pub(super) fn refresh(self: &Arc<Self>) {
        if self.refresh.begin() {
            self.topology.worker.spawn(Duty::new(self).fulfil());
        }
    }

    /// The first map. Where another task asks for it, what that has found counts.
    pub(super) async fn first_map(self: &Arc<Self>) -> Result<(), StoreError> {
        let cluster = Arc::clone(self);
        let asked = self.topology.worker.run(async move { cluster.attempt().await }).await;
        asked.unwrap_or_else(|| {
            Err(StoreError::new(
                StoreErrorKind::Unreachable,
                "the thread of the connections has ended",
            ))
        })
    }

    async fn attempt(self: &Arc<Self>) -> Result<(), StoreError> {
        let ranges = self.ask_some().await?;
        self.topology.replace(&ranges)?;
        self.refresh.renew(self.refresh.clock.elapsed());
        self.topology.changed.notify_waiters();
        Ok(())
    }

    /// What the first of some nodes answers. One that stands still holds up nobody for long.
    async fn ask_some(self: &Arc<Self>) -> Result<Vec<Range>, StoreError> {
        let mut asked = JoinSet::new();
        let mut failure = None;
        for candidate in self.candidates() {
            asked.spawn(candidate.ask(self.connect_timeout));
            while let Ok(Some(Ok(answer))) = timeout(HEDGE, asked.join_next()).await {
                match answer {
                    Ok(ranges) => return Ok(ranges),
                    Err(error) => failure = worse(failure, error),
                }
            }
        }
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(ranges)) => return Ok(ranges),
                Ok(Err(error)) => failure = worse(failure, error),
                Err(_ended) => {}
            }
        }
        Err(failure.unwrap_or_else(|| {
            StoreError::new(StoreErrorKind::Unreachable, "no node of the Redis Cluster is known")
        }))
    }

    /// Whom to ask: known nodes, those with a connection first, and then those that were given.
    fn candidates(&self) -> Vec<Candidate> {
        let mut members = self.topology.members();
        fastrand::shuffle(&mut members);
        let (ready, rest): (Vec<Candidate>, Vec<Candidate>) = members
            .iter()
            .map(|member| Candidate::member(member, &self.seeds[0].1))
            .partition(|candidate| candidate.link.is_some());
        let known = |address: &Address| members.iter().any(|member| member.address == *address);
        let mut seeds: Vec<_> = self.seeds.iter().filter(|(address, _)| !known(address)).collect();
        fastrand::shuffle(&mut seeds);
        let seeds = seeds.into_iter().map(|(address, info)| Candidate {
            address: address.clone(),
            info: info.clone(),
            link: None,
        });
        ready.into_iter().chain(rest.into_iter().take(STRANGERS)).chain(seeds).collect()
    }
}

/// A fault of the settings says more than that a node is gone.
fn worse(one: Option<StoreError>, other: StoreError) -> Option<StoreError> {
    match one {
        Some(one) if one.kind() == StoreErrorKind::Misconfigured => Some(one),
        Some(one) if other.kind() != StoreErrorKind::Misconfigured => Some(one),
        _ => Some(other),
    }
}

/// A node that may be asked.
struct Candidate {
    address: Address,
    info: ConnectionInfo,
    /// A connection that it has.
    link: Option<Link>,
}

impl Candidate {
    fn member(member: &Arc<Member>, like: &ConnectionInfo) -> Self {
        let address = member.address.clone();
        Self { info: address.like(like), address, link: member.node.slots.ready() }
    }

    async fn ask(self, within: Duration) -> Result<Vec<Range>, StoreError> {
        let way = Way::to(&self.info);
        let answer = timeout(within, self.answer(&way)).await.unwrap_or_else(|_elapsed| {
            let hint = way.hint();
            Err(StoreError::new(
                StoreErrorKind::Timeout,
                format!("no answer from Redis within {within:?}{hint}"),
            ))
        });
        answer.map_err(|error| error.about(way.place.as_ref()))
    }

    async fn answer(self, way: &Way) -> Result<Vec<Range>, StoreError> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        if let Some(mut link) = self.link
            && let Ok(value) = link.send(&command).await
        {
            return told::ranges(&value, &self.address);
        }
        // A connection of its own: those that are there may lead nowhere.
        let client = Client::open(self.info).map_err(error::classify)?;
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection =
            connection.map_err(|cause| error::connecting(PoolError::Backend(cause), way))?;
        let value = connection.send_packed_command(&command).await.and_then(Value::extract_error);
        match value {
            Ok(value) => told::ranges(&value, &self.address),
            Err(cause) => Err(told::refused(&mut connection, cause, way).await),
        }
    }
}

/// The duty to ask for a map. If it ends unfulfilled, with its runtime, the next request takes it.
struct Duty {
    /// Weak, so that attempts end when nobody is left to ask for.
    cluster: Weak<Cluster>,
    ended: bool,
}

impl Duty {
    fn new(cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Arc::downgrade(cluster), ended: false }
    }

    async fn fulfil(mut self) {
        while let Some(pause) = self.cluster.upgrade().map(|cluster| cluster.refresh.pause()) {
            if let Some(cluster) = self.cluster.upgrade() {
                cluster.refresh.expect_attempt(pause);
            }
            sleep(pause).await;
            let Some(cluster) = self.cluster.upgrade() else { break };
            cluster.refresh.expect_attempt(cluster.connect_timeout);
            if cluster.topology.is_closed() {
                break;
            }
            let outcome = cluster.attempt().await;
            let over = cluster.refresh.end(outcome);
            cluster.topology.changed.notify_waiters();
            if over {
                self.ended = true;
                break;
            }
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if !self.ended
            && let Some(cluster) = self.cluster.upgrade()
        {
            cluster.refresh.abandon();
        }
    }
}
