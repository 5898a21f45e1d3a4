//! The forms of arguments. What is checked here stays a text, for the configuration to read.

use std::{error::Error, fmt, net::SocketAddr, str::FromStr, time::Duration};

use tollgate::{ClientIp, Quota, key::TrustError};

use crate::{admin::Place, config::whole};

pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "it must be an address and a port, such as 127.0.0.1:8080 or [::]:80")
}

pub(super) fn quota(text: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    const FORM: &str = "it must be a number of requests, a slash, and a period in s, m, h or d, \
                        such as 5/10s or 100/m";
    let (quantity, period) = text.split_once('/').ok_or(FORM)?;
    let digits = period.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &period[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(FORM.into()),
    };
    let count = if digits.is_empty() { 1 } else { whole(digits).ok_or(FORM)? };
    // A number that has no place here is far out of the quota's bounds, which the message names.
    let period = Duration::from_secs(count.saturating_mul(unit));
    Quota::new(whole(quantity).ok_or(FORM)?, period)?;
    Ok(text.to_owned())
}

pub(super) fn proxy(text: &str) -> Result<String, TrustError> {
    ClientIp::x_forwarded_for([text]).map(|_| text.to_owned())
}

pub(super) fn on_failure(text: &str) -> Result<String, String> {
    const FORM: &str = "it must be allow, deny, local, or local: and a share, such as local:0.25";
    match text.strip_prefix("local:").map(str::parse::<f64>) {
        None if matches!(text, "allow" | "deny" | "local") => {}
        Some(Ok(share)) if share > 0.0 && share <= 1.0 => {}
        Some(Ok(share)) => {
            return Err(format!("a local share of {share} must be more than 0, and at most 1"));
        }
        _ => return Err(FORM.to_owned()),
    }
    Ok(text.to_owned())
}

pub(super) fn place(text: &str) -> Result<String, &'static str> {
    Place::parse(text).map(|_| text.to_owned())
}

/// What reads as a `T`.
pub(super) fn same<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|_| text.to_owned()).map_err(|what| what.to_string())
}
