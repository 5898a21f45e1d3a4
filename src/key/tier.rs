use std::{fmt, sync::Arc};

/// The class of a customer, such as `free` or `pro`.
///
/// An authentication layer outside of the limiter puts it into the extensions of a request once it knows
/// who calls.
///
/// ```
/// use http::Request;
/// use tollgate::Tier;
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(Tier::new("pro"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tier(Arc<str>);

impl Tier {
    /// The tier of this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tier({})", self.0)
    }
}
