//! What the library has counted, as the exporter tells it. A layer could not count the same: what is
//! rejected without a decision does not say by which policy, and of nested limits only one is seen.

use std::collections::BTreeMap;

use serde::Serialize;

/// Requests of one policy, by outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Outcomes(BTreeMap<String, u64>);

impl Outcomes {
    /// What charts show: allowed, denied, failed open, failed closed.
    pub(super) fn series(&self) -> [u64; 4] {
        let sum = |names: &[&str]| names.iter().filter_map(|name| self.0.get(*name)).sum();
        [
            sum(&["allowed"]),
            sum(&["denied", "locked"]),
            sum(&["error_allowed"]),
            sum(&["error_denied"]),
        ]
    }
}

/// The counts of each policy in `text`, which is in the format of Prometheus. Names of policies and
/// outcomes have nothing in them that would be escaped.
pub(super) fn read(text: &str) -> BTreeMap<String, Outcomes> {
    let mut policies = BTreeMap::<String, Outcomes>::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("tollgate_requests_total{") else { continue };
        let Some((labels, count)) = rest.split_once("} ") else { continue };
        let label = |name: &str| {
            labels
                .split(',')
                .find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
        };
        if let (Some(policy), Some(outcome), Ok(count)) =
            (label("policy"), label("outcome"), count.parse())
        {
            policies.entry(policy.to_owned()).or_default().0.insert(outcome.to_owned(), count);
        }
    }
    policies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        let text = "# TYPE tollgate_requests_total counter\n\
                    tollgate_requests_total{policy=\"api\",outcome=\"allowed\"} 12\n\
                    tollgate_requests_total{outcome=\"denied\",policy=\"api\"} 3\n\
                    tollgate_requests_total{policy=\"api\",outcome=\"locked\"} 4\n\
                    tollgate_requests_total{policy=\"web\",outcome=\"error_denied\"} 5\n\
                    tollgate_requests_totals{policy=\"x\",outcome=\"allowed\"} 6\n";
        let policies = read(text);
        assert_eq!(policies.keys().collect::<Vec<_>>(), ["api", "web"]);
        assert_eq!(policies["api"].series(), [12, 7, 0, 0]);
        assert_eq!(policies["web"].series(), [0, 0, 0, 5]);
    }
}
