//! How routes are written, and which of them take a method.

use std::collections::HashMap;

use http::Method;
use matchit::{InsertError, Router};

use crate::policy::PolicyError;

/// The methods that there are (IANA HTTP Method Registry), and `PURGE`, which caches know.
const METHODS: &str = "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL \
    LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH \
    POST PRI PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK \
    UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL";

pub(super) type Parsed<'a> = (&'a String, Vec<Method>, &'a str);

/// The places of the routes that take a method, or any: of one path, only those that come first, by
/// the method, by `GET` for `HEAD`, and without a method.
pub(super) fn by_rank(parsed: &[Parsed<'_>], method: Option<&Method>) -> Vec<usize> {
    let rank = |methods: &[Method]| match method {
        Some(method) if methods.contains(method) => Some(0),
        Some(&Method::HEAD) if methods.contains(&Method::GET) => Some(1),
        _ => methods.is_empty().then_some(2),
    };
    let mut best: HashMap<&str, u8> = HashMap::new();
    let mut ranked = Vec::new();
    for (at, (_, methods, path)) in parsed.iter().enumerate() {
        if let Some(rank) = rank(methods) {
            let first = best.entry(path).or_insert(rank);
            *first = rank.min(*first);
            ranked.push((at, rank, *path));
        }
    }
    let first = |(_, rank, path): &(usize, u8, &str)| best.get(path) == Some(rank);
    ranked.into_iter().filter(first).map(|(at, ..)| at).collect()
}

/// Methods, none of which stand for all, and a path.
pub(super) fn parse(route: &str) -> Result<(Vec<Method>, &str), PolicyError> {
    let fault = |what: &str| {
        PolicyError::new(format!(
            "the route `{route}` {what}: it must be a path such as `/users/{{id}}`, alone or behind \
             methods, as in `GET,POST /users`"
        ))
    };
    let (methods, path) = match route.rsplit_once(' ') {
        Some((methods, path)) => (methods.split(',').map(str::trim).collect(), path),
        None => (Vec::new(), route),
    };
    if !path.starts_with('/') {
        return Err(fault("has no path that begins with `/`"));
    }
    let old = |segment: &str| segment.starts_with([':', '*']);
    if let Some(segment) = path.split('/').find(|segment| old(segment)) {
        return Err(fault(&format!(
            "has the segment `{segment}`: a parameter is written as `{{name}}` or `{{*name}}`"
        )));
    }
    if path.contains(['?', '#']) {
        return Err(fault("has a path with `?` or `#`"));
    }
    let mut parsed = Vec::new();
    for text in methods {
        let capitals = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
        if capitals && !METHODS.split(' ').any(|known| known == text) {
            return Err(fault(&format!(
                "has the method `{text}`, which there is not (without any, a route takes them all)"
            )));
        }
        // `http` takes methods of any spelling, and tells them apart by it.
        let known = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        let method = text.parse::<Method>().ok().filter(|_| known && !text.is_empty());
        let method = method.ok_or_else(|| fault("has a method that is not in capital letters"))?;
        if parsed.contains(&method) {
            return Err(fault("names a method twice"));
        }
        parsed.push(method);
    }
    Ok((parsed, path))
}

pub(super) fn add(
    router: &mut Router<usize>,
    at: usize,
    route: &str,
    path: &str,
) -> Result<(), PolicyError> {
    router.insert(path, at).map_err(|error| {
        let what = match error {
            InsertError::Conflict { with } => format!("cannot be told from `{with}`"),
            InsertError::InvalidParamSegment => {
                "has a segment with more than one parameter, or with text beside it".to_owned()
            }
            InsertError::InvalidParam => "has a parameter without a name".to_owned(),
            InsertError::InvalidCatchAll => "has a `{*rest}` that is not at its end".to_owned(),
            other => format!("cannot be used: {other}"),
        };
        PolicyError::new(format!("the route `{route}` {what}"))
    })
}
