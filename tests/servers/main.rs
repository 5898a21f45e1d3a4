//! Tests against real servers, which they start themselves.

#![cfg(test)]

mod atomic;
mod outage;
mod refusals;
mod script_cache;
mod startup;
mod support;
