use std::net::IpAddr;

use http::{HeaderMap, HeaderName};

use super::{
    forwarded,
    host::{self, Node},
    trust::{Trust, TrustError},
};

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A header that tells the client.
#[derive(Clone, Debug)]
pub(super) enum Source {
    XForwardedFor,
    Forwarded,
    /// One address that each proxy replaces.
    Single(HeaderName),
}

impl Source {
    pub(super) fn single(name: &str) -> Result<Self, TrustError> {
        let header: HeaderName = name.parse().map_err(|_| TrustError::header(name))?;
        if header == X_FORWARDED_FOR || header == http::header::FORWARDED {
            return Err(TrustError::list(header));
        }
        Ok(Self::Single(header))
    }

    /// The client, unless the header does not tell it for sure.
    pub(super) fn client(&self, headers: &HeaderMap, trust: &Trust) -> Option<IpAddr> {
        match self {
            Self::XForwardedFor => trust.client(x_forwarded_for(headers)),
            Self::Forwarded => trust.client(forwarded::nodes(headers)),
            Self::Single(name) => single(headers, name),
        }
    }
}

/// What the elements of all lines say, from right to left; `None` for an empty one.
fn x_forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<Node>> {
    let lines = headers.get_all(&X_FORWARDED_FOR).iter().rev();
    let elements = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    elements.map(|element| {
        let element = element.trim_ascii();
        (!element.is_empty()).then(|| host::plain(element).into())
    })
}

fn single(headers: &HeaderMap, name: &HeaderName) -> Option<IpAddr> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?;
    match lines.next() {
        Some(_) => None,
        None => host::plain(line.as_bytes().trim_ascii()),
    }
}
