//! Guides.

#[doc = include_str!("architecture.md")]
pub mod architecture {}
