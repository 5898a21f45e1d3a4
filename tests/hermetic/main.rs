//! Tests that need nothing but this process.

#![cfg(test)]

mod bounds;
mod exact;
mod failure;
mod headers;
mod key;
mod layer;
mod memory;
#[cfg(feature = "metrics")]
mod metrics;
mod policy;
mod support;
mod tidy;
