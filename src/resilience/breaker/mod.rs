//! Keeps requests from waiting for a store that fails or is slow.

mod circuit;
mod circuits;
mod pauses;
mod settings;
mod window;

pub use self::settings::Breaker;
pub(super) use self::{
    circuit::{Flip, Heard},
    circuits::Circuits,
};

/// Whether calls go to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// All do.
    Closed,
    /// None do.
    Open,
    /// One does, to find out whether the store answers again.
    HalfOpen,
}

impl BreakerState {
    /// The worse, the greater.
    pub(super) const fn place(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::HalfOpen => 1,
            Self::Open => 2,
        }
    }

    /// The state as a short word, for logs and dashboards.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}
