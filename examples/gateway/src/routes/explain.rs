//! What a request would meet.

use std::fmt::{self, Write as _};

use axum::{
    body::Body,
    http::{Method, Request},
};
use tollgate::{
    RequestHead,
    config::{KeyConfig, LimitConfig, OnFailureConfig, PolicyConfig, TierConfig},
};
use toml::Spanned;

use super::{Routes, changes::name};
use crate::{
    config::{CorsConfig, RouteConfig},
    proxy::target,
};

impl Routes {
    /// What the configuration is called.
    pub(crate) fn name(&self) -> &str {
        self.config.file_name().unwrap_or("the built-in configuration")
    }

    /// How much there is of what.
    pub(crate) fn summary(&self) -> String {
        let file = &self.config.file;
        let counts = [
            (file.route.len(), "route"),
            (file.policy.len(), "policy"),
            (file.upstream.len(), "upstream"),
            (file.jwt.len(), "issuer of tokens"),
            (file.api_keys.len(), "set of API keys"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
            let plural = match *what {
                "policy" => "policies".to_owned(),
                "issuer of tokens" => "issuers of tokens".to_owned(),
                "set of API keys" => "sets of API keys".to_owned(),
                _ => format!("{what}s"),
            };
            if *count == 1 { format!("1 {what}") } else { format!("{count} {plural}") }
        });
        counts.collect::<Vec<_>>().join(", ")
    }

    /// The route that a request takes, and what stands on it, from the outside in.
    pub(crate) fn explain(&self, method: &str, path: &str) -> Result<String, String> {
        if !path.starts_with('/') {
            return Err(format!("{path:?} is no path, such as /shops/acme"));
        }
        let method: Method =
            method.parse().map_err(|_| format!("{method:?} is no method, such as GET"))?;
        let request = Request::builder().method(method).uri(path).header("host", "gateway");
        let request = request.body(Body::empty());
        let request = request.map_err(|_| format!("{path:?} is no path, such as /shops/acme"))?;
        let mut text = String::new();
        // Writing to memory does not fail.
        let _ = self.tell(&mut text, &request);
        Ok(text)
    }

    fn tell(&self, out: &mut String, request: &Request<Body>) -> fmt::Result {
        if let Some(refusal) = target::refusal(request) {
            return writeln!(out, "refused     {}", refusal.told());
        }
        if self.checks.is_some() && matches!(request.uri().path(), "/healthz" | "/readyz") {
            return writeln!(out, "answered    by the gateway itself, without limits");
        }
        let taken = self.limits.routes.route_of(RequestHead::new(request));
        let mut routes = self.config.file.route.iter().map(Spanned::get_ref);
        let route = routes.find(|route| match taken {
            Some(text) => route.matches.iter().any(|own| own.get_ref() == text),
            None => route.otherwise,
        });
        let Some(route) = route else {
            return writeln!(
                out,
                "answered    404: no route takes it, and there is no `otherwise`"
            );
        };
        match taken {
            Some(text) => writeln!(out, "route       {text}")?,
            None => writeln!(out, "route       {}", name(route))?,
        }
        self.on_the_way(out, route)?;
        let upstream = route.upstream.get_ref();
        let url = &self.config.file.upstream[upstream].url;
        writeln!(out, "upstream    {upstream}, {}", url.get_ref())
    }

    fn on_the_way(&self, out: &mut String, route: &RouteConfig) -> fmt::Result {
        match &route.cors {
            Some(CorsConfig::Any) => writeln!(out, "cors        scripts of any page")?,
            Some(CorsConfig::Some(table)) => {
                writeln!(out, "cors        scripts of {}", table.origins.join(", "))?;
            }
            None => {}
        }
        if let Some(time) = &route.timeout {
            writeln!(out, "timeout     {:?}", time.get_ref().0)?;
        }
        if let Some(policy) = &route.before_auth {
            self.policy(out, policy.get_ref())?;
        }
        if let Some(auth) = &route.auth {
            let names = auth.get_ref().0.join(" or ");
            let or_none = if route.anonymous { ", or nothing" } else { "" };
            writeln!(out, "auth        {names}{or_none}")?;
        }
        match &route.policy {
            Some(policy) => self.policy(out, policy.get_ref()),
            None => writeln!(out, "policy      none: it is not limited"),
        }
    }

    fn policy(&self, out: &mut String, name: &str) -> fmt::Result {
        let mut policies = self.config.file.policy.iter().map(Spanned::get_ref);
        let Some(policy) = policies.find(|policy| policy.name == name) else { return Ok(()) };
        let one_slot = if policy.one_slot { ", in one slot" } else { "" };
        writeln!(out, "policy      {name}{}{one_slot}", on_failure(policy))?;
        policy.limits.iter().try_for_each(|limit| of_limit(out, limit))
    }
}

fn on_failure(policy: &PolicyConfig) -> String {
    match &policy.on_failure {
        None => String::new(),
        Some(OnFailureConfig::Always(how)) => format!(", on failure {how}"),
        Some(_) => ", on failure by its kind".to_owned(),
    }
}

fn of_limit(out: &mut String, limit: &LimitConfig) -> fmt::Result {
    let LimitConfig { name, quota, .. } = limit;
    let key = match &limit.key {
        KeyConfig::One(key) => key.clone(),
        KeyConfig::All(keys) => keys.join(" and "),
    };
    write!(out, "  limit     {name}: {quota} by {key}")?;
    if let Some(burst) = limit.burst {
        write!(out, ", {burst} at once")?;
    }
    if let Some(cost) = limit.cost {
        write!(out, ", each costs {cost}")?;
    }
    for (tier, own) in &limit.tiers {
        match own {
            TierConfig::Quota(quota) => write!(out, "; {tier}: {quota}")?,
            TierConfig::WithBurst(own) => write!(out, "; {tier}: {}", own.quota)?,
        }
    }
    if limit.shadow {
        write!(out, "; only watches")?;
    }
    writeln!(out)
}
