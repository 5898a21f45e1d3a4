use std::{collections::HashSet, fmt, sync::Arc};

use crate::key::{Key, KeyExtractor, RequestHead};

/// Callers that a policy knows, by address, key or anything else: those who are not limited, or not
/// admitted.
///
/// ```
/// use tollgate::{ApiKey, Callers, Limit, PeerIp, Policy, Quota};
///
/// #[derive(Clone)]
/// struct Claims { admin: bool }
///
/// let partner = ApiKey::header("x-api-key");
/// let key = partner.key("their secret");
/// let api = Policy::new("api")
///     .limit(PeerIp, Limit::new("requests", Quota::per_minute(60)))
///     .deny(Callers::with_keys(PeerIp, [PeerIp::key("192.0.2.66".parse()?)]))
///     .allow(Callers::with_keys(partner, [key]))
///     .allow(Callers::matching(|head| head.extension::<Claims>().is_some_and(|it| it.admin)))
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Callers(Arc<Test>);

type Test = dyn for<'a> Fn(RequestHead<'a>) -> bool + Send + Sync;

impl Callers {
    /// Those of whom `test` is true.
    pub fn matching(
        test: impl for<'a> Fn(RequestHead<'a>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(test))
    }

    /// Those of whom `extractor` draws one of these keys.
    pub fn with_keys(
        extractor: impl KeyExtractor,
        keys: impl IntoIterator<Item = impl Into<Key>>,
    ) -> Self {
        let keys: HashSet<Key> = keys.into_iter().map(Into::into).collect();
        Self::matching(move |head| {
            extractor.extract(head).is_ok_and(|drawn| drawn.iter().any(|key| keys.contains(key)))
        })
    }

    pub(super) fn include(&self, head: RequestHead<'_>) -> bool {
        (self.0)(head)
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callers")
    }
}
