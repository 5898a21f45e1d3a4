//! What is asked of servers that are spoken to over TLS.

use std::{fmt, fs, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};

/// Whose word counts about who a server is.
pub(crate) enum Trust<'a> {
    /// Nobody's: for servers that are spoken to without TLS.
    Nobody,
    /// That of the authorities that the system trusts.
    System,
    /// That of those in a file of certificates in PEM.
    File(&'a Path),
}

impl<'a> Trust<'a> {
    /// For a server with TLS or without, and the file that was given, if any.
    pub(crate) fn new(tls: bool, ca: Option<&'a Path>) -> Result<Self, Fault> {
        match (tls, ca) {
            (true, None) => Ok(Self::System),
            (true, Some(path)) => Ok(Self::File(path)),
            (false, None) => Ok(Self::Nobody),
            (false, Some(path)) => {
                let path = path.display();
                Err(Fault(format!("the CA file {path} is of no use: the URL has no TLS")))
            }
        }
    }

    /// How a server is verified that speaks `protocol` within TLS, by its name in ALPN.
    pub(crate) fn config(self, protocol: &str) -> Result<ClientConfig, Fault> {
        let roots = match self {
            Self::Nobody => RootCertStore::empty(),
            Self::System => of_system()?,
            Self::File(path) => of_file(path)?,
        };
        // Named, as a process may have no provider by itself.
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|cause| Fault(format!("TLS cannot be used: {cause}")))?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        Ok(config)
    }
}

/// Whether a certificate can be for this host, as it stands in a URL.
pub(crate) fn can_be_verified(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    ServerName::try_from(bare.unwrap_or(host)).is_ok()
}

fn of_file(path: &Path) -> Result<RootCertStore, Fault> {
    let fault = |what: &dyn fmt::Display| Fault(format!("the CA file {}: {what}", path.display()));
    let pem = fs::read(path).map_err(|cause| fault(&cause))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| fault(&"it is no PEM that can be read"))?;
        roots.add(certificate).map_err(|cause| fault(&cause))?;
    }
    if roots.is_empty() {
        return Err(fault(&"it holds no certificate in PEM"));
    }
    Ok(roots)
}

fn of_system() -> Result<RootCertStore, Fault> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Some systems hold certificates that nothing can read.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let causes: Vec<_> = found.errors.iter().map(|error| format!(": {error}")).collect();
        let text = "this system has no certificates of authorities; give some in a CA file";
        return Err(Fault(format!("{text}{}", causes.concat())));
    }
    Ok(roots)
}

/// Why nothing could be verified; says what would be right.
#[derive(Debug)]
pub(crate) struct Fault(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn files_that_cannot_be_used() {
        let fault = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let fault = Trust::File(file.path()).config("h2").unwrap_err().to_string();
            assert!(fault.contains(file.path().to_str().unwrap()), "{fault}");
            fault
        };
        assert!(fault("").contains("holds no certificate"));
        assert!(fault("-----BEGIN CERTIFICATE-----\n?").contains("no PEM that can be read"));
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(fault(empty).contains("invalid peer certificate"), "{}", fault(empty));
        let missing = Trust::File(Path::new("/nowhere/ca.pem")).config("h2");
        let missing = missing.unwrap_err().to_string();
        assert!(missing.contains("/nowhere/ca.pem: No such file"), "{missing}");
    }

    #[test]
    fn hosts() {
        for host in ["up.example", "localhost", "127.0.0.1", "[::1]"] {
            assert!(can_be_verified(host), "{host}");
        }
        assert!(!can_be_verified("a~b"));
        assert!(!can_be_verified("-"));
    }
}
