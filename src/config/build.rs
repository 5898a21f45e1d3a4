//! Policies from their configuration.

use super::{
    callers::{self, client_ip},
    error::Fault,
    extractors::{Extractors, Part, Parts},
    forms::OnFailureConfig,
    limit::{Draft, plain},
    place::Path,
    shape::{Config, PolicyConfig},
    text,
};
use crate::{
    key::{ClientIp, Global},
    policy::{Limit, OnFailure, Policy, PolicyBuilder, PolicyError, PolicySet},
    quota::Quota,
};

pub(super) fn policies(config: &Config, extractors: &Extractors) -> Result<PolicySet, Fault> {
    let root = Path::default();
    for (at, policy) in config.policies.iter().enumerate() {
        let path = root.field("policy").item(at);
        let of_others = config.policies[..at].iter().any(|other| other.otherwise);
        if policy.otherwise && of_others {
            let what = "another policy is for the requests that no route takes";
            return Err(Fault::new(path.field("otherwise"), what));
        }
        if policy.routes.is_empty() && !policy.otherwise {
            let what = "no request takes it: it must have `routes`, or `otherwise = true`";
            return Err(Fault::new(path, what));
        }
    }
    by_route(config, &each(config, extractors)?)
}

/// The policies by themselves, in order.
pub(super) fn each(config: &Config, extractors: &Extractors) -> Result<Vec<Policy>, Fault> {
    let root = Path::default();
    let client = client_ip(config.client_ip.as_ref(), &root.field("client_ip"))?;
    if config.policies.is_empty() {
        // Also what is left of a file that is being written just now.
        return Err(Fault::new(root, "there is no policy; one begins with `[[policy]]`"));
    }
    let mut policies = Vec::new();
    for (at, policy) in config.policies.iter().enumerate() {
        let path = root.field("policy").item(at);
        if config.policies[..at].iter().any(|other| other.name == policy.name) {
            let what = "another policy has this name: they would share their buckets";
            return Err(Fault::new(path.field("name"), what));
        }
        // Where addresses come from is part of each policy.
        let origin = format!("{:?} {policy:?}", config.client_ip);
        let built = Making { config: policy, path, extractors, client: &client }.policy(origin)?;
        policies.push(built);
    }
    Ok(policies)
}

fn by_route(config: &Config, built: &[Policy]) -> Result<PolicySet, Fault> {
    let policies = || config.policies.iter().zip(built);
    let otherwise = policies().find(|(config, _)| config.otherwise).map(|(_, policy)| policy);
    let exempt = Path::default().field("exempt");
    let exempt = config.exempt.iter().enumerate().map(|(at, route)| (exempt.item(at), route, None));
    let limited = policies().enumerate().flat_map(|(at, (config, policy))| {
        let path = Path::default().field("policy").item(at).field("routes");
        let routes = config.routes.iter().enumerate();
        routes.map(move |(at, route)| (path.item(at), route, Some(policy)))
    });
    let routes: Vec<(Path, &String, Option<&Policy>)> = exempt.chain(limited).collect();
    let build = |count: usize| {
        let mut set = PolicySet::builder();
        for (_, route, policy) in &routes[..count] {
            set = match policy {
                Some(policy) => set.route(*route, Policy::clone(policy)),
                None => set.exempt(*route),
            };
        }
        if let Some(policy) = otherwise {
            set = set.otherwise(policy.clone());
        }
        set.build()
    };
    build(routes.len()).map_err(|error| {
        // The first route that cannot stand beside those before it.
        let counts: Vec<usize> = (0..=routes.len()).collect();
        let wrong = counts.partition_point(|count| build(*count).is_ok());
        let what = build(wrong).err().unwrap_or(error).to_string();
        match wrong.checked_sub(1).and_then(|last| routes.get(last)) {
            Some((path, route, _)) => {
                let named = format!("the route `{route}` ");
                Fault::new(path.clone(), what.strip_prefix(&named).unwrap_or(&what))
            }
            None => Fault::new(Path::default(), what),
        }
    })
}

/// A policy that is being made.
struct Making<'c> {
    config: &'c PolicyConfig,
    path: Path,
    extractors: &'c Extractors,
    client: &'c ClientIp,
}

impl Making<'_> {
    fn policy(&self, origin: String) -> Result<Policy, Fault> {
        let config = self.config;
        if config.limits.is_empty() {
            let what = "it has no limit; one begins with `[[policy.limit]]`";
            return Err(Fault::new(self.path.clone(), what));
        }
        let on_failure = self.on_failure()?;
        let mut policy = Policy::new(&*config.name).on_failure(on_failure).made_from(origin);
        if config.one_slot {
            policy = policy.one_slot();
        }
        if let Some(text) = &config.on_missing_key {
            let how = text::on_missing_key(text);
            policy = policy.on_missing_key(how.map_err(|what| self.fault("on_missing_key", what))?);
        }
        let mut parts: Vec<Part> = Vec::new();
        for (at, limit) in config.limits.iter().enumerate() {
            let path = self.path.field("limit").item(at);
            let named = path.field("name");
            let draft = Draft::new(limit, path, (self.extractors, self.client))?;
            draft.check(config, on_failure)?;
            if config.limits[..at].iter().any(|other| other.name == limit.name) {
                let what =
                    "another limit of the policy has this name: they would share their buckets";
                return Err(Fault::new(named, what));
            }
            self.has_params(&draft.parts, at)?;
            policy = policy.limit(draft.extractor(), draft.limit());
            parts.extend(draft.parts.each().cloned());
        }
        let known =
            callers::Known { extractors: self.extractors, client: self.client, parts: &parts };
        if let Some(allow) = &config.allow {
            let callers = known.callers(allow, &self.path.field("allow"))?;
            policy = callers.into_iter().fold(policy, PolicyBuilder::allow);
        }
        if let Some(deny) = &config.deny {
            let callers = known.callers(deny, &self.path.field("deny"))?;
            policy = callers.into_iter().fold(policy, PolicyBuilder::deny);
        }
        policy.build().map_err(|error| self.fault_of(&error))
    }

    fn on_failure(&self) -> Result<OnFailure, Fault> {
        let parse =
            |text: &str, path: Path| text::on_failure(text).map_err(|what| Fault::new(path, what));
        let at = self.path.field("on_failure");
        let on_failure = match &self.config.on_failure {
            None => OnFailure::default(),
            Some(OnFailureConfig::Always(text)) => parse(text, at.clone())?,
            Some(OnFailureConfig::ByKind(kinds)) => {
                let mut otherwise = OnFailure::default();
                let mut chosen = Vec::new();
                for (name, text) in kinds {
                    let at = at.field(name);
                    let how = parse(text, at.clone())?;
                    match &**name {
                        "otherwise" => otherwise = how,
                        _ => chosen
                            .push((text::kind(name).map_err(|what| Fault::new(at, what))?, how)),
                    }
                }
                OnFailure::by(|kind| {
                    chosen
                        .iter()
                        .find(|(other, _)| *other == kind)
                        .map_or(otherwise, |(_, how)| *how)
                })
            }
        };
        // What stands in the policy's own fields is told from what stands in its limits.
        let probe = |on_failure| {
            let limit = Limit::new("-probe-", Quota::per_second(1));
            Policy::new(&*self.config.name).limit(Global, limit).on_failure(on_failure).build()
        };
        probe(OnFailure::Allow).map_err(|error| self.fault("name", self.plain(&error)))?;
        probe(on_failure).map_err(|error| Fault::new(at, self.plain(&error)))?;
        Ok(on_failure)
    }

    /// A parameter of the path is there on each route, or requests would have no key.
    fn has_params(&self, parts: &Parts, limit: usize) -> Result<(), Fault> {
        for part in parts.each().filter(|part| part.kind.is_some()) {
            let Some(param) = part.text.strip_prefix("param:") else { continue };
            let has = |route: &&String| {
                route.contains(&format!("{{{param}}}")) || route.contains(&format!("{{*{param}}}"))
            };
            let without = self.config.routes.iter().find(|route| !has(route));
            let what = match without {
                Some(route) => format!("the route `{route}` has no `{{{param}}}`"),
                None if self.config.otherwise => {
                    format!("requests that no route takes, `otherwise`, have no `{{{param}}}`")
                }
                None => continue,
            };
            return Err(Fault::new(self.path.field("limit").item(limit).field("key"), what));
        }
        Ok(())
    }

    fn plain(&self, error: &PolicyError) -> String {
        plain(error, &self.config.name, "-probe-")
    }

    fn fault(&self, field: &str, what: impl Into<String>) -> Fault {
        Fault::new(self.path.field(field), what)
    }

    /// What no field by itself is the cause of.
    fn fault_of(&self, error: &PolicyError) -> Fault {
        let last = self.config.limits.len().saturating_sub(1);
        Fault::new(self.path.field("limit").item(last), self.plain(error))
    }
}
