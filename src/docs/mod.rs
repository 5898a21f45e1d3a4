//! Guides.

#[doc = include_str!("algorithms.md")]
pub mod algorithms {}

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("failure.md")]
pub mod failure {}
