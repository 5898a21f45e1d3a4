//! The crate's store over several servers, whose scripts are told a time of the test's own.
//!
//! Nodes whose clock stands still would take each other for dead. So the clocks go on, and a proxy
//! before each server has scripts told another time. All else is as it comes: the store's own commands,
//! their routing, and what servers answer.

#![cfg(test)]

mod backend;
mod suite;
mod trace;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

pub(crate) use self::{
    backend::{Clocked, Kept},
    suite::suite,
    trace::compare,
};
use crate::{
    script::{REFUND, SOURCE},
    support::{
        RedisServer,
        front::{Front, Words},
    },
};

/// What scripts are told, in microseconds since the Unix epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

/// A script of the crate's, and what is run instead.
struct Instead {
    source: &'static str,
    sha: String,
    told: String,
    told_sha: String,
}

impl Clock {
    fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::SeqCst);
    }

    /// Proxies that have scripts told this time.
    pub(crate) async fn fronts(&self, count: usize) -> Vec<Front> {
        let server = RedisServer::start().await;
        let scripts = [SOURCE, REFUND].map(|source| Instead::of(source, &server));
        let (scripts, clock) = (Arc::new(scripts), self.clone());
        let rewrite = Arc::new(move |words: &mut Words| clock.rewrite(&scripts[..], words));
        let mut fronts = Vec::new();
        for _ in 0..count {
            fronts.push(Front::start(Arc::clone(&rewrite) as _).await);
        }
        fronts
    }

    fn rewrite(&self, scripts: &[Instead], words: &mut Words) {
        let is = |at: usize, text: &str| {
            words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(text.as_bytes()))
        };
        let [eval, evalsha] = ["EVAL", "EVALSHA"].map(|name| is(0, name));
        let load = is(0, "SCRIPT") && is(1, "LOAD");
        let at = if load { 2 } else { 1 };
        if !(eval || evalsha || load) {
            return;
        }
        let found = scripts.iter().find(|it| is(at, if evalsha { &it.sha } else { it.source }));
        let Some(script) = found else {
            // It would be told another time.
            assert!(eval && !contains(&words[1], b"TIME"), "a script that is not known");
            return;
        };
        words[at] = if evalsha { &script.told_sha } else { &script.told }.clone().into();
        if !load {
            let micros = self.0.load(Ordering::SeqCst);
            words.extend([micros / 1_000_000, micros % 1_000_000].map(|it| it.to_string().into()));
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

impl Instead {
    fn of(source: &'static str, server: &RedisServer) -> Self {
        let told = format!("{}{source}", include_str!("told.lua"));
        let sha = |source: &str| server.command(&["SCRIPT", "LOAD", source]);
        Self { source, sha: sha(source), told_sha: sha(&told), told }
    }
}
