//! The keys that were fetched last, and when they are fetched again.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};
use tollgate::auth::{JwtAlgorithm, JwtKey, JwtKeys, KeyLookup, KeySource as _, KeySourceError};

use super::{fetch::Source, settings::Settings};

/// The longest pause before a fetch that has failed is tried again.
const MOST_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct Cache {
    settings: Settings,
    state: Mutex<State>,
    /// That a fetch has to begin.
    wanted: Notify,
    /// That a fetch has ended.
    ended: watch::Sender<()>,
}

struct State {
    /// With the time when they came.
    keys: Option<(JwtKeys, Instant)>,
    /// Why the last fetch has failed, if it has.
    fault: Option<Arc<str>>,
    /// Whether a fetch is under way, or about to be.
    fetching: bool,
    /// When the last fetch began that the name of a key has caused.
    asked: Option<Instant>,
}

/// Whether fetches fail, and since when: that is logged when it begins and when it is over.
#[derive(Debug, PartialEq)]
enum Turn {
    Well,
    Fails,
    FailsStill,
    WellAgain,
}

impl State {
    const fn new() -> Self {
        Self { keys: None, fault: None, fetching: true, asked: None }
    }

    /// Takes in what a fetch has come to.
    fn put(&mut self, fetched: Result<JwtKeys, String>, now: Instant) -> Turn {
        self.fetching = false;
        match fetched {
            Ok(keys) => {
                self.keys = Some((keys, now));
                if self.fault.take().is_some() { Turn::WellAgain } else { Turn::Well }
            }
            Err(cause) => {
                let before = self.fault.replace(cause.into());
                if before.is_some() { Turn::FailsStill } else { Turn::Fails }
            }
        }
    }
}

/// The answer to a request.
pub(super) enum Found {
    Now(Result<Option<JwtKey>, KeySourceError>),
    /// Once the fetch has ended that is under way.
    Then(watch::Receiver<()>),
}

impl Cache {
    pub(super) fn new(settings: Settings) -> Self {
        let state = Mutex::new(State::new());
        let (wanted, ended) = (Notify::new(), watch::Sender::new(()));
        Self { settings, state, wanted, ended }
    }

    /// Looks for a key, and has the keys fetched if it may be among new ones.
    pub(super) fn find(&self, algorithm: JwtAlgorithm, kid: Option<&str>) -> Found {
        let mut state = self.state();
        let now = now();
        let keys = self.usable(&state, now).map(|keys| known(keys, algorithm, kid));
        match keys {
            // Without a name, there is nothing that new keys could tell.
            Some(key) if key.is_some() || kid.is_none() => return Found::Now(Ok(key)),
            _ if state.fetching => {}
            // It is tried again before long, however many ask.
            _ if state.fault.is_some() => return Found::Now(Err(self.error(&state))),
            Some(_) => {
                let soon = |asked: Instant| now.duration_since(asked) < self.settings.pause;
                if state.asked.is_some_and(soon) {
                    return Found::Now(Ok(None));
                }
                state.asked = Some(now);
                self.begin(&mut state);
            }
            None => self.begin(&mut state),
        }
        Found::Then(self.ended.subscribe())
    }

    /// Looks for a key among those that are there.
    pub(super) fn settled(
        &self,
        algorithm: JwtAlgorithm,
        kid: Option<&str>,
    ) -> Result<Option<JwtKey>, KeySourceError> {
        let state = self.state();
        match self.usable(&state, now()).map(|keys| known(keys, algorithm, kid)) {
            Some(key) if key.is_some() || kid.is_none() || state.fault.is_none() => Ok(key),
            _ => Err(self.error(&state)),
        }
    }

    /// Waits until the fetch has ended that is under way, and says whether there are keys.
    #[cfg(test)]
    pub(super) async fn ready(&self) -> Result<(), KeySourceError> {
        let fetching = {
            let state = self.state();
            state.fetching.then(|| self.ended.subscribe())
        };
        if let Some(mut ended) = fetching {
            let _ = ended.changed().await;
        }
        let state = self.state();
        self.usable(&state, now()).map(drop).ok_or_else(|| self.error(&state))
    }

    /// Fetches the keys as often as need be. It is one task, so that there is one fetch at a time.
    pub(super) async fn keep(self: Arc<Self>, source: Source) {
        let limit = self.settings.timeout;
        let mut pause = Duration::ZERO;
        loop {
            let late = |_| Err(format!("there is no answer within {limit:?}"));
            let fetched = timeout(limit, source.keys()).await.unwrap_or_else(late);
            pause = match &fetched {
                Ok(_) => Duration::ZERO,
                Err(_) => (pause * 2).clamp(Duration::from_secs(1), MOST_PAUSE),
            };
            let next = if fetched.is_ok() { self.settings.refresh } else { pause };
            self.put(fetched);
            tokio::select! {
                () = sleep(next.min(self.settings.refresh)) => self.state().fetching = true,
                () = self.asked() => {}
            }
        }
    }

    /// Ends when somebody has asked for a fetch. Such a word may be left from one that was begun anyway.
    async fn asked(&self) {
        while !self.state().fetching {
            self.wanted.notified().await;
        }
    }

    fn begin(&self, state: &mut State) {
        state.fetching = true;
        self.wanted.notify_one();
    }

    fn put(&self, fetched: Result<JwtKeys, String>) {
        let cause = fetched.as_ref().err().cloned();
        let turn = self.state().put(fetched, now());
        self.ended.send_replace(());
        let location = &self.settings.location;
        match turn {
            Turn::Well => {}
            Turn::Fails => tracing::warn!(%location, cause, "the key set cannot be fetched"),
            Turn::FailsStill => tracing::debug!(%location, cause, "the key set cannot be fetched"),
            Turn::WellAgain => tracing::info!(%location, "the key set can be fetched again"),
        }
    }

    /// The keys, unless they are too old.
    fn usable<'a>(&self, state: &'a State, now: Instant) -> Option<&'a JwtKeys> {
        let (keys, since) = state.keys.as_ref()?;
        (now.duration_since(*since) < self.settings.stale).then_some(keys)
    }

    fn error(&self, state: &State) -> KeySourceError {
        let cause = state.fault.as_deref().unwrap_or("its keys are too old");
        KeySourceError::new(format!("the key set at {}: {cause}", self.settings.location))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn known(keys: &JwtKeys, algorithm: JwtAlgorithm, kid: Option<&str>) -> Option<JwtKey> {
    match keys.find(algorithm, kid) {
        KeyLookup::Known(key) => key,
        // What is at hand is never looked up.
        KeyLookup::Later(_) => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "the age of keys is no part of a limit")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_when_it_begins_and_when_it_is_over() {
        let mut state = State::new();
        let mut put = |well: bool| {
            let keys = JwtKeys::hs256("a secret of at least thirty-two bytes");
            state.put(if well { Ok(keys) } else { Err("a fault".to_owned()) }, now())
        };
        for _ in 0..2 {
            assert_eq!(put(true), Turn::Well);
            assert_eq!(put(true), Turn::Well);
            assert_eq!(put(false), Turn::Fails);
            assert_eq!((put(false), put(false)), (Turn::FailsStill, Turn::FailsStill));
            assert_eq!(put(true), Turn::WellAgain);
        }
    }
}
