//! Guides.

#[doc = include_str!("algorithms.md")]
pub mod algorithms {}

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("comparison.md")]
#[doc = ""]
#[doc = include_str!("comparison.svg")]
pub mod comparison {}

#[doc = include_str!("configuration.md")]
pub mod configuration {}

#[doc = include_str!("operation.md")]
pub mod operation {}

#[doc = include_str!("failure.md")]
pub mod failure {}

#[doc = include_str!("scaling.md")]
pub mod scaling {}
