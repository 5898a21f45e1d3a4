use std::{borrow::Cow, error::Error, fmt, num::NonZeroU32, sync::Arc};

pub use crate::failure::StoreErrorKind;

/// Why a store gave no answer. This is never a denial, and a denial is never one of these.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Cow<'static, str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// One more than its number.
    shard: Option<NonZeroU32>,
    /// How many bytes the address of the server that it is about takes at the start of the message. Replies are
    /// small as long as errors are.
    place: u16,
}

impl StoreError {
    /// An error of this kind; the message should not name keys.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), source: None, shard: None, place: 0 }
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same error, of this part of the store: see [`Store::shard`](crate::Store::shard).
    #[must_use]
    pub const fn at(mut self, shard: u32) -> Self {
        self.shard = NonZeroU32::new(shard.saturating_add(1));
        self
    }

    /// The part of the store that has failed, if it says so.
    #[must_use]
    pub const fn shard(&self) -> Option<u32> {
        match self.shard {
            Some(shard) => Some(shard.get() - 1),
            None => None,
        }
    }

    /// The same error, about the server at this address, unless it names one already.
    #[allow(dead_code, reason = "only stores over servers have addresses")]
    pub(crate) fn about(mut self, place: Option<&Arc<str>>) -> Self {
        if self.place == 0
            && let Some(place) = place
            && let Ok(length) = u16::try_from(place.len() + 2)
        {
            self.message = format!("{place}: {}", self.message).into();
            self.place = length;
        }
        self
    }

    /// The same error, of another kind.
    #[allow(dead_code, reason = "only stores over several servers judge what one says")]
    pub(crate) const fn turned(mut self, kind: StoreErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same error about the same server, in other words.
    #[allow(dead_code, reason = "only stores over several servers judge what one says")]
    pub(crate) fn saying(mut self, message: &str) -> Self {
        let place = self.message.get(..usize::from(self.place)).unwrap_or_default();
        self.message = format!("{place}{message}").into();
        self
    }

    /// What it says but for its kind, for an error that it leads to.
    #[allow(dead_code, reason = "only stores over several servers ask one after another")]
    pub(crate) fn words(&self) -> &str {
        &self.message
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
