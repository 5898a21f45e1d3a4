use std::{borrow::Cow, error::Error, fmt, sync::Arc};

pub use crate::failure::StoreErrorKind;

/// Why a store gave no answer. This is never a denial, and a denial is never one of these.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    shard: Option<u32>,
}

impl StoreError {
    /// An error of this kind; the message should not name keys.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), source: None, shard: None }
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same error, of this [part](crate::Store::shard) of the store.
    #[must_use]
    pub const fn at(mut self, shard: u32) -> Self {
        self.shard = Some(shard);
        self
    }

    /// The [part](crate::Store::shard) of the store that failed, if it was one of several.
    #[must_use]
    pub const fn shard(&self) -> Option<u32> {
        self.shard
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
