//! Scripts of which pages may read the answers of a route.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer, ExposeHeaders};

use crate::config::{CorsConfig, CorsTable};

/// Outside of the limiter, so that browsers may read denials, and preflights are not counted.
/// `exposed` are the headers that the limiter writes.
pub(super) fn layer(config: &CorsConfig, exposed: Vec<HeaderName>) -> Result<CorsLayer, String> {
    let CorsConfig::Some(table) = config else {
        let layer = CorsLayer::new()
            .allow_origin(AllowOrigin::any())
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request());
        return Ok(layer.expose_headers(exposed));
    };
    some(table, exposed)
}

fn some(table: &CorsTable, mut exposed: Vec<HeaderName>) -> Result<CorsLayer, String> {
    let origins: Vec<HeaderValue> = each(&table.origins, "origin", |text| {
        let (scheme, host) = text.split_once("://")?;
        let plain = matches!(scheme, "http" | "https") && !host.is_empty() && !host.contains('/');
        // As browsers write it.
        (plain && *text == text.to_ascii_lowercase()).then(|| text.parse().ok()).flatten()
    })?;
    if origins.is_empty() {
        return Err("`origins` must name at least one, such as \"https://shop.example\"".to_owned());
    }
    let methods: Vec<Method> = each(&table.methods, "method", |text| {
        let capitals = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        text.parse().ok().filter(|_| capitals)
    })?;
    let headers: Vec<HeaderName> = each(&table.headers, "header", |text| text.parse().ok())?;
    exposed.extend(each(&table.expose, "header", |text| text.parse().ok())?);
    let mut layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_credentials(table.credentials)
        .expose_headers(ExposeHeaders::list(exposed))
        .allow_methods(match &methods[..] {
            [] => AllowMethods::mirror_request(),
            _ => AllowMethods::list(methods),
        })
        .allow_headers(match &headers[..] {
            [] => AllowHeaders::mirror_request(),
            _ => AllowHeaders::list(headers),
        });
    if let Some(age) = table.max_age {
        if age.0 > Duration::from_secs(86_400) {
            return Err("a `max_age` is at most 24h: browsers keep it no longer".to_owned());
        }
        layer = layer.max_age(age.0);
    }
    Ok(layer)
}

fn each<T>(
    texts: &[String],
    what: &str,
    read: impl Fn(&String) -> Option<T>,
) -> Result<Vec<T>, String> {
    let fault = |text: &str| match what {
        "origin" => format!(
            "{text:?} is no origin: a scheme and a host, in small letters and with nothing behind, such \
             as \"https://shop.example\""
        ),
        _ => format!("{text:?} is no {what}"),
    };
    texts.iter().map(|text| read(text).ok_or_else(|| fault(text))).collect()
}
