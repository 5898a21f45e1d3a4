//! What is printed at the start.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tollgate::config::{LimitConfig, OnFailureConfig, PolicyConfig};
use toml::Spanned;

use crate::{config::File, routes::Routes};

/// Tells what runs, and what to try.
pub(crate) fn text(routes: &Routes, listening: SocketAddr, admin: Option<SocketAddr>) -> String {
    let config = routes.config();
    let url = format!("http://{}/", reachable(listening));
    let counted = match &config.file.redis.url {
        Some(_) => "in Redis, shared by all gateways that use it".to_owned(),
        None => {
            "in memory, for this process alone; --redis redis://127.0.0.1/ shares it".to_owned()
        }
    };
    let admin = match admin {
        Some(admin) => format!("http://{}/, and /metrics there", reachable(admin)),
        None => "off".to_owned(),
    };
    let lines = match config.file_name() {
        Some(_) => of_file(routes),
        None => built_in(&config.file),
    };
    let attempts = match config.file_name() {
        Some(name) => format!("  tollgate-gateway --config {name} --explain GET /\n"),
        None => format!(
            "  for i in 1 2 3 4 5 6 7; do curl -i {url}; done\n  examples/gateway/try.sh {url}\n"
        ),
    };
    let hint = if config.file_name().is_some() {
        "The file is read again when it changes."
    } else {
        "The first answers say how many requests are left, a denial says how long to wait (Retry-After), and\n\
         the last two, the checks of health and readiness, are never limited. --print-config prints a file to\n\
         begin with, for routes, tokens and API keys, CORS and more."
    };
    format!(
        "\
tollgate-gateway listens on http://{listening}
{lines}  counted  {counted}
  admin    {admin}

Try, in another terminal:
  curl -i {url}
{attempts}  curl -i {url}healthz
  curl -i {url}readyz

{hint} Ctrl-C ends.
"
    )
}

fn of_file(routes: &Routes) -> String {
    format!("  serves   {}: {}\n", routes.name(), routes.summary())
}

/// The one policy of the configuration that is built in, and where requests go.
fn built_in(file: &File) -> String {
    let client = match &file.client_ip {
        Some(client) if !client.trusted.is_empty() => {
            format!("its X-Forwarded-For, as told by {}", client.trusted.join(", "))
        }
        _ => "the address that it connects from".to_owned(),
    };
    let policy = file.policy.first().map(Spanned::get_ref);
    let limit = policy.and_then(|policy| policy.limits.first()).map(limit).unwrap_or_default();
    let failing = match (&file.redis.url, policy) {
        (Some(_), Some(policy)) => {
            format!("  failing  while Redis does not answer, {}\n", on_failure(policy))
        }
        _ => String::new(),
    };
    let main = file.upstream.get("main");
    let serves = match main.map(|main| (main.url.get_ref().as_str(), main.max_body.as_ref())) {
        None | Some(("demo:", _)) => {
            "a demo page; --upstream http://127.0.0.1:9000 puts limits before a service".to_owned()
        }
        Some((url, None)) => format!("{url}; bodies of at most 100m"),
        Some((url, Some(size))) => format!("{url}; bodies of at most {} bytes", size.get_ref().0),
    };
    format!(
        "  limit    {limit} for each client, told apart by {client}\n{failing}  serves   {serves}\n"
    )
}

fn limit(limit: &LimitConfig) -> String {
    match limit.quota.split_once('/') {
        Some((quantity, period)) => format!("{quantity} requests per {period}"),
        None => limit.quota.clone(),
    }
}

fn on_failure(policy: &PolicyConfig) -> String {
    match &policy.on_failure {
        Some(OnFailureConfig::Always(how)) if how == "deny" => {
            "requests are answered 503".to_owned()
        }
        Some(OnFailureConfig::Always(how)) if how.starts_with("local") => {
            let share = how.strip_prefix("local:").unwrap_or("1");
            format!("they are limited in memory, with {share} of the limit")
        }
        _ => "requests pass uncounted".to_owned(),
    }
}

/// The address under which this machine reaches a listener, which may listen on all it has.
pub(crate) fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        given => given,
    };
    SocketAddr::new(ip, listening.port())
}
