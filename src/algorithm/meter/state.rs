use crate::algorithm::{Backlog, Counts, Denials, FullAt, LogReading, Moments, WindowCount};

/// What is kept for a key; none is kept where it would say no more than that nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// When the bucket is full again.
    TokenBucket(FullAt),
    /// When units were taken.
    SlidingLog(Box<Moments>),
    /// What was counted in this window and the last.
    SlidingCounter(Counts),
    /// What was counted in this window.
    FixedWindow(WindowCount),
    /// What was denied.
    Lock(Denials),
}

/// What a request finds, before it is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// How long the bucket takes to be full again.
    TokenBucket(Backlog),
    /// What is in the log.
    SlidingLog(LogReading),
    /// What was counted in this window and the last.
    SlidingCounter(Counts),
    /// What was counted in this window.
    FixedWindow(WindowCount),
    /// What was denied.
    Lock(Denials),
}

impl Default for Reading {
    fn default() -> Self {
        Self::TokenBucket(Backlog::default())
    }
}

impl State {
    pub(super) const fn full_at(&self) -> Option<FullAt> {
        match self {
            Self::TokenBucket(full_at) => Some(*full_at),
            _ => None,
        }
    }

    pub(super) const fn moments(&self) -> Option<&Moments> {
        match self {
            Self::SlidingLog(moments) => Some(moments),
            _ => None,
        }
    }

    pub(super) const fn counts(&self) -> Option<Counts> {
        match self {
            Self::SlidingCounter(counts) => Some(*counts),
            _ => None,
        }
    }

    pub(super) const fn window(&self) -> Option<WindowCount> {
        match self {
            Self::FixedWindow(count) => Some(*count),
            _ => None,
        }
    }

    pub(super) const fn denials(&self) -> Option<Denials> {
        match self {
            Self::Lock(denials) => Some(*denials),
            _ => None,
        }
    }
}
