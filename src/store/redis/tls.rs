//! TLS, by rustls.

use std::{error::Error, io, sync::Arc};

use deadpool_redis::redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates,
};
use rustls::{
    AlertDescription, CertificateError, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::{RedisStoreBuilder, error};
use crate::store::StoreError;

pub(super) const AVAILABLE: bool = true;

#[derive(Clone, Default)]
pub(super) struct Tls {
    roots: Option<Vec<u8>>,
    client: Option<ClientTlsConfig>,
}

/// TLS, for URLs that begin with `rediss://` or `valkeys://`.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::fs;
/// use tollgate::RedisStore;
///
/// let store = RedisStore::builder("rediss://limits.internal/")
///     .root_certificate(fs::read("ca.pem")?)
///     .client_certificate(fs::read("me.pem")?, fs::read("me.key")?)
///     .connect()
///     .await?;
/// # Ok(()) }
/// ```
impl RedisStoreBuilder {
    /// Trusts a server whose certificate was signed by this one, or by one of these, in PEM; and no
    /// other. Without it, the authorities that Mozilla trusts count. Those of the system are in a file
    /// such as `/etc/ssl/certs/ca-certificates.crt`.
    pub fn root_certificate(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.tls.roots = Some(pem.as_ref().to_vec());
        self
    }

    /// Shows a server that asks for it this certificate, with those that lead to its root behind it,
    /// and its private key, both in PEM.
    pub fn client_certificate(
        mut self,
        certificate: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
    ) -> Self {
        self.tls.client = Some(ClientTlsConfig {
            client_cert: certificate.as_ref().to_vec(),
            client_key: key.as_ref().to_vec(),
        });
        self
    }
}

impl Tls {
    pub(super) const fn is_set(&self) -> bool {
        self.roots.is_some() || self.client.is_some()
    }

    /// The same server, with these certificates, after a look whether they can be used at all.
    pub(super) fn apply(&self, info: ConnectionInfo) -> Result<ConnectionInfo, StoreError> {
        if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            return if self.is_set() {
                Err(wrong("certificates are given, but the URL does not begin with `rediss://`"))
            } else {
                Ok(info)
            };
        }
        if CryptoProvider::get_default().is_none() {
            // Somebody else may be faster, which is as well.
            let _ = ring::default_provider().install_default();
        }
        if let Some(pem) = &self.roots {
            let mut store = RootCertStore::empty();
            for certificate in certificates("root certificate", pem)? {
                store
                    .add(certificate)
                    .map_err(|cause| wrong(format!("the root certificate: {cause}")))?;
            }
        }
        if let Some(ClientTlsConfig { client_cert, client_key }) = &self.client {
            let chain = certificates("client certificate", client_cert)?;
            // What is wrong with a key is not told: it might show some of it.
            let key = PrivateKeyDer::from_pem_slice(client_key)
                .map_err(|_| wrong("the key of the client certificate is no private key in PEM"))?;
            CertifiedKey::from_der(chain, key, &ring::default_provider())
                .map_err(|cause| wrong(format!("the client certificate and its key: {cause}")))?;
        }
        let given =
            TlsCertificates { client_tls: self.client.clone(), root_cert: self.roots.clone() };
        let client = Client::build_with_tls(info, given).map_err(error::classify)?;
        Ok(client.get_connection_info().clone())
    }
}

fn certificates(name: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(format!("the {name} holds no certificate in PEM"))),
        Err(_) => Err(wrong(format!("the {name} is no PEM that can be read"))),
    }
}

/// What is wrong between this side and the server, if it stays so until somebody mends it.
pub(super) fn fault(error: &RedisError) -> Option<String> {
    let source = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    let cause = source.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>()?;
    let hint = match cause {
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "; nobody who is trusted has signed it, see `root_certificate`",
        rustls::Error::InvalidCertificate(_) | rustls::Error::PeerIncompatible(_) => "",
        rustls::Error::InvalidMessage(_) => "; the server does not seem to speak TLS on this port",
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "; the server asks for a certificate, see `client_certificate`"
        }
        rustls::Error::AlertReceived(
            AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::UnknownCA
            | AlertDescription::UnrecognisedName
            | AlertDescription::UnsupportedCertificate,
        ) => "; the server refuses what it was shown",
        _ => return None,
    };
    Some(format!("TLS to Redis: {cause}{hint}"))
}

fn wrong(message: impl Into<String>) -> StoreError {
    error::misconfigured(message.into())
}
