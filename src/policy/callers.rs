use std::{collections::HashSet, fmt, sync::Arc};

use ipnet::IpNet;

use super::PolicyError;
use crate::key::{ClientIp, Key, KeyExtractor, RequestHead, network};

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

    /// Those whose address, as `client` finds it, is one of these (`::1`), or in one of these ranges
    /// (`10.0.0.0/8`). A request of which no address is known is none of theirs.
    ///
    /// ```
    /// use tollgate::{Callers, ClientIp, Limit, PeerIp, Policy, Quota};
    ///
    /// let api = Policy::new("api")
    ///     .limit(PeerIp, Limit::new("requests", Quota::per_minute(60)))
    ///     .allow(Callers::within(ClientIp::peer(), ["10.0.0.0/8", "::1"])?)
    ///     .build()?;
    /// # Ok::<(), tollgate::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If an item is neither an address nor a range; the message names it.
    pub fn within<I>(client: ClientIp, ranges: I) -> Result<Self, PolicyError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let ranges = ranges.into_iter().map(|range| {
            let range = range.as_ref();
            network(range).ok_or_else(|| {
                PolicyError::new(format!(
                    "{range:?} is neither an address such as `::1` nor a range such as `10.0.0.0/8`"
                ))
            })
        });
        let ranges: Vec<IpNet> = ranges.collect::<Result<_, _>>()?;
        Ok(Self::matching(move |head| {
            let address = client.address(head);
            address.is_ok_and(|address| ranges.iter().any(|range| range.contains(&address)))
        }))
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
