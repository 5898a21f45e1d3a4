//! Sentinels and servers that are reached by TLS, and talk so among each other.

use std::time::Duration;

use tempfile::TempDir;
use tollgate::{Limit, Limiter, Quota, RedisStore, RedisStoreBuilder, StoreErrorKind};

use super::{Authority, BOUND, begin, limits, refused, servers};
use crate::support::{
    RedisServer, free_port,
    sentinel::{NAME, Sentinel, until},
};

/// A primary and a replica, and three sentinels that watch them, all with a port for TLS beside their own.
struct Setup {
    servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
    sentinel_ports: Vec<u16>,
    authority: Authority,
    _folder: TempDir,
}

impl Setup {
    /// Nothing, if the server was built without TLS.
    async fn new() -> Option<Self> {
        let (authority, folder) = begin().await?;
        let ports = [free_port(), free_port()];
        let more = ["--tls-replication", "yes", "--repl-diskless-sync-delay", "0"];
        let servers = servers(&folder, &authority, &ports, &more).await;
        servers[1].command(&["REPLICAOF", "127.0.0.1", &ports[0].to_string()]);
        until("the replica follows", async || {
            servers[1].command(&["INFO", "replication"]).contains("master_link_status:up")
        })
        .await;
        let (mut sentinels, mut sentinel_ports) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (port, path) = (free_port(), folder.path().display());
            let settings = format!(
                "tls-port {port}\ntls-replication yes\ntls-auth-clients no\n\
                 tls-ca-cert-file {path}/ca.pem\ntls-cert-file {path}/server.pem\n\
                 tls-key-file {path}/server.key\n"
            );
            sentinels.push(Sentinel::start_with(ports[0], &settings).await);
            sentinel_ports.push(port);
        }
        until("the sentinels know each other", async || {
            sentinels.iter().all(|sentinel| {
                let told = sentinel.command(&["SENTINEL", "MASTER", NAME]).unwrap_or_default();
                told.contains("num-slaves\n1\n") && told.contains("num-other-sentinels\n2\n")
            })
        })
        .await;
        Some(Self { servers, sentinels, sentinel_ports, authority, _folder: folder })
    }
}

fn to(scheme: &str, ports: &[u16]) -> RedisStoreBuilder {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let patient = Duration::from_secs(5);
    RedisStore::builder(format!("{scheme}://{}/{NAME}", hosts.join(",")))
        .deadline(patient)
        .connect_timeout(patient)
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_and_the_primaries_that_they_name_are_reached_by_tls() {
    let Some(mut setup) = Setup::new().await else { return };
    let store = |root: &str| to("rediss+sentinel", &setup.sentinel_ports).root_certificate(root);
    limits(store(&setup.authority.pem)).await;

    let error = refused(store(&Authority::new("another").pem)).await;
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("`root_certificate`"), "{error}");
    let named = |port: &u16| error.to_string().contains(&format!(": 127.0.0.1:{port}: "));
    assert!(setup.sentinel_ports.iter().any(named), "{error}");
    assert_eq!(error.to_string().matches("misconfigured").count(), 1, "{error}");

    // The next primary.
    let store = store(&setup.authority.pem).connect().await.expect("a primary");
    let limiter = Limiter::builder(store).breaker(None).build();
    let limit = Limit::new("all", Quota::per_day(1_000));
    limiter.check(&limit, "somebody").await.expect("an answer");
    setup.servers[0].kill();
    until("the replica is asked", async || {
        let asked = tokio::time::timeout(BOUND, limiter.check(&limit, "somebody")).await;
        asked.expect("no request hangs").is_ok()
    })
    .await;
    assert!(setup.servers[1].command(&["ROLE"]).starts_with("master"));
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_with_and_without_tls_for_the_other_port_are_errors_that_say_so() {
    let Some(setup) = Setup::new().await else { return };
    let error = refused(to("redis+sentinel", &setup.sentinel_ports[..1])).await;
    assert!(error.to_string().contains("begins with `rediss`"), "{error}");
    let place = format!(": 127.0.0.1:{}: ", setup.sentinel_ports[0]);
    assert!(error.to_string().contains(&place), "{error}");
    let plain: Vec<u16> = setup.sentinels.iter().map(|sentinel| sentinel.port).collect();
    let error = refused(to("rediss+sentinel", &plain[..1])).await;
    assert!(error.to_string().contains("is TLS spoken there?"), "{error}");
    assert!(error.to_string().contains(&format!(": 127.0.0.1:{}: ", plain[0])), "{error}");
}
