//! A Redis Cluster of a test's own.

use std::{
    ffi::OsString,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use tokio::sync::Mutex;

use super::{RedisServer, resp::Reply};

const SLOTS: u16 = 16_384;
/// Within which a cluster comes to agree, whatever was done to it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Without full coverage, the others go on when a node fails.
const OPTIONS: [&str; 10] = [
    "--cluster-enabled",
    "yes",
    "--cluster-require-full-coverage",
    "no",
    "--cluster-node-timeout",
    "1000",
    "--repl-diskless-sync-delay",
    "0",
    "--repl-backlog-size",
    "1mb",
];

/// Servers on free loopback ports, the primaries first.
#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

/// A node, as another one sees it.
#[derive(Clone, Debug)]
struct Seen {
    id: String,
    flags: String,
    /// First and last.
    slots: Vec<(u16, u16)>,
}

impl Cluster {
    /// Three primaries and three replicas, which tests share that leave them as they found them.
    pub(crate) async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(cluster) = shared.upgrade() {
            return cluster;
        }
        let cluster = Arc::new(Self::start(3, 3).await);
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    /// Starts so many primaries, which share all slots, and replicas of them in turn.
    pub(crate) async fn start(primaries: usize, replicas: usize) -> Self {
        Self::start_each_in(primaries, replicas, |_| Vec::new()).await
    }

    /// The same, each node with variables of its own in its environment.
    pub(crate) async fn start_each_in(
        primaries: usize,
        replicas: usize,
        environment: impl Fn(usize) -> Vec<(&'static str, OsString)>,
    ) -> Self {
        let mut cluster = Self { nodes: Vec::new(), ids: Vec::new() };
        for at in 0..primaries + replicas {
            cluster.launch(environment(at)).await;
        }
        for at in 0..primaries {
            let bound = |at: usize| u16::try_from(usize::from(SLOTS) * at / primaries).unwrap();
            cluster.serve(at, bound(at)..bound(at + 1));
        }
        for at in 0..cluster.nodes.len() {
            let epoch = (at + 1).to_string();
            cluster.nodes[at].command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
        }
        for at in 1..cluster.nodes.len() {
            cluster.meet(at);
        }
        cluster.until("all know all", |cluster| cluster.all_know_all()).await;
        for at in primaries..primaries + replicas {
            cluster.nodes[at].command(&[
                "CLUSTER",
                "REPLICATE",
                &cluster.ids[(at - primaries) % primaries],
            ]);
        }
        cluster.settled().await;
        cluster
    }

    /// Starts one primary of all slots, with these variables in its environment.
    pub(crate) async fn start_in(environment: Vec<(&'static str, OsString)>) -> Self {
        let node = RedisServer::start_in(&OPTIONS, environment).await;
        let cluster = Self { ids: vec![node.command(&["CLUSTER", "MYID"])], nodes: vec![node] };
        cluster.serve(0, 0..SLOTS);
        cluster.settled().await;
        cluster
    }

    fn serve(&self, at: usize, slots: std::ops::Range<u16>) {
        let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
        let mut command = vec!["CLUSTER", "ADDSLOTS"];
        command.extend(slots.iter().map(String::as_str));
        self.nodes[at].command(&command);
    }

    async fn launch(&mut self, environment: Vec<(&'static str, OsString)>) -> usize {
        let node = RedisServer::start_in(&OPTIONS, environment).await;
        self.ids.push(node.command(&["CLUSTER", "MYID"]));
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn meet(&self, at: usize) {
        let port = self.nodes[at].port().to_string();
        self.nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
    }

    /// The URL of all nodes.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The URL of one node, as of a single server.
    pub(crate) fn url_of(&self, at: usize) -> String {
        self.nodes[at].url()
    }

    pub(crate) fn node(&self, at: usize) -> &RedisServer {
        &self.nodes[at]
    }

    /// The slot of a key, as the cluster has it.
    pub(crate) fn slot(&self, key: &str) -> u16 {
        let node = self.nodes.iter().find(|node| is_up(node)).expect("a node");
        node.command(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot")
    }

    /// Which node serves a slot, as the majority sees it.
    pub(crate) fn owner(&self, slot: u16) -> usize {
        let mut votes = vec![0; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| is_up(node)) {
            for seen in view(node) {
                let serves =
                    seen.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
                if let Some(at) = self.ids.iter().position(|id| serves && *id == seen.id) {
                    votes[at] += 1;
                }
            }
        }
        (0..votes.len()).max_by_key(|at| votes[*at]).expect("a node")
    }

    /// A key of this form whose slot that node serves.
    pub(crate) fn key_on(&self, at: usize, form: impl Fn(u32) -> String) -> String {
        (0..).map(form).find(|key| self.owner(self.slot(key)) == at).expect("there are many")
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.nodes[at].kill();
    }

    /// Starts a node that was killed, which comes back as what it was, or a replica.
    pub(crate) async fn revive(&mut self, at: usize) {
        self.nodes[at].restart().await;
    }

    /// Waits until another node serves that slot.
    pub(crate) async fn taken_over(&self, slot: u16, from: usize) -> usize {
        self.until("somebody takes over", |cluster| cluster.owner(slot) != from).await;
        self.owner(slot)
    }

    /// Has a replica take the place of its primary, which helps it to.
    pub(crate) async fn fail_over(&self, to: usize) {
        self.nodes[to].command(&["CLUSTER", "FAILOVER"]);
        self.until("the replica is a primary", |cluster| {
            view(&cluster.nodes[to]).iter().any(|seen| {
                seen.flags.contains("myself")
                    && seen.flags.contains("master")
                    && !seen.slots.is_empty()
            })
        })
        .await;
    }

    /// Begins to move a slot: keys that are not there any more are asked for at the other node.
    pub(crate) fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let (from_id, to_id) = (&self.ids[from], &self.ids[to]);
        self.nodes[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", from_id]);
        self.nodes[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", to_id]);
    }

    /// Moves a key of a slot that is on its way.
    pub(crate) fn move_key(&self, key: &str, from: usize, to: usize) {
        let port = self.nodes[to].port().to_string();
        self.nodes[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
    }

    /// Moves the rest of a slot that is on its way, and tells all primaries.
    pub(crate) fn end_move(&self, slot: u16, from: usize, to: usize) {
        let text = slot.to_string();
        loop {
            let keys = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &text, "100"]);
            if keys.is_empty() {
                break;
            }
            keys.lines().for_each(|key| self.move_key(key, from, to));
        }
        self.nodes[to].command(&["CLUSTER", "SETSLOT", &text, "NODE", &self.ids[to]]);
        for node in self.nodes.iter().filter(|node| is_up(node)) {
            // Replicas do not take it, and hear of it. Who gave its last slot away is one.
            _ = node.try_command(&["CLUSTER", "SETSLOT", &text, "NODE", &self.ids[to]]);
        }
    }

    /// Ends what was begun, as if nothing had been.
    pub(crate) fn call_off(&self, slot: u16, from: usize, to: usize) {
        for at in [from, to] {
            self.nodes[at].command(&["CLUSTER", "SETSLOT", &slot.to_string(), "STABLE"]);
        }
    }

    pub(crate) fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.end_move(slot, from, to);
    }

    /// Adds a primary without slots.
    pub(crate) async fn add(&mut self) -> usize {
        let at = self.launch(Vec::new()).await;
        self.meet(at);
        self.until("all know the new node", |cluster| cluster.all_know_all()).await;
        self.settled().await;
        at
    }

    /// Waits until all nodes that run agree that the cluster serves all slots, and replicas follow.
    pub(crate) async fn settled(&self) {
        self.until("all is well", |cluster| {
            cluster.nodes.iter().filter(|node| is_up(node)).all(|node| {
                let info = node.command(&["CLUSTER", "INFO"]);
                let replication = node.command(&["INFO", "replication"]);
                info.contains("cluster_state:ok")
                    && info.contains("cluster_slots_ok:16384")
                    && !replication.contains("master_link_status:down")
            }) && cluster.replicas_are_seen()
        })
        .await;
    }

    /// Whether primaries see all nodes that run in the part that they have.
    fn replicas_are_seen(&self) -> bool {
        let up: Vec<&RedisServer> = self.nodes.iter().filter(|node| is_up(node)).collect();
        up.iter().all(|node| {
            view(node).iter().all(|seen| {
                let at = self.ids.iter().position(|id| *id == seen.id);
                let Some(at) = at.filter(|at| is_up(&self.nodes[*at])) else { return true };
                let own = view(&self.nodes[at]);
                let own = own.iter().find(|own| own.flags.contains("myself")).expect("itself");
                own.flags.contains("master") == seen.flags.contains("master")
                    && !seen.flags.contains("fail")
                    && own.slots == seen.slots
            })
        })
    }

    fn all_know_all(&self) -> bool {
        self.nodes.iter().filter(|node| is_up(node)).all(|node| {
            let seen = view(node);
            seen.len() == self.nodes.len()
                && seen
                    .iter()
                    .all(|seen| !seen.flags.contains("handshake") && !seen.flags.contains("noaddr"))
        })
    }

    async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is(self) {
            assert!(begun.elapsed() < PATIENCE, "the cluster never got so far that {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Whether it runs, and is not frozen.
fn is_up(node: &RedisServer) -> bool {
    node.is_running()
}

fn view(node: &RedisServer) -> Vec<Seen> {
    let nodes: Reply = node.try_command(&["CLUSTER", "NODES"]);
    nodes.unwrap_or_default().lines().map(Seen::read).collect()
}

impl Seen {
    /// Reads `id address flags primary ping pong epoch state slots…`.
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        let slots = words.iter().skip(8).filter(|word| !word.starts_with('['));
        let slots = slots.map(|word| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            (first.parse().expect("a slot"), last.parse().expect("a slot"))
        });
        Self { id: words[0].to_owned(), flags: words[2].to_owned(), slots: slots.collect() }
    }
}
