//! The one place that knows `tracing` and `metrics`.
//!
//! Nothing here shows a key, and labels have few values: names of policies and limits, outcomes, and
//! kinds of failure.

#[cfg_attr(feature = "metrics", path = "enabled.rs")]
#[cfg_attr(not(feature = "metrics"), path = "disabled.rs")]
mod meters;

use std::{fmt, sync::Arc};

use tracing::level_filters::LevelFilter;

pub(crate) use self::meters::Timer;
use crate::decision::{Decision, Outcome, Verdict};

/// What filters of logs name.
const TARGET: &str = "tollgate";

/// A request was decided. An event for each is for debugging only: it would amplify a flood.
pub(crate) fn decided(decision: &Decision) {
    let outcome = match decision.outcome() {
        Outcome::Allowed => "allowed",
        Outcome::Denied if decision.is_locked() => "locked",
        Outcome::Denied => "denied",
        Outcome::FailedOpen => "error_allowed",
        Outcome::Skipped => "skipped",
    };
    meters::request(decision.shared_policy(), outcome);
    if decision.verdicts().iter().any(shadow_denies) && decision.is_allowed() {
        for _ in decision.by_limit().filter(|keys| keys.iter().any(shadow_denies)) {
            meters::request(decision.shared_policy(), "shadow_denied");
        }
    }
    if LevelFilter::current() >= LevelFilter::DEBUG {
        log(decision, outcome);
    }
}

#[cold]
fn log(decision: &Decision, outcome: &'static str) {
    let binding = decision.binding();
    tracing::debug!(target: TARGET, policy = decision.policy(),
        outcome,
        source = ?decision.source(),
        limit = binding.map(|verdict| verdict.name()),
        remaining = binding.map(|verdict| verdict.standing().remaining()),
        "decided"
    );
}

fn shadow_denies(verdict: &Verdict) -> bool {
    verdict.is_shadow() && !verdict.standing().fits()
}

/// A request was turned away because the store does not answer.
pub(crate) fn failed_closed(policy: &Arc<str>) {
    meters::request(policy, "error_denied");
    tracing::debug!(target: TARGET, policy = &**policy, outcome = "error_denied", "decided");
}

/// A request was turned away because it has no key.
pub(crate) fn no_key(policy: &Arc<str>, reason: &impl fmt::Display) {
    meters::request(policy, "no_key");
    tracing::debug!(target: TARGET, policy = &**policy, outcome = "no_key", %reason, "decided");
}

/// A request was turned away because of who sent it.
pub(crate) fn blocked(policy: &Arc<str>) {
    meters::request(policy, "blocked");
    tracing::debug!(target: TARGET, policy = &**policy, outcome = "blocked", "decided");
}

/// No request can have a key, as the service is set up.
pub(crate) fn no_key_possible(policy: &str, remedy: &impl fmt::Display) {
    tracing::error!(target: TARGET, policy, "requests have no key: {remedy}");
}

/// The store did not answer one request.
pub(crate) fn store_failed(kind: &'static str) {
    meters::store_error(kind);
}

/// So many states were charged for a request that was not admitted, and got nothing back.
#[allow(dead_code, reason = "only stores of several parts have something to give back")]
pub(crate) fn refunds_withheld(count: usize) {
    meters::refunds_withheld(count);
    tracing::debug!(target: TARGET, count, "units come back only with the next refill");
}

/// The store begins to fail, in this way.
pub(crate) fn store_failing(error: &dyn std::error::Error, misconfigured: bool) {
    if misconfigured {
        tracing::error!(target: TARGET, %error, "the store is misconfigured; policies apply their `on_failure`");
    } else {
        tracing::warn!(target: TARGET, %error, "the store fails; policies apply their `on_failure`");
    }
}

/// The store answers again.
pub(crate) fn store_recovered() {
    tracing::info!(target: TARGET, "the store answers again");
}

/// The breaker, or the worst of several: 0 is closed, 1 half open, 2 open.
pub(crate) fn breaker_is(state: u8) {
    meters::breaker(state);
}

/// The breaker opens, for so many microseconds at first; of several, that of this part of the store, which
/// is known by a name.
pub(crate) fn breaker_opened(
    shard: Option<u32>,
    name: Option<&str>,
    why: &'static str,
    pause: u64,
) {
    tracing::warn!(target: TARGET, shard, name, millis = pause / 1_000,
        "the breaker opens, as the store does not serve: {why}; policies apply their `on_failure`"
    );
}

/// One request is to find out whether the store answers again.
pub(crate) fn breaker_probes(shard: Option<u32>, name: Option<&str>) {
    tracing::debug!(target: TARGET, shard, name, "the breaker is half open: one request asks the store");
}

/// It did not.
pub(crate) fn breaker_still_open(shard: Option<u32>, name: Option<&str>) {
    tracing::debug!(target: TARGET, shard, name, "the breaker stays open");
}

/// The store answers again, so that all requests go to it.
pub(crate) fn breaker_closed(shard: Option<u32>, name: Option<&str>) {
    tracing::info!(target: TARGET, shard, name, "the breaker closes: the store answers again");
}

/// The source of keys for tokens begins to fail.
#[cfg(feature = "jwt")]
pub(crate) fn keys_failing(error: &dyn std::error::Error) {
    tracing::warn!(target: TARGET, %error, "the keys for tokens cannot be had; requests are answered 503");
}

/// It answers again.
#[cfg(feature = "jwt")]
pub(crate) fn keys_recovered() {
    tracing::info!(target: TARGET, "the keys for tokens can be had again");
}
