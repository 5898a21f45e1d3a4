//! The primary that sentinels name, and the next one when they name another.

mod answer;
mod known;
mod seeds;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo};
use tokio::time::timeout;

pub(super) use self::seeds::{Login, Seeds};
use self::{
    answer::{Place, Told, ask, is_primary, not_primary},
    known::{Known, Primary},
};
use super::{
    builder::RedisStoreBuilder,
    origin::{Opened, Server},
};
use crate::{
    store::{StoreError, StoreErrorKind},
    time::{MonotonicClock, micros},
};

/// How often sentinels are asked at most, while there are requests, in microseconds. Less a random
/// part, so that instances do not come in step.
const INTERVAL: u64 = 1_000_000;
/// A look at the sentinels must not take much longer than that, however long connecting may.
const LONGEST_SHARE: Duration = Duration::from_millis(250);
/// To a sentinel: one to be used by those who connect, one by those who look.
const CONNECTIONS: usize = 2;

pub(super) struct Sentinels {
    name: Box<str>,
    servers: Box<[Server]>,
    /// Who is asked first: who answered last, and was right.
    first: AtomicUsize,
    /// A connection to a data server, but for its address.
    info: ConnectionInfo,
    connections: usize,
    /// How long one sentinel may take.
    share: Duration,
    known: Mutex<Known>,
    clock: MonotonicClock,
    /// When sentinels are to be asked again, by the clock.
    due: AtomicU64,
    whose: Box<str>,
}

impl Sentinels {
    pub(super) fn new(seeds: &Seeds, of: &RedisStoreBuilder) -> Result<Self, StoreError> {
        let infos = seeds.infos()?;
        let login = of.sentinel.settings()?;
        let mut servers = Vec::new();
        let mut data = None;
        for info in infos {
            let info = of.tls.apply(info)?;
            data.get_or_insert_with(|| info.clone());
            servers.push(Server::new(info.set_redis_settings(login.clone()), CONNECTIONS)?);
        }
        let Some(info) = data else { return Err(nobody()) };
        let parts = u32::try_from(servers.len()).unwrap_or(u32::MAX).saturating_add(1);
        Ok(Self {
            name: seeds.name.clone(),
            servers: servers.into(),
            first: AtomicUsize::new(0),
            info,
            // One more for a look.
            connections: of.connections + 1,
            share: (of.connect_timeout / parts).min(LONGEST_SHARE),
            known: Mutex::new(Known::default()),
            clock: MonotonicClock::new(),
            due: AtomicU64::new(0),
            whose: format!(", the primary `{}` of the sentinels,", seeds.name).into(),
        })
    }

    /// Ends the connections to sentinels.
    pub(super) fn close(&self) {
        self.servers.iter().for_each(|server| server.pool.close());
        if let Some(primary) = self.known().primary() {
            primary.server.pool.close();
        }
    }

    /// Whose connection it is that is made, for errors.
    pub(super) fn whose(&self) -> &str {
        &self.whose
    }

    pub(super) fn hint(&self) -> &'static str {
        self.servers.first().map_or("", |server| server.way.hint())
    }

    /// Where the primary is, as far as is known.
    pub(super) fn place(&self) -> Option<Arc<str>> {
        self.known().primary()?.server.way.place.clone()
    }

    /// Whether it is time to look. Whoever is told so has to.
    pub(super) fn is_due(&self) -> bool {
        let (now, due) = (micros(self.clock.elapsed()), self.due.load(Ordering::Relaxed));
        let next = || now + fastrand::u64(INTERVAL * 3 / 4..INTERVAL);
        let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
        now >= due && self.due.compare_exchange(due, next(), set, read).is_ok()
    }

    /// Which of the primaries one after another is the present one.
    pub(super) fn generation(&self) -> u64 {
        self.known().generation()
    }

    /// A connection to the primary. One that cannot be reached or is none may be so in the eyes of one
    /// sentinel alone, so others are asked, and the next attempt begins with another.
    pub(super) async fn connect(&self) -> Result<Opened, StoreError> {
        let (mut failure, mut tried, mut behind) = (Failure::default(), Vec::new(), None);
        for at in self.in_turn() {
            match self.ask(at).await {
                Err(error) => failure.of_sentinel(error),
                Ok(told) if self.known().is_ahead_of(&told) => keep_newest(&mut behind, at, told),
                Ok(told) if tried.contains(&told.place) => {}
                Ok(told) => match self.enter(at, &told, false).await {
                    Ok(opened) => return Ok(opened),
                    Err(error) => {
                        failure.of_server(error);
                        tried.push(told.place);
                    }
                },
            }
        }
        // All of them may have forgotten what they knew.
        if let Some((at, told)) = behind
            && !tried.contains(&told.place)
        {
            match self.enter(at, &told, true).await {
                Ok(opened) => return Ok(opened),
                Err(error) => failure.of_server(error),
            }
        }
        Err(failure.0.map_or_else(nobody, |(_, error)| error))
    }

    async fn enter(&self, at: usize, told: &Told, force: bool) -> Result<Opened, StoreError> {
        // If this fails, or takes too long.
        self.first.store(at + 1, Ordering::Relaxed);
        let primary = self.primary(&told.place)?;
        let mut opened = primary.server.open().await?;
        match is_primary(&mut opened.connection).await {
            Ok(true) => {}
            Ok(false) => return Err(primary.server.named(not_primary())),
            Err(error) => return Err(primary.server.named(error)),
        }
        self.first.store(at, Ordering::Relaxed);
        opened.generation = self.known().adopt(primary, told.epoch, force);
        Ok(opened)
    }

    /// Asks all sentinels whether the primary is another by now. A newer answer counts, or else one
    /// that nobody contradicts.
    pub(super) async fn look(&self) {
        let Some((known, epoch)) = self.known().place() else { return };
        let (mut confirmed, mut other) = (None, None);
        for at in self.in_turn() {
            match self.ask(at).await {
                Err(_) => {}
                Ok(told) if told.place == known => confirmed = confirmed.max(Some(told.epoch)),
                Ok(told) if told.epoch > epoch => {
                    if self.turn_to(at, &told, false).await {
                        return;
                    }
                }
                Ok(told) => keep_newest(&mut other, at, told),
            }
        }
        match (confirmed, other) {
            (Some(epoch), _) => self.known().confirm(&known, epoch),
            (None, Some((at, told))) => {
                self.turn_to(at, &told, true).await;
            }
            (None, None) => {}
        }
    }

    /// Takes a server for the primary, unless it says itself that it is none. One that cannot be asked
    /// is taken for it: what must end is that the old one is used.
    async fn turn_to(&self, at: usize, told: &Told, force: bool) -> bool {
        let Ok(primary) = self.primary(&told.place) else { return false };
        let asked = async { is_primary(&mut *primary.server.connect().await?).await };
        if matches!(timeout(self.share, asked).await, Ok(Ok(false))) {
            return false;
        }
        self.first.store(at, Ordering::Relaxed);
        self.known().adopt(primary, told.epoch, force);
        true
    }

    async fn ask(&self, at: usize) -> Result<Told, StoreError> {
        let server = &self.servers[at];
        let asked = async {
            let mut connection = server.connect().await?;
            ask(&mut connection, &self.name, &server.way).await
        };
        let answer = timeout(self.share, asked).await.unwrap_or_else(|_elapsed| {
            let text = format!("no answer within {:?}{}", self.share, server.way.hint());
            Err(StoreError::new(StoreErrorKind::Timeout, text))
        });
        answer.map_err(|error| server.named(error))
    }

    fn primary(&self, place: &Place) -> Result<Arc<Primary>, StoreError> {
        if let Some(primary) = self.known().primary_at(place) {
            return Ok(primary);
        }
        let (host, port) = (place.host.to_string(), place.port);
        let address = match self.info.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        let server = Server::new(self.info.clone().set_addr(address), self.connections)?;
        Ok(Arc::new(Primary { place: place.clone(), server }))
    }

    fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let count = self.servers.len();
        let first = self.first.load(Ordering::Relaxed) % count;
        (first..count).chain(0..first)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep_newest(newest: &mut Option<(usize, Told)>, at: usize, told: Told) {
    if newest.as_ref().is_none_or(|(_, newest)| told.epoch > newest.epoch) {
        *newest = Some((at, told));
    }
}

/// Why there is no connection: what a data server said tells most, then what a sentinel did.
#[derive(Default)]
struct Failure(Option<(u8, StoreError)>);

impl Failure {
    fn of_server(&mut self, error: StoreError) {
        self.note(2, error);
    }

    fn of_sentinel(&mut self, error: StoreError) {
        let text = format!("no sentinel tells the primary: {}", error.words());
        match error.kind() {
            StoreErrorKind::Misconfigured => {
                self.note(
                    1,
                    StoreError::new(StoreErrorKind::Misconfigured, text).with_source(error),
                );
            }
            _ => {
                self.note(0, StoreError::new(StoreErrorKind::Unreachable, text).with_source(error));
            }
        }
    }

    fn note(&mut self, weight: u8, error: StoreError) {
        if self.0.as_ref().is_none_or(|(noted, _)| weight > *noted) {
            self.0 = Some((weight, error));
        }
    }
}

fn nobody() -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, "no sentinel is named")
}
