//! What a proxy was told to do.

use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings {
    /// By direction.
    pub(super) delay: [Duration; 2],
    pub(super) jitter: Duration,
    pub(super) swallow_replies: bool,
    pub(super) black_hole: bool,
    /// The connection, by its number, that alone is a black hole.
    pub(super) silent: Option<u64>,
    /// Taken back by the connection that obeys.
    pub(super) cut_midway: bool,
    /// Connections end when it is no longer what it was when they began.
    pub(super) generation: u64,
}
