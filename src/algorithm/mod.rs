//! The arithmetic of limits: pure functions of a state, a quota, a cost and a time.
//!
//! Nothing here reads a clock or does I/O. The scripts in `lua/algorithm` give the same answers to
//! the last unit.

mod token_bucket;

pub use self::token_bucket::{Backlog, FullAt, TokenBucket};
