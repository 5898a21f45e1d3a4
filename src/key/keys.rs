use std::ops::Deref;

use smallvec::SmallVec;

use super::{Key, KeyError};

/// The most keys of one request at one limit.
const MAX_KEYS: usize = 8;
/// The most that are looked through for keys that are there twice.
const MAX_DRAWN: usize = 64;

/// The keys that an extractor draws from a request: one, most often, or up to 8 for a limit that
/// counts several things that a request is about, such as the domains of an order. All of them are
/// charged, or none. A key that is there twice is charged once.
///
/// ```
/// use http::Request;
/// use tollgate::key::{self, KeyExtractor, RequestHead};
///
/// #[derive(Clone)]
/// struct Order {
///     domains: Vec<String>,
/// }
///
/// let domains = key::from_fn(|head| Some(head.extension::<Order>()?.domains.clone()));
///
/// let mut request = Request::new(());
/// let order = Order { domains: vec!["example.com".into(), "example.org".into()] };
/// request.extensions_mut().insert(order);
/// let keys = domains.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys.len(), 2);
/// assert_eq!(keys[1].as_str(), "id:example.org");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys(SmallVec<[Key; 1]>);

impl Keys {
    /// These keys, if there are any and none of them is empty, or all who have none would share it:
    /// `error`, if all are. One that is empty among others is no absent key: nobody gets around
    /// a limit by adding it.
    pub(super) fn not_empty(self, error: KeyError) -> Result<Self, KeyError> {
        match self.0.iter().filter(|key| key.is_empty()).count() {
            empty if empty == self.0.len() => Err(error),
            0 => Ok(self),
            _ => Err(KeyError::invalid("one of the things that the request is about has no name")),
        }
    }

    /// Every key of these with every key of `others`.
    pub(super) fn join(self, others: &Self) -> Self {
        if let ([_], [other]) = (self.0.as_slice(), others.0.as_slice()) {
            let mut joined = self;
            joined.0[0].join(other);
            return joined;
        }
        let pair = |key: &Key, other: &Key| {
            let mut key = key.clone();
            key.join(other);
            key
        };
        let keys = self.0.iter().flat_map(|key| others.0.iter().map(move |other| pair(key, other)));
        // More than the bound is an error anyway, so there need not be many more.
        Self(keys.take(MAX_DRAWN + 1).collect())
    }

    /// The places of these keys, each key once, if there are any and no more than may be.
    pub(crate) fn places(&self) -> Result<SmallVec<[usize; 1]>, KeyError> {
        const NONE: KeyError = KeyError::missing("the request does not say whom it is about");
        const TOO_MANY: KeyError =
            KeyError::invalid("the request is about too many things at once");
        if self.0.is_empty() {
            return Err(NONE);
        }
        if self.0.len() > MAX_DRAWN {
            return Err(TOO_MANY);
        }
        let mut places = SmallVec::new();
        for (at, key) in self.0.iter().enumerate() {
            if places.iter().all(|other: &usize| self.0[*other] != *key) {
                places.push(at);
            }
        }
        if places.len() > MAX_KEYS {
            return Err(TOO_MANY);
        }
        Ok(places)
    }
}

impl Deref for Keys {
    type Target = [Key];

    fn deref(&self) -> &[Key] {
        &self.0
    }
}

impl IntoIterator for Keys {
    type Item = Key;
    type IntoIter = smallvec::IntoIter<[Key; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<Key>> From<K> for Keys {
    fn from(key: K) -> Self {
        Self(SmallVec::from_buf([key.into()]))
    }
}

impl<K: Into<Key>> From<Vec<K>> for Keys {
    fn from(keys: Vec<K>) -> Self {
        keys.into_iter().collect()
    }
}

impl<K: Into<Key>> FromIterator<K> for Keys {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        Self(keys.into_iter().map(Into::into).collect())
    }
}
