//! What a new configuration changes, for the log.

use std::collections::{BTreeMap, BTreeSet};

use tollgate::config::Changes;
use toml::Spanned;

use super::Routes;
use crate::config::RouteConfig;

impl Routes {
    /// What is other than in `old`, by names; a list for each kind of thing.
    pub(crate) fn changes(&self, old: &Self) -> String {
        let mut lists = Vec::new();
        let policies = Changes::between(&old.policies(), &self.policies());
        if !policies.is_empty() {
            lists.push(format!("policies ({policies})"));
        }
        let (was, is) = (&old.config.file, &self.config.file);
        lists.extend(between("routes", &routes(&was.route), &routes(&is.route)));
        lists.extend(between("upstreams", &was.upstream, &is.upstream));
        lists.extend(between("tokens", &was.jwt, &is.jwt));
        lists.extend(between("API keys", &was.api_keys, &is.api_keys));
        for (what, same) in [
            ("client_ip", was.client_ip == is.client_ip),
            ("checks", was.checks == is.checks),
            ("log.requests", was.log.requests == is.log.requests),
        ] {
            lists.extend((!same).then(|| what.to_owned()));
        }
        if lists.is_empty() { "nothing".to_owned() } else { lists.join(", ") }
    }
}

/// Routes by what they match.
fn routes(all: &[Spanned<RouteConfig>]) -> BTreeMap<String, &RouteConfig> {
    let named = all.iter().map(Spanned::get_ref).map(|route| (name(route), route));
    named.collect()
}

/// What to call a route.
pub(super) fn name(route: &RouteConfig) -> String {
    let mut texts: Vec<&str> = route.matches.iter().map(|text| text.get_ref().as_str()).collect();
    if route.otherwise {
        texts.push("all others");
    }
    texts.join("; ")
}

fn between<T: PartialEq>(
    what: &str,
    was: &BTreeMap<String, T>,
    is: &BTreeMap<String, T>,
) -> Option<String> {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let changes: Vec<_> = names
        .into_iter()
        .filter_map(|name| match (was.get(name), is.get(name)) {
            (None, _) => Some(format!("added: {name}")),
            (_, None) => Some(format!("removed: {name}")),
            (was, is) => (was != is).then(|| format!("changed: {name}")),
        })
        .collect();
    (!changes.is_empty()).then(|| format!("{what} ({})", changes.join("; ")))
}
