//! A policy in one slot.

use std::collections::HashSet;

use http::Request;
use tollgate::{Key, Limit, Limiter, Policy, PolicyBuilder, Quota, RequestHead, Ruling, key};

use super::builder;
use crate::support::{Connection, cluster::Cluster};

const PRIMARIES: usize = 3;
const IDENTITIES: usize = 8;

fn key_of(at: usize) -> Key {
    Key::new(&format!("kind{at}"), "x")
}

/// A policy of two requests a day, whose limits count by different identities.
fn policy(name: &'static str) -> PolicyBuilder {
    (0..IDENTITIES).fold(Policy::new(name), |policy, at| {
        let limit = Limit::new(format!("l{at}"), Quota::per_day(2));
        policy.limit(key::from_fn(move |_| Some(key_of(at))), limit)
    })
}

/// What all primaries are asked, from now on.
struct Monitors(Vec<Connection>);

impl Monitors {
    fn start(cluster: &Cluster) -> Self {
        let start = |at| {
            let mut monitor = cluster.node(at).connection();
            assert_eq!(monitor.call(&["MONITOR"]).unwrap().as_deref(), Ok("OK"));
            monitor
        };
        Self((0..PRIMARIES).map(start).collect())
    }

    /// Calls of the script for keys that begin so, since the last time.
    fn calls(&mut self, cluster: &Cluster, start: &str) -> usize {
        let mut calls = 0;
        for (at, monitor) in self.0.iter_mut().enumerate() {
            let end = format!("the end {}", fastrand::u64(..));
            cluster.node(at).command(&["ECHO", &end]);
            loop {
                let line = monitor.receive().unwrap().unwrap();
                if line.contains(&end) {
                    break;
                }
                let script = line.to_lowercase().contains("\"evalsha\"");
                calls += usize::from(script && line.contains(&format!("\"{start}")));
            }
        }
        calls
    }
}

#[tokio::test]
async fn a_policy_in_one_slot_charges_all_identities_in_one_call_and_others_stay_spread() {
    let cluster = Cluster::shared().await;
    let prefix = format!("t{:x}", fastrand::u64(..));
    let store = builder(&cluster).prefix(&*prefix).connect().await.expect("a cluster");
    let limiter = Limiter::new(store);
    let together = policy("together").one_slot().build().unwrap();
    let spread = policy("spread").build().unwrap();
    // All scripts are there then.
    for at in 0..IDENTITIES {
        for policy in [&together, &spread] {
            let limit = policy.limit(&format!("l{at}")).unwrap();
            limiter.look(limit, key_of(at)).await.expect("an answer");
        }
    }
    let mut monitors = Monitors::start(&cluster);
    let mut calls = Vec::new();
    for policy in [&together, &spread] {
        for admitted in [true, true, false] {
            let request = Request::new(());
            let ruling = limiter.decide(policy, RequestHead::new(&request)).await;
            assert_eq!(matches!(ruling, Ruling::Admit(_)), admitted, "{ruling:?}");
            calls.push(monitors.calls(&cluster, &format!("{prefix}:")));
        }
        for at in 0..IDENTITIES {
            let limit = policy.limit(&format!("l{at}")).unwrap();
            let look = limiter.look(limit, key_of(at)).await.expect("an answer");
            assert_eq!(look.verdicts()[0].standing().remaining(), 0, "{at}");
        }
        monitors.calls(&cluster, &prefix);
    }
    assert_eq!(calls, [1, 1, 1, IDENTITIES, IDENTITIES, IDENTITIES]);

    let find = format!("{prefix}:*");
    let keys = (0..PRIMARIES).map(|at| cluster.node(at).command(&["KEYS", &find]));
    let keys: Vec<String> =
        keys.flat_map(|keys| keys.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let slots = |policy: &str| {
        let of_policy = keys.iter().filter(|key| key.contains(&format!(":{policy}/")));
        let slots: Vec<u16> = of_policy.map(|key| cluster.slot(key)).collect();
        (slots.len(), slots.iter().collect::<HashSet<_>>().len())
    };
    assert_eq!(slots("together"), (IDENTITIES, 1), "{keys:?}");
    assert_eq!(slots("spread"), (IDENTITIES, IDENTITIES), "{keys:?}");
}
