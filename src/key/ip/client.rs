use std::net::IpAddr;

use super::{
    peer,
    prefix::{PrefixError, Prefixes},
    source::Source,
    trust::{Trust, TrustError},
};
use crate::key::{Key, KeyError, KeyExtractor, Keys, RequestHead};

/// Counts by the address of the client, also behind proxies, and by prefixes of your choice.
///
/// ```
/// use std::net::SocketAddr;
///
/// use http::Request;
/// use tollgate::key::{ClientIp, KeyExtractor, RequestHead};
///
/// let client = ClientIp::x_forwarded_for(["10.0.0.0/8", "::1"])?;
///
/// let request = Request::get("/").header("x-forwarded-for", "6.6.6.6, 192.0.2.7");
/// let request = request.extension(SocketAddr::from(([10, 0, 0, 1], 4711))).body(()).unwrap();
/// let keys = client.extract(RequestHead::new(&request)).unwrap();
/// assert_eq!(keys[0].as_str(), "ip:192.0.2.7");
/// # Ok::<(), tollgate::key::TrustError>(())
/// ```
///
/// The peer address is found as for [`PeerIp`](super::PeerIp), and the keys are the same.
///
/// # Which header
///
/// The one that your proxies write, and no other: what they do not write, they let through as the
/// client sent it.
///
/// | your proxies | use |
/// |---|---|
/// | append to `X-Forwarded-For`, as most do | [`x_forwarded_for`](Self::x_forwarded_for) |
/// | append to `Forwarded` (RFC 7239) | [`forwarded`](Self::forwarded) |
/// | set a header of one address, such as `X-Real-IP` or `CF-Connecting-IP` | [`header`](Self::header) |
/// | have addresses that are not known, but always the same number | [`x_forwarded_for_hops`](Self::x_forwarded_for_hops), [`forwarded_hops`](Self::forwarded_hops) |
///
/// # Which proxies
///
/// Those whose addresses (`::1`) and ranges (`10.0.0.0/8`) you list. From other peers the header does
/// not count: they are counted by their own address. IPv4 is matched as IPv4 also where it is written
/// as `::ffff:192.0.2.7`; so `::/0` does not contain it.
///
/// A peer on a Unix socket has no address. List it as `unix:` if it is a proxy; then any request
/// without a peer address is taken for one of that proxy. So a service that also listens on TCP has to
/// tell the addresses of the peers there.
///
/// # When the header does not tell
///
/// If the header is absent or malformed, or if it has no address where that of the client must be, the
/// request is counted by the address of the proxy that it came from: then the clients of that proxy are
/// counted together, but none evades the limit. [`reject_unknown`](Self::reject_unknown) rejects such
/// requests instead. On a Unix socket they are always rejected.
#[derive(Clone, Debug)]
pub struct ClientIp {
    proxies: Option<(Source, Trust)>,
    prefixes: Prefixes,
    reject_unknown: bool,
}

impl ClientIp {
    /// The address that the connection comes from.
    #[must_use]
    pub const fn peer() -> Self {
        Self { proxies: None, prefixes: Prefixes::DEFAULT, reject_unknown: false }
    }

    /// The address that the outermost of the `trusted` proxies saw, from `X-Forwarded-For`.
    ///
    /// Each of your proxies must append the address of *its* peer to the header, as is usual.
    ///
    /// All lines of the header are read from right to left, past trusted addresses, and the first other
    /// address is that of the client; what stands left of it may be forged and is not looked at.
    /// Anything but an address before that, and the header [does not tell](Self#when-the-header-does-not-tell).
    /// An address may carry a port, which is no part of the key.
    ///
    /// # Errors
    ///
    /// If an item is neither an address nor a range nor `unix:`, or if there is none.
    pub fn x_forwarded_for<I>(trusted: I) -> Result<Self, TrustError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Ok(Self::behind(Source::XForwardedFor, Trust::proxies(trusted)?))
    }

    /// The address that the outermost of the `trusted` proxies saw, from `Forwarded` (RFC 7239).
    ///
    /// As [`x_forwarded_for`](Self::x_forwarded_for), with the address that each element is `for`. Each
    /// of your proxies must append an element. `unknown` and names such as `_hidden` are legal there, but
    /// no address: if one stands where the walk comes by, the header does not tell.
    ///
    /// ```
    /// # use std::net::SocketAddr;
    /// # use http::Request;
    /// # use tollgate::key::{ClientIp, KeyExtractor, RequestHead};
    /// let client = ClientIp::forwarded(["10.0.0.0/8"])?;
    ///
    /// let request = Request::get("/")
    ///     .header("forwarded", r#"for=6.6.6.6, for="[2001:db8::7]:4711";proto=https"#)
    ///     .extension(SocketAddr::from(([10, 0, 0, 1], 4711)));
    /// let request = request.body(()).unwrap();
    /// let keys = client.extract(RequestHead::new(&request)).unwrap();
    /// assert_eq!(keys[0].as_str(), "ip:2001:db8::/64");
    /// # Ok::<(), tollgate::key::TrustError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If an item is neither an address nor a range nor `unix:`, or if there is none.
    pub fn forwarded<I>(trusted: I) -> Result<Self, TrustError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Ok(Self::behind(Source::Forwarded, Trust::proxies(trusted)?))
    }

    /// The one address in a header that the `trusted` proxies set, such as `X-Real-IP`,
    /// `CF-Connecting-IP`, `True-Client-IP` or `Fly-Client-IP`.
    ///
    /// The proxies must replace what the client sent in this header. If it comes on several lines, or
    /// with a list, they do not, and the header does not tell.
    ///
    /// ```
    /// use tollgate::ClientIp;
    ///
    /// let nginx = ClientIp::header("x-real-ip", ["127.0.0.1"])?;
    /// let nginx_on_unix_socket = ClientIp::header("x-real-ip", ["unix:"])?;
    /// # Ok::<(), tollgate::key::TrustError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `name` is not the name of a header, or one of the headers with a list; if an item is neither
    /// an address nor a range nor `unix:`, or if there is none.
    pub fn header<I>(name: &str, trusted: I) -> Result<Self, TrustError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        Ok(Self::behind(Source::single(name)?, Trust::proxies(trusted)?))
    }

    /// The address that the outermost of `hops` proxies saw, from `X-Forwarded-For`.
    ///
    /// For proxies whose addresses are not known, as in front of many platforms. Count all that append
    /// to the header, the one that connects to this service included: with a CDN and a load balancer
    /// it is 2, and the client is the last but one in the list.
    ///
    /// ```
    /// # use std::net::SocketAddr;
    /// # use http::Request;
    /// # use tollgate::key::{ClientIp, KeyExtractor, RequestHead};
    /// let client = ClientIp::x_forwarded_for_hops(2)?;
    ///
    /// let request = Request::get("/")
    ///     .header("x-forwarded-for", "6.6.6.6, 192.0.2.7, 203.0.113.1")
    ///     .extension(SocketAddr::from(([10, 0, 0, 1], 4711)));
    /// let request = request.body(()).unwrap();
    /// let keys = client.extract(RequestHead::new(&request)).unwrap();
    /// assert_eq!(keys[0].as_str(), "ip:192.0.2.7");
    /// # Ok::<(), tollgate::key::TrustError>(())
    /// ```
    ///
    /// The peer is not checked, be it on TCP or on a Unix socket, so **every request must come through
    /// all of these proxies**: whoever gets around one of them chooses the address that it is counted by.
    /// Prefer a list of proxies where you can. In a shorter list, the header does not tell; what the
    /// proxies behind the outermost one append need not be addresses.
    ///
    /// # Errors
    ///
    /// If `hops` is not within 1 to 16.
    pub fn x_forwarded_for_hops(hops: u8) -> Result<Self, TrustError> {
        Ok(Self::behind(Source::XForwardedFor, Trust::hops(hops)?))
    }

    /// The address that the outermost of `hops` proxies saw, from `Forwarded` (RFC 7239).
    ///
    /// For proxies whose addresses are not known. What
    /// [`x_forwarded_for_hops`](Self::x_forwarded_for_hops) says of them holds here as well.
    ///
    /// # Errors
    ///
    /// If `hops` is not within 1 to 16.
    pub fn forwarded_hops(hops: u8) -> Result<Self, TrustError> {
        Ok(Self::behind(Source::Forwarded, Trust::hops(hops)?))
    }

    /// Rejects a request if the header [does not tell](Self#when-the-header-does-not-tell) whose it is,
    /// instead of counting it by the proxy's address. The error is an [invalid](KeyError::invalid) key,
    /// with the status 400.
    ///
    /// That concerns what a proxy sends of its own, too, such as checks of health.
    #[must_use]
    pub fn reject_unknown(self) -> Self {
        Self { reject_unknown: true, ..self }
    }

    /// Counts all IPv6 addresses that share their first `bits` bits as one, 64 by default.
    ///
    /// Choose less if clients are given larger networks, such as a /56 or a /48.
    ///
    /// # Errors
    ///
    /// If `bits` is not within 32 to 128.
    pub fn ipv6_prefix(self, bits: u8) -> Result<Self, PrefixError> {
        Ok(Self { prefixes: self.prefixes.with_v6(bits)?, ..self })
    }

    /// Counts all IPv4 addresses that share their first `bits` bits as one, 32 by default: every
    /// address for itself.
    ///
    /// # Errors
    ///
    /// If `bits` is not within 8 to 32.
    pub fn ipv4_prefix(self, bits: u8) -> Result<Self, PrefixError> {
        Ok(Self { prefixes: self.prefixes.with_v4(bits)?, ..self })
    }

    /// The key of an address, to look at its limits or to reset them.
    #[must_use]
    pub fn key(&self, address: IpAddr) -> Key {
        self.prefixes.key(address.to_canonical())
    }

    /// The address that a request is counted by, whole: for lists of addresses to allow or to deny.
    ///
    /// IPv4 is IPv4, also where it came as `::ffff:192.0.2.7`.
    ///
    /// ```
    /// # use std::net::SocketAddr;
    /// # use http::Request;
    /// # use tollgate::key::{ClientIp, RequestHead};
    /// # let request = Request::get("/").extension(SocketAddr::from(([127, 0, 0, 1], 4711)));
    /// # let request = request.header("x-real-ip", "192.0.2.7").body(()).unwrap();
    /// let client = ClientIp::header("x-real-ip", ["127.0.0.1"])?;
    /// let address = client.address(RequestHead::new(&request))?;
    /// assert_eq!(address.to_string(), "192.0.2.7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`extract`](KeyExtractor::extract): if the service does not tell the address of the peer, and
    /// for requests that are [rejected](Self::reject_unknown).
    pub fn address(&self, head: RequestHead<'_>) -> Result<IpAddr, KeyError> {
        const UNKNOWN: KeyError =
            KeyError::invalid("the proxy does not tell the address that the request comes from");
        let peer = peer::address(head);
        match &self.proxies {
            Some((source, trust)) if trust.includes(peer) => {
                let fallback = peer.filter(|_| !self.reject_unknown);
                source.client(head.headers(), trust).or(fallback).ok_or(UNKNOWN)
            }
            _ => peer.ok_or(peer::ABSENT),
        }
    }

    const fn behind(source: Source, trust: Trust) -> Self {
        let proxies = Some((source, trust));
        Self { proxies, prefixes: Prefixes::DEFAULT, reject_unknown: false }
    }
}

impl KeyExtractor for ClientIp {
    fn extract(&self, head: RequestHead<'_>) -> Result<Keys, KeyError> {
        self.address(head).map(|address| self.prefixes.key(address).into())
    }
}
