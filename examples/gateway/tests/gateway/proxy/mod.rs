//! A gateway in front of upstreams.

#![cfg(test)]

mod alive;
mod attacks;
mod ending;
mod failures;
mod fields;
mod secure;
mod streams;
pub(crate) mod support;
mod uploads;
