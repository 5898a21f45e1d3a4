//! How a store can fail.

/// The kinds of failure of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// More requests wait for the store than it is set to hold.
    Overloaded,
    /// No answer within the deadline. The request may have been charged.
    Timeout,
    /// No connection, or it broke before the answer.
    Unreachable,
    /// The server is loading its data, runs somebody's long script, or has no primary just now.
    Busy,
    /// The server is a replica, or lacks the replicas that it needs to accept writes, or cannot save.
    ReadOnly,
    /// The server has no memory left to write.
    OutOfMemory,
    /// The set-up is wrong, and stays so until somebody mends it: a password, a missing right,
    /// a key of another type, a wrong call.
    Misconfigured,
    /// The server answered what nobody expects.
    Unexpected,
    /// The store failed or was slow a moment ago, so it was not asked: the limiter's
    /// [`Breaker`](crate::Breaker) is open.
    BreakerOpen,
}

impl StoreErrorKind {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Overloaded,
        Self::Timeout,
        Self::Unreachable,
        Self::Busy,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::Misconfigured,
        Self::Unexpected,
        Self::BreakerOpen,
    ];

    /// How many there are.
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// The place among all kinds.
    pub(crate) const fn place(self) -> usize {
        self as usize
    }

    /// The kind as a short word, for logs and metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Busy => "busy",
            Self::ReadOnly => "read_only",
            Self::OutOfMemory => "out_of_memory",
            Self::Misconfigured => "misconfigured",
            Self::Unexpected => "unexpected",
            Self::BreakerOpen => "breaker_open",
        }
    }
}
