//! Tests that need nothing but this process.

#![cfg(test)]

mod auth;
mod bounds;
mod breaker;
#[cfg(feature = "config")]
mod config;
mod cost;
mod denials;
mod exact;
mod failure;
mod handle;
mod headers;
mod key;
mod layer;
mod lease;
mod lockout;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod policy;
mod refund;
mod reset;
mod settle;
mod shadow;
mod support;
#[path = "../tally/mod.rs"]
mod tally;
mod tidy;
