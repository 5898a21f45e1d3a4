//! The policies, as the routes use them.

use tollgate::{
    Policy, PolicySet, PolicySetBuilder,
    config::{self, Extractors},
};
use toml::Spanned;

use crate::{
    config::{Config, FileError, RouteConfig, Text},
    proxy::target,
};

/// Which policies apply to which requests.
pub(super) struct Limits {
    /// At all routes, also at those without a policy.
    pub(super) routes: PolicySet,
    /// The same, of those that apply before authentication.
    pub(super) before_auth: PolicySet,
    /// Each policy, at a path of its own, for those who ask by name.
    pub(super) catalogue: PolicySet,
}

impl Limits {
    pub(super) fn build(config: &Config) -> Result<Self, FileError> {
        can_be_told_apart(config)?;
        let policies = policies(config)?;
        let named = |name: &Text| {
            let policy = policies.iter().find(|policy| policy.name() == name.get_ref());
            policy
                .ok_or_else(|| config.fault(name, no_such("policy", name.get_ref(), names(config))))
        };
        let set = |which: fn(&RouteConfig) -> Option<&Text>| {
            let mut set = PolicySet::builder();
            for route in config.file.route.iter().map(Spanned::get_ref) {
                let policy = which(route).map(named).transpose()?;
                set = route.matches.iter().fold(set, |set, text| at(set, text.get_ref(), policy));
                if let Some(policy) = policy.filter(|_| route.otherwise) {
                    set = set.otherwise(policy.clone());
                }
            }
            set.build().map_err(|error| config.fault_at(0..0, error.to_string()))
        };
        let routes = set(|route| route.policy.as_ref())?;
        let before_auth = set(|route| route.before_auth.as_ref())?;
        for (policy, said) in policies.iter().zip(&config.file.policy) {
            let name = policy.name();
            if routes.policy(name).is_none() && before_auth.policy(name).is_none() {
                return Err(config.fault(said, format!("policy `{name}`: no route names it")));
            }
        }
        let each = |set: PolicySetBuilder, policy: &Policy| {
            set.route(format!("/{}", policy.name()), policy.clone())
        };
        let catalogue = policies.iter().fold(PolicySet::builder(), each).build();
        let catalogue = catalogue.map_err(|error| config.fault_at(0..0, error.to_string()))?;
        Ok(Self { routes, before_auth, catalogue })
    }
}

fn at(set: PolicySetBuilder, route: &str, policy: Option<&Policy>) -> PolicySetBuilder {
    match policy {
        Some(policy) => set.route(route, policy.clone()),
        None => set.exempt(route),
    }
}

/// The policies of the file, each once.
fn policies(config: &Config) -> Result<Vec<Policy>, FileError> {
    let mut limits = config::Config::default();
    limits.client_ip.clone_from(&config.file.client_ip);
    for policy in &config.file.policy {
        let (policy, own) = (policy, policy.get_ref());
        if !own.routes.is_empty() || own.otherwise {
            let what = format!(
                "policy `{}`: its routes are the `[[route]]`s that name it, as their `policy`",
                own.name
            );
            return Err(config.fault(policy, what));
        }
        let mut own = own.clone();
        for route in config.file.route.iter().map(Spanned::get_ref) {
            let both = [&route.policy, &route.before_auth];
            if both.into_iter().flatten().any(|name| *name.get_ref() == own.name) {
                own.routes.extend(route.matches.iter().map(|text| text.get_ref().clone()));
                own.otherwise |= route.otherwise;
            }
        }
        limits.policies.push(own);
    }
    let any = !limits.policies.is_empty();
    if !any && limits.client_ip.is_some() {
        // So that what stands there is checked.
        let mut nobodys = config::PolicyConfig::default();
        nobodys.name = "-nobodys".to_owned();
        let mut limit = config::LimitConfig::default();
        (limit.name, limit.key, limit.quota) = ("-".to_owned(), "ip".into(), "1/s".to_owned());
        limits.policies.push(nobodys);
    }
    if limits.policies.is_empty() {
        return Ok(Vec::new());
    }
    limits.build_policies(&Extractors::new()).map_err(|error| config.fault_of(error))
}

/// Whether each request takes one route. What is wrong is found at the first that cannot be.
fn can_be_told_apart(config: &Config) -> Result<(), FileError> {
    if config.file.route.is_empty() {
        return Err(config.fault_at(0..0, "there is no route; one begins with `[[route]]`"));
    }
    let mut otherwise = false;
    for route in &config.file.route {
        let own = route.get_ref();
        if own.matches.is_empty() && !own.otherwise {
            let what = "no request takes this route: it must have a `match`, or `otherwise = true`";
            return Err(config.fault(route, what));
        }
        if own.otherwise && std::mem::replace(&mut otherwise, true) {
            return Err(config.fault(route, "another route is for all other requests"));
        }
    }
    for text in config.file.route.iter().flat_map(|route| &route.get_ref().matches) {
        can_be_met(config, text.get_ref()).map_err(|what| config.fault(text, what))?;
    }
    let texts: Vec<&Text> =
        config.file.route.iter().flat_map(|route| &route.get_ref().matches).collect();
    let build = |count: usize| {
        let texts = texts[..count].iter().map(|text| text.get_ref());
        texts.fold(PolicySet::builder(), PolicySetBuilder::exempt).build()
    };
    let Err(error) = build(texts.len()) else { return Ok(()) };
    let counts: Vec<usize> = (1..=texts.len()).collect();
    let first = counts.partition_point(|count| build(*count).is_ok());
    let what = build(first + 1).err().unwrap_or(error).to_string();
    Err(config.fault(texts[first], what))
}

/// Whether there are requests that get as far as to this route.
fn can_be_met(config: &Config, route: &str) -> Result<(), String> {
    let (methods, path) = route.rsplit_once(' ').unwrap_or(("", route));
    if methods.split(',').any(|method| matches!(method.trim(), "CONNECT" | "TRACE")) {
        return Err(format!(
            "no request takes the route `{route}`: this method is not served here"
        ));
    }
    if config.file.checks && matches!(path, "/healthz" | "/readyz") {
        return Err(format!(
            "no request takes the route `{route}`: the gateway answers it by itself; `checks = false` \
             leaves it to you"
        ));
    }
    match target::spelling(path) {
        Err(what) if path.starts_with('/') => {
            Err(format!("no request takes the route `{route}`, as such are refused: {what}"))
        }
        _ => Ok(()),
    }
}

fn names(config: &Config) -> impl Iterator<Item = &str> {
    config.file.policy.iter().map(|policy| &*policy.get_ref().name)
}

/// `there is no upstream "x"; there are "a", "b"`.
pub(super) fn no_such<'a>(what: &str, name: &str, there: impl Iterator<Item = &'a str>) -> String {
    let there: Vec<_> = there.map(|name| format!("{name:?}")).collect();
    match &there[..] {
        [] => format!("there is no {what} {name:?}, and no other"),
        _ => format!("there is no {what} {name:?}; there are: {}", there.join(", ")),
    }
}
