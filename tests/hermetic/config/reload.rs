//! Files that change.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use tollgate::{
    Decision, Limiter, PolicyHandle, Quota, RequestHead, Ruling,
    config::{self, Changes, Extractors},
};

use super::world::{files, get, saying};
use crate::support::{limiter, secs};

const RELOADS: usize = 1_000;
const CALLERS: usize = 2;

/// The quantity of the limit that changes.
fn file(quantity: u64) -> String {
    format!(
        r#"
[[policy]]
name = "api"
routes = ["/"]

[[policy.limit]]
name = "steady"
key = "ip"
quota = "90000000/d"

[[policy.limit]]
name = "window"
key = "ip"
quota = "90000000/d"
algorithm = "fixed_window"

[[policy.limit]]
name = "changing"
key = "header:x-caller"
quota = "{quantity}/d"

[[policy]]
name = "other"
otherwise = true

[[policy.limit]]
name = "requests"
key = "ip"
quota = "1/d"
"#
    )
}

fn ask(limiter: &Limiter, policies: &PolicyHandle, caller: &str) -> Decision {
    let request = saying(get("/"), "x-caller", caller);
    let deciding = limiter.decide_by(&policies.load(), RequestHead::new(&request));
    match deciding.try_now().expect("memory answers at once") {
        Ruling::Admit(decision) => decision,
        Ruling::Reject(rejection) => panic!("a request failed: {rejection:?}"),
    }
}

fn remaining(decision: &Decision, limit: &str) -> u64 {
    let verdict = decision.verdicts().iter().find(|verdict| verdict.name() == limit).unwrap();
    verdict.standing().remaining()
}

#[test]
fn under_load_no_request_fails_and_what_did_not_change_goes_on_exactly() {
    let quantities = [40_000_000, 80_000_000];
    let [one, other] = quantities.map(file);
    let broken = other.replace("\"90000000/d\"", "\"90000000/x\"");
    let folder = files(&[("0.toml", &one), ("1.toml", &other), ("broken.toml", &broken)]);
    let (limiter, _clock) = limiter();
    let none = Extractors::new();
    let at = |name: &str| folder.path().join(name);
    let policies = PolicyHandle::new(config::from_file(at("0.toml"), &none).unwrap());

    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let decision = ask(&limiter, &policies, "load");
                    sent.fetch_add(1, Ordering::SeqCst);
                    // Each request is decided by one set of policies, whichever.
                    assert_eq!(decision.verdicts().len(), 3);
                    let quota = decision.verdicts()[2].quota();
                    assert!(quantities.contains(&quota.quantity()), "{quota}");
                }
            });
        }
        let stopper = Stopper(&stop);
        for turn in 0..RELOADS {
            // The first file, the second one, and one that is refused.
            match turn % 3 {
                2 => {
                    let error = config::reload(&policies, at("broken.toml"), &none).unwrap_err();
                    assert_eq!(error.line(), Some(9));
                }
                which => {
                    let changes = config::reload(&policies, at(&format!("{which}.toml")), &none);
                    let expected = if turn == 0 { "nothing" } else { "changed: api" };
                    assert_eq!(changes.unwrap().to_string(), expected, "turn {turn}");
                }
            }
            let decision = ask(&limiter, &policies, "after");
            sent.fetch_add(1, Ordering::SeqCst);
            let quantity = quantities[(turn % 3).min(1)];
            assert_eq!(decision.verdicts()[2].quota(), Quota::per_day(quantity), "turn {turn}");
        }
        drop(stopper);
    });

    let sent = sent.load(Ordering::SeqCst) + 1;
    let last = ask(&limiter, &policies, "after");
    for limit in ["steady", "window"] {
        assert_eq!(remaining(&last, limit), 90_000_000 - sent, "{limit}");
    }
    assert!(sent > RELOADS as u64);
}

/// Also where a check fails, so that no caller goes on for ever.
struct Stopper<'s>(&'s AtomicBool);

impl Drop for Stopper<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_changed_quota_applies_at_once_to_what_was_counted() {
    let folder = files(&[("a.toml", &file(4)), ("b.toml", &file(8))]);
    let (limiter, clock) = limiter();
    let none = Extractors::new();
    let policies =
        PolicyHandle::new(config::from_file(folder.path().join("a.toml"), &none).unwrap());
    // Half of it, whatever it is.
    ask(&limiter, &policies, "one");
    assert_eq!(remaining(&ask(&limiter, &policies, "one"), "changing"), 2);
    config::reload(&policies, folder.path().join("b.toml"), &none).unwrap();
    assert_eq!(remaining(&ask(&limiter, &policies, "one"), "changing"), 3);
    clock.advance(secs(86_400));
    assert_eq!(remaining(&ask(&limiter, &policies, "one"), "changing"), 7);
}

#[test]
fn a_bad_file_is_refused_and_the_policies_stay() {
    let folder = files(&[("limits.toml", &file(4))]);
    let path = folder.path().join("limits.toml");
    let none = Extractors::new();
    let policies = PolicyHandle::new(config::from_file(&path, &none).unwrap());
    let before = format!("{:?}", policies.load());
    for bad in ["", "policy = [", "[[policy]]\nname = \"api\"\n", "[client_ip]\n"] {
        fs::write(&path, bad).unwrap();
        let error = config::reload(&policies, &path, &none).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}, line ", path.display())), "{error}");
        assert_eq!(format!("{:?}", policies.load()), before);
    }
    fs::remove_file(&path).unwrap();
    let error = config::reload(&policies, &path, &none).unwrap_err();
    assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
    assert_eq!(format!("{:?}", policies.load()), before);
}

#[test]
fn what_changed_is_told_by_name() {
    let one = |name: &str, more: &str| {
        format!(
            "[[policy]]\nname = '{name}'\nroutes = ['/{name}']\n[[policy.limit]]\nname = 'a'\n\
             key = 'ip'\nquota = '5/m'\n{more}\n"
        )
    };
    let read = |texts: &[String]| config::from_toml(&texts.concat(), &Extractors::new()).unwrap();
    let old = read(&[one("a", ""), one("b", ""), one("c", "")]);
    let new = read(&[one("d", ""), one("c", "burst = 6"), one("a", "")]);
    let changes = Changes::between(&old, &new);
    assert_eq!(changes.to_string(), "added: d; removed: b; changed: c");
    assert_eq!((&*changes.added[0], changes.is_empty()), ("d", false));
    let same = Changes::between(&old, &read(&[one("c", "# the same"), one("b", ""), one("a", "")]));
    assert!(same.is_empty());
    assert_eq!(same.to_string(), "nothing");
    let together = one("a", "").replace("routes", "one_slot = true\nroutes");
    let together = Changes::between(&read(&[one("a", "")]), &read(&[together]));
    assert_eq!(together.to_string(), "changed: a");
    // Where addresses come from is a part of each policy.
    let moved = read(&["[client_ip]\nipv6_prefix = 48\n".into(), one("a", "")]);
    assert_eq!(Changes::between(&read(&[one("a", "")]), &moved).changed, ["a"]);
    // Of a policy that no text tells, nobody knows.
    let built = tollgate::Policy::new("a")
        .limit(tollgate::PeerIp, tollgate::Limit::new("a", Quota::per_minute(5)));
    let built = built.build().unwrap().into();
    assert_eq!(Changes::between(&built, &built).changed, ["a"]);
}
