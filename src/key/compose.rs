use super::{Key, KeyError, KeyExtractor, Keys, RequestHead};

/// The key of one extractor, or of another where the first finds nothing.
///
/// Made by [`KeyExtractor::or`]. Only a [missing](KeyError::missing) key leads to the second
/// extractor.
///
/// ```
/// use std::net::SocketAddr;
///
/// use http::Request;
/// use tollgate::key::{ApiKey, KeyExtractor, PeerIp, RequestHead};
///
/// let caller = ApiKey::header("x-api-key").or(PeerIp);
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(SocketAddr::from(([192, 0, 2, 7], 4711)));
/// let keys = caller.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "ip:192.0.2.7");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B> {
    first: A,
    second: B,
}

impl<A, B> Or<A, B> {
    /// The key of `first`, or of `second` where `first` finds nothing.
    #[must_use]
    pub const fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: KeyExtractor, B: KeyExtractor> KeyExtractor for Or<A, B> {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        match self.first.extract(head) {
            Err(error) if error.is_missing() => self.second.extract(head),
            Ok(keys) if keys.is_empty() => self.second.extract(head),
            found => found,
        }
    }
}

/// One key for everybody, of the kind `global`: a limit on the service as a whole.
///
/// ```
/// use http::Request;
/// use tollgate::key::{Global, KeyExtractor, RequestHead};
///
/// let keys = Global.extract(RequestHead::new(&Request::new(()))).unwrap();
/// assert_eq!(keys[0].as_str(), "global:all");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Global;

impl KeyExtractor for Global {
    fn extract(&self, _: RequestHead<'_>) -> Result<Keys, KeyError> {
        Ok(Key::of_text("global", "all").into())
    }
}

macro_rules! tuple {
    ($first:ident $($other:ident)+) => {
        /// The key of all at once: every combination is counted for itself. The first error in
        /// order is the error of the tuple.
        impl<$first: KeyExtractor, $($other: KeyExtractor),+> KeyExtractor for ($first, $($other),+) {
            #[allow(non_snake_case, reason = "the variables are named after their types")]
            fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
                let ($first, $($other),+) = self;
                let keys = $first.extract(head)?;
                $(let keys = keys.join(&$other.extract(head)?);)+
                Ok(keys)
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
