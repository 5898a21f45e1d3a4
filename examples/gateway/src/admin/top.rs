//! Who is denied most, by the Space-Saving sketch: it keeps a fixed number of counters, and who is
//! denied more than the n-th part of all is among them.

use serde::Serialize;

/// Counters that are kept.
const KEPT: usize = 64;
/// How many of them are shown.
const SHOWN: usize = 10;

#[derive(Default)]
pub(super) struct Top(Vec<Entry>);

struct Entry {
    policy: Box<str>,
    limit: Box<str>,
    key: Box<str>,
    denied: u64,
    /// By how much that may be too many.
    over: u64,
}

/// One of those that are denied most, masked.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Shown {
    policy: String,
    limit: String,
    key: String,
    denied: u64,
    over: u64,
}

impl Top {
    pub(super) fn note(&mut self, policy: &str, limit: &str, key: &str) {
        let same = |entry: &&mut Entry| {
            *entry.key == *key && *entry.limit == *limit && *entry.policy == *policy
        };
        if let Some(entry) = self.0.iter_mut().find(same) {
            entry.denied += 1;
            return;
        }
        let mut entry = Entry {
            policy: policy.into(),
            limit: limit.into(),
            key: key.into(),
            denied: 1,
            over: 0,
        };
        if self.0.len() < KEPT {
            self.0.push(entry);
        } else if let Some(least) = self.0.iter_mut().min_by_key(|entry| entry.denied) {
            entry.over = least.denied;
            entry.denied += least.denied;
            *least = entry;
        }
    }

    pub(super) fn shown(&self) -> Vec<Shown> {
        let mut entries: Vec<&Entry> = self.0.iter().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.denied));
        let shown = entries.into_iter().take(SHOWN).map(|entry| Shown {
            policy: entry.policy.to_string(),
            limit: entry.limit.to_string(),
            key: mask(&entry.key),
            denied: entry.denied,
            over: entry.over,
        });
        shown.collect()
    }
}

/// A key, of which so much is shown that who knows it recognises it.
fn mask(key: &str) -> String {
    let parts = key.split(',').map(|part| match part.split_once(':') {
        Some(("global", _)) => part.to_owned(),
        Some(("ip", ip)) => format!("ip:{}", mask_ip(ip)),
        Some((kind, identity)) => format!("{kind}:{}", mask_text(identity)),
        None => mask_text(part),
    });
    parts.collect::<Vec<_>>().join(",")
}

fn mask_ip(ip: &str) -> String {
    let start = |separator| ip.match_indices(separator).nth(1).map(|(end, _)| &ip[..end]);
    match (start('.'), start(':')) {
        (Some(start), None) => format!("{start}.*.*"),
        (None, Some(start)) => format!("{start}:*"),
        _ => mask_text(ip),
    }
}

/// A quarter of it, and no more than four characters.
fn mask_text(text: &str) -> String {
    let shown = (text.len() / 4).min(4);
    let start: String = text.chars().take(shown).collect();
    format!("{start}***")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_masked() {
        for (key, masked) in [
            ("ip:192.0.2.7", "ip:192.0.*.*"),
            ("ip:10.0.0.0/8", "ip:10.0.*.*"),
            ("ip:2001:db8:0:1::/64", "ip:2001:db8:*"),
            ("ip:::1", "ip:::*"),
            ("id:bob", "id:***"),
            ("key:#0123456789abcdef", "key:#012***"),
            ("global:all", "global:all"),
            ("tenant:acme-inc,ip:192.0.2.7", "tenant:ac***,ip:192.0.*.*"),
        ] {
            assert_eq!(mask(key), masked);
        }
    }

    #[test]
    fn who_is_denied_often_is_among_them_whatever_else_comes() {
        let mut top = Top::default();
        for other in 0..10_000 {
            top.note("api", "requests", &format!("id:{other:08}"));
            // It comes when all counters are taken.
            if other >= 1_000 && other % 10 == 0 {
                top.note("api", "requests", "ip:192.0.2.7");
            }
        }
        assert_eq!(top.0.len(), KEPT);
        let shown = top.shown();
        assert_eq!((shown.len(), &*shown[0].key), (SHOWN, "ip:192.0.*.*"));
        let least = shown[0].denied - shown[0].over;
        assert!(shown[0].over > 0 && least <= 900 && 900 <= shown[0].denied, "{:?}", shown[0]);
    }
}
