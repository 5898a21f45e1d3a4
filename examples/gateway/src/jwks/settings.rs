//! Where a key set is, and how often it is asked for.

use std::{error::Error, fmt, net::IpAddr, path::PathBuf, time::Duration};

use axum::http::Uri;

use super::{Jwks, fetch::Source};
use crate::tls;

/// Where a key set is found.
#[derive(Clone, PartialEq)]
pub(crate) enum Location {
    /// An `https://` URL, or an `http://` one on this machine.
    Url(Uri),
    /// A file.
    File(PathBuf),
}

impl Location {
    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Self::Url(url) if url.scheme_str() == Some("https"))
    }

    fn check(&self) -> Result<(), SettingError> {
        let Self::Url(url) = self else { return Ok(()) };
        let fault = |what: &str| Err(SettingError(format!("the key set at {self} {what}")));
        let host = url.host().unwrap_or_default();
        let tls = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return fault("must have a URL with https://, or be a file"),
        };
        if host.is_empty()
            || url.port().is_some_and(|_| url.port_u16().is_none_or(|port| port == 0))
        {
            return fault("must have a host, and a port if need be");
        }
        if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return fault("has a user in its URL, which is told nobody");
        }
        if tls && !tls::can_be_verified(host) {
            return fault("has a host that no certificate can be for");
        }
        if !tls && !is_here(host) {
            return fault(
                "must have https://: without TLS, whoever is on the way could put in keys of their \
                 own, and sign any token",
            );
        }
        Ok(())
    }
}

/// Whether it is this machine, whatever a resolver says.
fn is_here(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = bare.parse::<IpAddr>().map(|address| address.to_canonical());
    address.map_or(bare.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// Without what may be secret: a user and a query.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => {
                let (scheme, host) = (url.scheme_str().unwrap_or_default(), url.host());
                write!(f, "{scheme}://{}", host.unwrap_or_default())?;
                if let Some(port) = url.port_u16() {
                    write!(f, ":{port}")?;
                }
                f.write_str(url.path())
            }
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A key set, and how often it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) location: Location,
    /// File of certificates in PEM that are trusted instead of those that the system trusts.
    pub(crate) ca: Option<PathBuf>,
    /// For how long keys are not asked for again, unless a token names one that is not there.
    pub(crate) refresh: Duration,
    /// For how long after they were fetched keys are used if they cannot be fetched again.
    pub(crate) stale: Duration,
    /// For how long one fetch may take.
    pub(crate) timeout: Duration,
    /// The least time between two fetches that names of keys cause that are not there.
    pub(crate) pause: Duration,
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

impl Settings {
    /// A URL, or the path of a file, with the settings that it has by itself.
    pub(crate) fn new(location: &str) -> Result<Self, SettingError> {
        let location = if location.contains("://") {
            // The text may hold a password, and is not shown.
            let fault = |cause| SettingError(format!("the URL of the key set: {cause}"));
            Location::Url(location.parse().map_err(fault)?)
        } else if location.is_empty() {
            return Err(SettingError("a key set needs a URL, or the path of a file".to_owned()));
        } else {
            Location::File(location.into())
        };
        Ok(Self {
            location,
            ca: None,
            refresh: Duration::from_secs(600),
            stale: DAY,
            timeout: Duration::from_secs(5),
            pause: Duration::from_secs(30),
        })
    }

    /// Checks all of it, and begins to fetch the keys, for which it needs a runtime of tokio.
    pub(crate) fn build(self) -> Result<Jwks, SettingError> {
        let location = &self.location;
        location.check()?;
        let within = |name: &str, given: Duration, least: Duration, most: Duration| {
            if (least..=most).contains(&given) {
                return Ok(());
            }
            let bounds = format!("it must be {least:?} to {most:?}");
            Err(SettingError(format!("the key set at {location}: a {name} of {given:?}: {bounds}")))
        };
        within("refresh", self.refresh, SECOND, DAY)?;
        within("stale", self.stale, self.refresh, YEAR)?;
        within("timeout", self.timeout, Duration::from_millis(10), 60 * SECOND)?;
        within("pause", self.pause, SECOND, DAY)?;
        let source = Source::new(&self)
            .map_err(|fault| SettingError(format!("the key set at {location}: {fault}")))?;
        Ok(Jwks::start(self, source))
    }
}

/// A setting that cannot be kept; says which, and what would be right.
#[derive(Debug)]
pub(crate) struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for SettingError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(location: &str, change: impl FnOnce(&mut Settings)) -> String {
        let built = Settings::new(location).and_then(|mut settings| {
            change(&mut settings);
            settings.build()
        });
        built.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[tokio::test]
    async fn locations() {
        for right in [
            "https://issuer.example/jwks?tenant=1",
            "http://127.0.0.1:9000/",
            "http://[::1]/keys",
            "http://LOCALHOST:80/",
            "/nowhere/keys.json",
            "keys.json",
        ] {
            assert_eq!(fault(right, |_| {}), "", "{right}");
        }
        for (wrong, why) in [
            ("", "needs a URL, or the path"),
            ("ftp://a/", "must have a URL with https://"),
            ("https://", "the URL of the key set"),
            ("https://a:0/", "a port if need be"),
            ("https://a~b/", "no certificate can be for"),
            ("http://issuer.example/", "whoever is on the way could put in keys"),
            ("http://10.0.0.1/", "must have https://"),
            ("http://localhost.example/", "must have https://"),
            ("http://127.0.0.1.example/", "must have https://"),
        ] {
            assert!(fault(wrong, |_| {}).contains(why), "{wrong}: {}", fault(wrong, |_| {}));
        }
    }

    #[tokio::test]
    async fn secrets_are_not_shown() {
        for url in ["https://me:s3cret@a/", "https://me:s3cret@a:b/", "http://a/?key=s3cret"] {
            let fault = fault(url, |_| {});
            assert!(!fault.is_empty() && !fault.contains("s3cret"), "{fault}");
        }
        let settings = Settings::new("https://me:s3cret@a/b?key=s3cret").unwrap();
        assert!(format!("{settings:?}").contains("https://a/b,"), "{settings:?}");
    }

    #[tokio::test]
    async fn what_is_wrong_is_named_with_its_bound() {
        let fault = |change: fn(&mut Settings)| fault("keys.json", change);
        assert_eq!(
            fault(|settings| settings.refresh = Duration::from_millis(999)),
            "the key set at keys.json: a refresh of 999ms: it must be 1s to 86400s"
        );
        let stale = fault(|settings| settings.stale = Duration::from_secs(599));
        assert!(stale.contains("a stale of 599s: it must be 600s to"), "{stale}");
        assert!(fault(|settings| settings.timeout = Duration::ZERO).contains("a timeout of 0ns"));
        assert!(fault(|settings| settings.pause = Duration::ZERO).contains("a pause of 0ns"));
        assert!(fault(|settings| settings.ca = Some("ca.pem".into())).contains("has no TLS"));
    }
}
