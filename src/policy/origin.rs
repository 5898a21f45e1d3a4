//! What policies were made from, which tells those that changed from those that did not.

#![cfg_attr(not(feature = "config"), allow(dead_code, reason = "only a configuration asks"))]

use std::sync::Arc;

use super::{Policy, PolicyBuilder};

impl PolicyBuilder {
    /// Two policies that were made from the same text are the same.
    pub(crate) fn made_from(mut self, text: impl Into<Arc<str>>) -> Self {
        self.origin = Some(text.into());
        self
    }
}

impl Policy {
    pub(crate) fn origin(&self) -> Option<&str> {
        self.0.origin.as_deref()
    }
}
