//! Addresses, and lists of callers.

use std::{fmt, sync::Arc};

use super::{
    error::Fault,
    extractors::{self, Extractors, Part, Parts},
    forms::KeyConfig,
    place::Path,
    shape::{CallersConfig, ClientIpConfig},
};
use crate::{key::ClientIp, policy::Callers};

/// Where the addresses of clients come from.
pub(super) fn client_ip(config: Option<&ClientIpConfig>, path: &Path) -> Result<ClientIp, Fault> {
    let Some(config) = config else { return Ok(ClientIp::peer()) };
    let mut client = match &config.header {
        Some(header) => behind_proxies(config, header, path)?,
        None => {
            let without = [
                ("trusted", !config.trusted.is_empty()),
                ("hops", config.hops.is_some()),
                ("reject_unknown", config.reject_unknown),
            ];
            if let Some((field, _)) = without.into_iter().find(|(_, given)| *given) {
                let what = "there must also be a `header`, in which proxies write addresses";
                return Err(Fault::new(path.field(field), what));
            }
            ClientIp::peer()
        }
    };
    if config.reject_unknown {
        client = client.reject_unknown();
    }
    if let Some(bits) = config.ipv4_prefix {
        let at = path.field("ipv4_prefix");
        client = client.ipv4_prefix(bits).map_err(|error| Fault::new(at, error.to_string()))?;
    }
    if let Some(bits) = config.ipv6_prefix {
        let at = path.field("ipv6_prefix");
        client = client.ipv6_prefix(bits).map_err(|error| Fault::new(at, error.to_string()))?;
    }
    Ok(client)
}

fn behind_proxies(config: &ClientIpConfig, header: &str, path: &Path) -> Result<ClientIp, Fault> {
    let at = path.field("header");
    let list = header.to_ascii_lowercase();
    let believing = |trusted: &[String]| match &*list {
        "x-forwarded-for" => ClientIp::x_forwarded_for(trusted),
        "forwarded" => ClientIp::forwarded(trusted),
        _ => ClientIp::header(header, trusted),
    };
    let Some(hops) = config.hops else {
        if config.trusted.is_empty() {
            let what =
                "without addresses of proxies in `trusted`, or `hops`, it would never be read";
            return Err(Fault::new(at, what));
        }
        for (at, proxy) in config.trusted.iter().enumerate() {
            // Of a header that is none, each would be said to be wrong.
            let checked = ClientIp::x_forwarded_for([proxy]);
            check_range(checked, proxy, path.field("trusted").item(at))?;
        }
        return believing(&config.trusted).map_err(|error| Fault::new(at, error.to_string()));
    };
    let at = path.field("hops");
    if !config.trusted.is_empty() {
        return Err(Fault::new(at, "there must be either `trusted` or `hops`"));
    }
    let client = match &*list {
        "x-forwarded-for" => ClientIp::x_forwarded_for_hops(hops),
        "forwarded" => ClientIp::forwarded_hops(hops),
        _ => {
            let what = "only `x-forwarded-for` and `forwarded` are lists, in which proxies count";
            return Err(Fault::new(at, what));
        }
    };
    client.map_err(|error| {
        let what = error.to_string();
        // Behind that stands what to write in Rust.
        Fault::new(at, what.split(';').next().unwrap_or_default())
    })
}

/// What a list of callers may name.
pub(super) struct Known<'c> {
    pub(super) extractors: &'c Extractors,
    pub(super) client: &'c ClientIp,
    /// All that the limits of the policy count by.
    pub(super) parts: &'c [Part],
}

impl Known<'_> {
    pub(super) fn callers(
        &self,
        config: &CallersConfig,
        path: &Path,
    ) -> Result<Vec<Callers>, Fault> {
        if config.addresses.is_empty() && config.keys.is_empty() {
            let what = "it names nobody: there must be `addresses` or `keys`";
            return Err(Fault::new(path.clone(), what));
        }
        let within = |ranges: &[String]| Callers::within(self.client.clone(), ranges);
        for (at, range) in config.addresses.iter().enumerate() {
            let path = path.field("addresses").item(at);
            check_range(within(std::slice::from_ref(range)), range, path)?;
        }
        let addresses = within(&config.addresses);
        let addresses = addresses.map_err(|error| Fault::new(path.clone(), error.to_string()))?;
        let parts = match &config.key {
            Some(key) => {
                let names = (self.extractors, self.client);
                let key = KeyConfig::One(key.clone());
                Parts::parse(&key, &path.field("key"), names)?.each().cloned().collect()
            }
            None => self.parts.to_vec(),
        };
        let mut keys = Vec::new();
        for (at, text) in config.keys.iter().enumerate() {
            let key = extractors::key(text, &parts, self.client);
            keys.push(key.map_err(|what| Fault::new(path.field("keys").item(at), what))?);
        }
        let mut callers = vec![addresses];
        for (at, part) in parts.iter().enumerate() {
            let again = parts[..at].iter().any(|other| other.text == part.text);
            if !keys.is_empty() && !again {
                callers.push(Callers::with_keys(Arc::clone(&part.extractor), keys.clone()));
            }
        }
        Ok(callers)
    }
}

fn check_range<T, E: fmt::Display>(
    checked: Result<T, E>,
    range: &str,
    path: Path,
) -> Result<(), Fault> {
    let Err(error) = checked else { return Ok(()) };
    let error = error.to_string();
    // The value stands before it.
    let what = error.strip_prefix(&format!("{range:?} ")).map(|what| format!("it {what}"));
    Err(Fault::new(path, what.unwrap_or(error)))
}
