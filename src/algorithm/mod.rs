//! The arithmetic of limits: pure functions of a state, a quota, a cost and a time.
//!
//! Nothing here reads a clock or does I/O. The scripts in `lua/algorithm` give the same answers to
//! the last unit.

mod calendar;
mod choice;
mod fixed_window;
mod lock;
mod meter;
mod sliding_counter;
mod sliding_log;
mod token_bucket;

pub(crate) use self::sliding_log::MAX_LOG_COST;
pub use self::{
    calendar::Calendar,
    choice::Algorithm,
    fixed_window::{FixedWindow, Span, WindowCount},
    lock::{Denials, Lock},
    meter::{Meter, Reading, State},
    sliding_counter::{Counts, SlidingCounter},
    sliding_log::{LogReading, Moments, SlidingLog},
    token_bucket::{Backlog, FullAt, TokenBucket},
};
