use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::{Key, KeyError, KeyExtractor, Keys, RequestHead};

const NO_ROUTE: KeyError = KeyError::setup(
    "the limiter does not know the route: use a `PolicySet`, or, with axum, `Router::route_layer`",
);
const NO_SUCH_PARAM: KeyError = KeyError::setup(
    "the route has no path parameter of this name: the policy stands at a route without it, or the \
     limiter has no `PolicySet`, which finds it",
);

/// The route that a request takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    pub(crate) template: &'a str,
    /// The names and values of the parameters of its path.
    pub(crate) params: &'a [(&'a str, &'a str)],
}

impl<'a> RequestHead<'a> {
    /// The template of the route, such as `/users/{id}`, as a [`PolicySet`](crate::PolicySet) or else
    /// axum has matched it.
    #[must_use]
    pub fn route(&self) -> Option<&'a str> {
        self.route.map(|route| route.template).or_else(|| matched_path(*self))
    }

    /// A parameter of the path by its name in the template, percent-decoded as handlers get it. Only a
    /// [`PolicySet`](crate::PolicySet) knows it.
    #[must_use]
    pub fn path_param(&self, name: &str) -> Option<Cow<'a, str>> {
        let (_, value) = self.route?.params.iter().find(|(param, _)| *param == name)?;
        percent_decode_str(value).decode_utf8().ok()
    }
}

#[cfg(feature = "axum")]
fn matched_path<'a>(head: RequestHead<'a>) -> Option<&'a str> {
    head.extension::<axum::extract::MatchedPath>().map(axum::extract::MatchedPath::as_str)
}

#[cfg(not(feature = "axum"))]
const fn matched_path<'a>(_: RequestHead<'a>) -> Option<&'a str> {
    None
}

/// Counts by the template of the route, such as `/users/{id}`: each route for itself, and all paths of
/// one route together. Part of a key: `(PeerIp, key::route())`.
///
/// The template is that which a [`PolicySet`](crate::PolicySet) has matched, or, with axum, the router,
/// around whose routes the limiter then stands as a `route_layer`. Without one, the error is one of
/// [setup](KeyError::setup).
#[must_use]
pub const fn route() -> RouteTemplate {
    RouteTemplate(())
}

/// An extractor made by [`route`].
#[derive(Clone, Copy, Debug)]
pub struct RouteTemplate(());

impl KeyExtractor for RouteTemplate {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        let template = head.route().ok_or(NO_ROUTE)?;
        Ok(Key::of_text("route", template).into())
    }
}

/// Counts by a parameter of the path, by its name in the template of a
/// [`PolicySet`](crate::PolicySet): of `/shops/{shop}/orders`, the shop. However it is spelled in the
/// request (`%41` or `A`), it is the same key.
///
/// The kind of the keys is `param.` and the name. One that is not UTF-8 is an
/// [invalid](KeyError::invalid) key.
///
/// ```
/// use tollgate::{PeerIp, key};
///
/// let caller_and_shop = (PeerIp, key::path_param("shop"));
/// ```
#[must_use]
pub fn path_param(name: &str) -> PathParam {
    PathParam { name: name.into(), kind: format!("param.{name}").into() }
}

/// An extractor made by [`path_param`].
#[derive(Clone, Debug)]
pub struct PathParam {
    name: Box<str>,
    kind: Box<str>,
}

impl PathParam {
    /// The key of a value, to look at its limits or to reset them.
    #[must_use]
    pub fn key(&self, value: &str) -> Key {
        Key::of_text(&self.kind, value)
    }
}

impl KeyExtractor for PathParam {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        let params = head.route.map(|route| route.params).unwrap_or_default();
        let found = params.iter().find(|(param, _)| *param == &*self.name);
        let (_, value) = found.ok_or(NO_SUCH_PARAM)?;
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| KeyError::invalid("a part of the path is not text"))?;
        Keys::from(self.key(&value)).not_empty(KeyError::missing("a part of the path is empty"))
    }
}
