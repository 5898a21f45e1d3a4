//! Gateways whose limits are in a cluster, or under sentinels.

#![cfg(test)]

use crate::{
    port::free_port,
    support::{Gateway, Redis, eventually, run},
};

/// Two nodes, each with half of the slots.
fn cluster() -> ([Redis; 2], String) {
    let ports = [free_port(), free_port()];
    let nodes = ports.map(|port| Redis::start_with(port, &["--cluster-enabled", "yes"]));
    for (node, slots) in nodes.iter().zip(["0 8191", "8192 16383"]) {
        let (first, last) = slots.split_once(' ').expect("two");
        node.ask(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
    }
    nodes[1].ask(&["CLUSTER", "MEET", "127.0.0.1", &ports[0].to_string()]);
    for node in &nodes {
        eventually(|| node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
    }
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", ports[0], ports[1]);
    (nodes, url)
}

#[test]
fn gateways_share_limits_in_a_cluster() {
    let (_nodes, url) = cluster();
    let args = ["--limit", "5/h", "--redis", &url, "--trust", "127.0.0.1"];
    let gateways = [Gateway::start(&args), Gateway::start(&args)];
    // Of so many clients, each node has some.
    for client in 0..20 {
        let head = format!("GET / HTTP/1.1\r\nx-forwarded-for: 192.0.2.{client}\r\n");
        let statuses: Vec<u16> =
            (0..6).map(|request| gateways[request % 2].send(&head).status).collect();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429], "{client}");
    }
    assert_eq!(gateways[0].get("/readyz").status, 200);
}

#[test]
fn a_gateway_follows_what_sentinels_name() {
    let (port, sentinel) = (free_port(), free_port());
    let _redis = Redis::start_on(port);
    let text = format!("port {sentinel}\nsentinel monitor limits 127.0.0.1 {port} 1\n");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sentinel.conf");
    std::fs::write(&file, text).expect("it can be written");
    let _sentinel = Redis::sentinel(sentinel, &file);
    let url = format!("redis+sentinel://127.0.0.1:{sentinel}/limits");
    let gateway = Gateway::start(&["--limit", "2/h", "--redis", &url]);
    let statuses = [(); 3].map(|()| gateway.get("/").status);
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn wrong_urls_are_told() {
    for (url, expected) in
        [("redis+cluster://127.0.0.1:1/3", "--redis"), ("redis+sentinel://127.0.0.1:1", "--redis")]
    {
        let output = run(&["--redis", url]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}
