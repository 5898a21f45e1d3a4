//! The names of policies and limits, and of the states that are kept for them.

use std::{fmt, ops::Range};

use smallvec::{Array, SmallVec};

use super::PolicyError;
use crate::{quota::Length, time::PICOS_PER_MICRO};

const MAX_NAME: usize = 64;

/// Appends the name of a state, and says where in it the key stands: in braces, so that all limits of one
/// key share a slot of a cluster, or, of a policy in one slot, behind the policy's name in braces. No name
/// of one form is one of the other: a key has a colon, the name of a policy has none.
pub(super) fn write(
    policy: Option<&str>,
    key: &[u8],
    suffix: &str,
    name: &mut SmallVec<impl Array<Item = u8>>,
) -> Range<usize> {
    let begin = name.len();
    name.push(b'{');
    if let Some(policy) = policy {
        name.extend_from_slice(policy.as_bytes());
        name.push(b'}');
    }
    let start = name.len() - begin;
    name.extend_from_slice(key);
    name.extend_from_slice(suffix.as_bytes());
    start..start + key.len()
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
