//! A cluster whose nodes are reached by TLS, and talk so among each other.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, TcpListener},
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tollgate::{
    Algorithm, Quota, RedisStore, RedisStoreBuilder, Standing, Store as _, StoreErrorKind,
    store::Hit,
};

use super::{Authority, BOUND, begin, refused, servers};
use crate::support::{RedisServer, free_port};

const SLOTS: u16 = 16_384;

/// Three primaries, each with a port for TLS beside its own.
struct Nodes {
    servers: Vec<RedisServer>,
    ports: Vec<u16>,
    ids: Vec<String>,
    authority: Authority,
    _folder: TempDir,
}

impl Nodes {
    /// Nothing, if the server was built without TLS.
    async fn start() -> Option<Self> {
        let (authority, folder) = begin().await?;
        let ports: Vec<u16> = (0..3).map(|_| port_of_node()).collect();
        let more = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
        let more = [&more[..], &["--cluster-require-full-coverage", "no"]].concat();
        let servers = servers(&folder, &authority, &ports, &more).await;
        for (at, server) in servers.iter().enumerate() {
            let bound = |at: usize| u16::try_from(usize::from(SLOTS) * at / 3).unwrap();
            let slots: Vec<String> = (bound(at)..bound(at + 1)).map(|it| it.to_string()).collect();
            let mut command = vec!["CLUSTER", "ADDSLOTS"];
            command.extend(slots.iter().map(String::as_str));
            server.command(&command);
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
            servers[0].command(&["CLUSTER", "MEET", "127.0.0.1", &ports[at].to_string()]);
        }
        let ids = servers.iter().map(|server| server.command(&["CLUSTER", "MYID"])).collect();
        let nodes = Self { servers, ports, ids, authority, _folder: folder };
        nodes.settled().await;
        Some(nodes)
    }

    async fn settled(&self) {
        let well = |server: &RedisServer| {
            let info = server.command(&["CLUSTER", "INFO"]);
            ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"]
                .iter()
                .all(|line| info.contains(line))
        };
        let waiting = async {
            while !self.servers.iter().all(well) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(BOUND, waiting).await.expect("the nodes agree");
    }

    /// A key of a slot that this node serves at first, and the slot.
    fn key_on(&self, at: usize) -> (String, String) {
        let found = (0..).map(|key| format!("{{k{key}}}:x")).find_map(|key| {
            let slot = self.servers[0].command(&["CLUSTER", "KEYSLOT", &key]);
            let number: usize = slot.parse().expect("a slot");
            (number * 3 / usize::from(SLOTS) == at).then_some((key, slot))
        });
        found.expect("there are many")
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.ports[0])
    }

    fn builder(&self) -> RedisStoreBuilder {
        to(&self.url("rediss+cluster")).root_certificate(&self.authority.pem)
    }
}

/// A port whose fellow for the cluster's own talk, 10,000 above it, is free as well, and none of those that
/// systems give to outgoing connections.
fn port_of_node() -> u16 {
    loop {
        let port = free_port();
        if port < 22_000 && TcpListener::bind((Ipv4Addr::LOCALHOST, port + 10_000)).is_ok() {
            return port;
        }
    }
}

fn to(url: &str) -> RedisStoreBuilder {
    let patient = Duration::from_secs(10);
    RedisStore::builder(url).deadline(patient).connect_timeout(patient)
}

/// How many units are left of this key when one was taken.
async fn takes(store: &RedisStore, key: &str) -> u64 {
    let meter = Algorithm::TokenBucket.meter(Quota::per_day(1_000));
    let reply = store.acquire(&[Hit::new(key.as_bytes(), meter, 1)]);
    let answer = timeout(BOUND, reply).await.expect("no hang").expect("an answer");
    assert!(answer.standings.iter().all(Standing::fits));
    answer.standings[0].remaining()
}

#[tokio::test]
async fn all_nodes_are_reached_by_tls_and_redirections_followed() {
    let Some(nodes) = Nodes::start().await else { return };
    let store = nodes.builder().connect().await.expect("a cluster");
    let keys = [0, 1, 2].map(|at| nodes.key_on(at));
    let mut places = HashSet::new();
    for (key, _) in &keys {
        assert_eq!(takes(&store, key).await, 999);
        let part = store.shard(key.as_bytes());
        places.insert(store.shard_name(part).expect("a node").into_owned());
    }
    assert_eq!(places, nodes.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect());

    // `ASK`: what is not there any more is asked for at the other node.
    let (key, slot) = &keys[0];
    let (from, to) = (&nodes.servers[0], &nodes.servers[1]);
    to.command(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &nodes.ids[0]]);
    from.command(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &nodes.ids[1]]);
    let (port, name) = (nodes.ports[1].to_string(), format!("tg1:{key}"));
    from.command(&["MIGRATE", "127.0.0.1", &port, &name, "0", "5000"]);
    let before = store.shard(key.as_bytes());
    assert_eq!(takes(&store, key).await, 998);
    assert_eq!(store.shard(key.as_bytes()), before);

    // `MOVED`.
    for server in [to, from] {
        server.command(&["CLUSTER", "SETSLOT", slot, "NODE", &nodes.ids[1]]);
    }
    assert_eq!(takes(&store, key).await, 997);
    assert_ne!(store.shard(key.as_bytes()), before);
}

#[tokio::test]
async fn nodes_whose_certificate_nobody_trusted_has_signed_are_refused() {
    let Some(nodes) = Nodes::start().await else { return };
    let url = nodes.url("rediss+cluster");
    for store in [to(&url), to(&url).root_certificate(Authority::new("another").pem)] {
        let error = refused(store).await;
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        let place = format!("misconfigured: 127.0.0.1:{}: ", nodes.ports[0]);
        assert!(error.to_string().starts_with(&place), "{error}");
        assert!(error.to_string().contains("`root_certificate`"), "{error}");
    }
}

#[tokio::test]
async fn urls_with_and_without_tls_for_the_other_port_are_errors_that_say_so() {
    let Some(nodes) = Nodes::start().await else { return };
    let error = refused(to(&nodes.url("redis+cluster"))).await;
    assert!(error.to_string().contains("begins with `rediss`"), "{error}");
    let url = format!("rediss+cluster://127.0.0.1:{}", nodes.servers[0].port());
    // It waits for the end of the first line.
    let error = refused(to(&url).connect_timeout(Duration::from_millis(300))).await;
    assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains("is TLS spoken there?"), "{error}");
}
