//! The names of policies and limits, and of the states that are kept for them.

use std::fmt;

use smallvec::{Array, SmallVec};

use super::PolicyError;
use crate::{quota::Length, time::PICOS_PER_MICRO};

const MAX_NAME: usize = 64;

/// Writes the name of a state: its key in braces, and what stands behind.
pub(super) fn write(key: &[u8], suffix: &str, name: &mut SmallVec<impl Array<Item = u8>>) {
    name.push(b'{');
    name.extend_from_slice(key);
    name.extend_from_slice(suffix.as_bytes());
}

/// Names stand in keys, header fields and metric labels.
pub(super) fn check_name(of: &'static str, name: &str) -> Result<(), PolicyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // A name of `-` alone stands for none.
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) && name != "-" {
        return Ok(());
    }
    Err(PolicyError::new(format!(
        "the {of} name {name:?}: it must be 1 to {MAX_NAME} ASCII letters, digits, `-`, `_` or `.`"
    )))
}

/// The refill time of a quota, to the microsecond, so that quotas of one rate and different rounding
/// share it.
pub(super) struct Timescale(pub(super) u128);

impl fmt::Display for Timescale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Length(self.0.next_multiple_of(PICOS_PER_MICRO)).fmt(f)
    }
}
