use std::{borrow::Cow, error::Error, fmt, sync::Arc};

/// Why a store gave no answer. This is never a denial, and a denial is never one of these.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

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
    /// The server is a replica, or lacks the replicas that it needs to accept writes.
    ReadOnly,
    /// The server has no memory left to write.
    OutOfMemory,
    /// The set-up is wrong, and stays so until somebody mends it: a password, a missing right,
    /// a key of another type, a wrong call.
    Misconfigured,
    /// The server answered what nobody expects.
    Unexpected,
}

impl StoreErrorKind {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Self; 8] = [
        Self::Overloaded,
        Self::Timeout,
        Self::Unreachable,
        Self::Busy,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::Misconfigured,
        Self::Unexpected,
    ];

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
        }
    }
}

impl StoreError {
    /// An error of this kind; the message should not name keys.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}
