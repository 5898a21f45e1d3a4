//! TLS, with certificates that the tests make.

#[cfg(feature = "redis-cluster")]
mod cluster;
#[cfg(feature = "redis-sentinel")]
mod sentinel;

use std::{fs, path::Path, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate::{Limit, Limiter, Quota, RedisStore, RedisStoreBuilder, StoreError, StoreErrorKind};

use crate::support::{RedisServer, free_port, skip};

/// What an attempt to connect may take, with much to spare on a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// Signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate for these names, and its key.
    fn sign(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let params = CertificateParams::new(names).expect("parameters");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

/// A server with a port for TLS beside its own.
struct Setup {
    server: RedisServer,
    authority: Authority,
    port: u16,
    _folder: TempDir,
}

impl Setup {
    /// Nothing, if the server was built without TLS.
    async fn new(clients: &str, names: &[&str]) -> Option<Self> {
        let (authority, folder) = begin().await?;
        let port = free_port();
        let options = options(&folder, &authority, port, names, clients);
        let server = RedisServer::start_with(&options.each_ref().map(String::as_str)).await;
        Some(Self { server, authority, port, _folder: folder })
    }

    fn builder(&self) -> RedisStoreBuilder {
        RedisStore::builder(format!("rediss://127.0.0.1:{}/", self.port))
            .deadline(Duration::from_secs(5))
            .connect_timeout(Duration::from_secs(5))
    }
}

/// An authority, and a folder for what it signs. Nothing, if servers were built without TLS.
async fn begin() -> Option<(Authority, TempDir)> {
    if !RedisServer::has_tls() {
        skip(&RedisServer::start().await, "it was built without TLS");
        return None;
    }
    let folder = TempDir::with_prefix("tollgate-tls-").expect("a folder");
    Some((Authority::new("the right one"), folder))
}

/// Servers with a port for TLS on each of these, and these options besides.
#[cfg(any(feature = "redis-cluster", feature = "redis-sentinel"))]
async fn servers(
    folder: &TempDir,
    authority: &Authority,
    ports: &[u16],
    more: &[&str],
) -> Vec<RedisServer> {
    let mut servers = Vec::new();
    for port in ports {
        let tls = options(folder, authority, *port, &["127.0.0.1"], "no");
        let all: Vec<&str> = tls.iter().map(String::as_str).chain(more.iter().copied()).collect();
        servers.push(RedisServer::start_with(&all).await);
    }
    servers
}

/// What a server is started with to have a port for TLS as well.
fn options(
    folder: &TempDir,
    authority: &Authority,
    port: u16,
    names: &[&str],
    clients: &str,
) -> [String; 10] {
    let (certificate, key) = authority.sign(names);
    let write = |name: &str, pem: &str| path(folder.path(), name, pem);
    [
        "--tls-port".to_owned(),
        port.to_string(),
        "--tls-ca-cert-file".to_owned(),
        write("ca.pem", &authority.pem),
        "--tls-cert-file".to_owned(),
        write("server.pem", &certificate),
        "--tls-key-file".to_owned(),
        write("server.key", &key),
        "--tls-auth-clients".to_owned(),
        clients.to_owned(),
    ]
}

fn path(folder: &Path, name: &str, pem: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, pem).expect("a file");
    path.to_str().expect("a path").to_owned()
}

async fn limits(store: RedisStoreBuilder) {
    let limiter = Limiter::new(store.connect().await.expect("a server"));
    let limit = Limit::new("all", Quota::per_hour(2));
    for allowed in [true, true, false] {
        let decision = limiter.check(&limit, "somebody").await.expect("an answer");
        assert_eq!(decision.is_allowed(), allowed);
    }
    limiter.reset(&limit, "somebody").await.expect("an answer");
}

/// The error of a store that connects now, and that of the first request of one that does not.
async fn refused(store: RedisStoreBuilder) -> StoreError {
    let connected = tokio::time::timeout(BOUND, store.clone().connect()).await;
    let error = connected.expect("no attempt hangs").expect_err("it is refused");
    println!("{error}");
    let lazy = Limiter::new(store.connect_lazy().expect("nothing is asked yet"));
    let first = lazy.check(&Limit::new("all", Quota::per_hour(1)), "somebody").await;
    let first = first.expect_err("it is refused");
    assert_eq!((first.kind(), first.to_string()), (error.kind(), error.to_string()));
    error
}

#[tokio::test]
async fn a_server_with_the_right_certificate_limits() {
    let Some(setup) = Setup::new("no", &["127.0.0.1", "localhost"]).await else { return };
    limits(setup.builder().root_certificate(&setup.authority.pem)).await;
    // One of several that are trusted.
    let both = Authority::new("another").pem + &setup.authority.pem;
    for scheme in ["rediss", "valkeys"] {
        let url = format!("{scheme}://localhost:{}/3", setup.port);
        let store = RedisStore::builder(url).deadline(Duration::from_secs(5));
        limits(store.root_certificate(&both)).await;
    }
}

#[tokio::test]
async fn a_server_whose_certificate_nobody_trusted_has_signed_is_refused() {
    let Some(setup) = Setup::new("no", &["127.0.0.1"]).await else { return };
    // With a name of its own, or with that of the right one, or none at all.
    let other = Authority::new("another").pem;
    let same = Authority::new("the right one").pem;
    for (store, part) in [
        (setup.builder().root_certificate(other), "UnknownIssuer"),
        (setup.builder().root_certificate(same), "BadSignature"),
        (setup.builder(), "UnknownIssuer"),
    ] {
        let error = refused(store).await;
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().contains("`root_certificate`"), "{error}");
    }
}

#[tokio::test]
async fn a_server_with_the_certificate_of_another_name_is_refused() {
    let Some(setup) = Setup::new("no", &["elsewhere.test"]).await else { return };
    let error = refused(setup.builder().root_certificate(&setup.authority.pem)).await;
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_wants_one_that_it_trusts() {
    let Some(setup) = Setup::new("yes", &["127.0.0.1"]).await else { return };
    let store = setup.builder().root_certificate(&setup.authority.pem);
    let (certificate, key) = setup.authority.sign(&[]);
    limits(store.clone().client_certificate(&certificate, key)).await;

    let error = refused(store.clone()).await;
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("`client_certificate`"), "{error}");

    let (certificate, key) = Authority::new("another").sign(&[]);
    let error = refused(store.client_certificate(certificate, key)).await;
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn a_url_without_tls_for_a_port_with_it_is_an_error_that_says_so() {
    let Some(setup) = Setup::new("no", &["127.0.0.1"]).await else { return };
    let error = refused(RedisStore::builder(format!("redis://127.0.0.1:{}/", setup.port))).await;
    assert!(error.to_string().contains("`rediss://`"), "{error}");
}

#[tokio::test]
async fn a_url_with_tls_for_a_port_without_it_is_an_error_that_says_so() {
    let server = RedisServer::start().await;
    let url = format!("rediss://127.0.0.1:{}/", server.port());
    let store = RedisStore::builder(url).deadline(Duration::from_secs(5));
    // It waits for the end of the first line.
    let error = refused(store.clone().connect_timeout(Duration::from_millis(300))).await;
    assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains("is TLS spoken there?"), "{error}");
}

#[tokio::test]
async fn a_server_that_answers_something_else_than_tls_is_a_misconfiguration() {
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("rediss://{}/", other.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = other.accept().await {
            _ = client.write_all(b"-ERR unknown command, with args beginning with:\r\n").await;
            tokio::spawn(async move { client.read_to_end(&mut Vec::new()).await });
        }
    });
    let error = refused(RedisStore::builder(url).deadline(Duration::from_secs(5))).await;
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("does not seem to speak TLS"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_frozen_or_restarted_delays_nobody_for_long() {
    let Some(mut setup) = Setup::new("no", &["127.0.0.1"]).await else { return };
    let deadline = Duration::from_millis(200);
    let store = setup.builder().root_certificate(&setup.authority.pem).deadline(deadline);
    let limiter = Limiter::builder(store.clone().connect().await.expect("a server"));
    let (limiter, limit) = (limiter.breaker(None).build(), Limit::new("all", Quota::per_hour(9)));
    setup.server.freeze();
    let error = limiter.check(&limit, "somebody").await.expect_err("nobody answers");
    assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
    let connecting = store.connect_timeout(Duration::from_millis(300)).connect();
    let error = tokio::time::timeout(BOUND, connecting).await.expect("no attempt hangs");
    assert_eq!(error.expect_err("nobody answers").kind(), StoreErrorKind::Timeout);
    setup.server.thaw();
    setup.server.restart().await;
    let answered = async {
        while limiter.check(&limit, "somebody").await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(BOUND, answered).await.expect("it recovers");
}

#[tokio::test]
async fn a_provider_that_the_process_has_installed_is_kept() {
    let provider = rustls::crypto::ring::default_provider();
    // Another test may have been faster.
    _ = provider.install_default();
    let installed = rustls::crypto::CryptoProvider::get_default().expect("a provider");
    let url = "rediss://127.0.0.1:9/";
    let store = RedisStore::builder(url).connect_lazy().expect("nothing is asked yet");
    let now = rustls::crypto::CryptoProvider::get_default().expect("a provider");
    assert!(std::sync::Arc::ptr_eq(installed, now));
    drop(store);
    let error = RedisStore::connect(url).await.expect_err("nobody listens");
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
}

#[test]
fn certificates_that_cannot_be_used_are_errors_that_say_which() {
    let authority = Authority::new("any");
    let (certificate, key) = authority.sign(&["localhost"]);
    let (_, other_key) = authority.sign(&["localhost"]);
    let broken = "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n";
    let unfinished = "-----BEGIN PRIVATE KEY-----\nhunter2\n";
    let store = || RedisStore::builder("rediss://127.0.0.1/");
    let cases = [
        (store().root_certificate("hunter2"), "root certificate"),
        (store().root_certificate(""), "root certificate"),
        (store().root_certificate(broken), "root certificate"),
        (store().root_certificate(&key), "root certificate"),
        (store().client_certificate("", &key), "client certificate"),
        (store().client_certificate(broken, &key), "client certificate"),
        (store().client_certificate(&certificate, ""), "key of the client certificate"),
        (store().client_certificate(&certificate, unfinished), "key of the client certificate"),
        (store().client_certificate(&certificate, &certificate), "key of the client certificate"),
        (store().client_certificate(&certificate, &other_key), "client certificate and its key"),
        (RedisStore::builder("redis://127.0.0.1/").root_certificate(&authority.pem), "`rediss://`"),
        (
            RedisStore::builder("unix:///run/x").client_certificate(&certificate, &key),
            "`rediss://`",
        ),
        (RedisStore::builder("rediss://127.0.0.1/#insecure"), "certificates are checked"),
    ];
    for (at, (store, part)) in cases.into_iter().enumerate() {
        let shown = format!("{store:?}");
        let error = store.connect_lazy().expect_err(part);
        println!("{error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains(part), "{at}: `{part}` is not in `{error}`");
        for secret in ["hunter2", "PRIVATE KEY", key.lines().nth(1).expect("a line")] {
            assert!(!format!("{shown} {error:?}").contains(secret), "{at}: {error:?}");
        }
    }
}
