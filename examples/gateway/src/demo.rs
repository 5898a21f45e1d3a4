//! The page that is served where nothing else is.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Extension,
    extract::State,
    http::{
        HeaderMap, StatusCode, Uri,
        header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION},
    },
};
use tollgate::{Decision, Outcome};

use crate::banner::reachable;

/// Tells what is left, and what the page got: the decision and the headers.
pub(crate) async fn page(
    State(page): State<Arc<OnceLock<SocketAddr>>>,
    decision: Option<Extension<Decision>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<String, StatusCode> {
    if uri.path() == "/favicon.ico" {
        return Err(StatusCode::NOT_FOUND);
    }
    let decision = decision.map(|Extension(decision)| decision);
    let Some(decision) = decision.filter(|decision| decision.outcome() != Outcome::Skipped) else {
        return Ok("hello, no limit applies here\n".to_owned());
    };
    let mut text = match decision.binding() {
        Some(verdict) => {
            let (left, of) = (verdict.standing().remaining(), verdict.quota().capacity());
            format!("hello, {left} of {of} requests left\n")
        }
        None => "hello, nobody counts: the limits cannot be checked right now\n".to_owned(),
    };
    // Writing to memory does not fail.
    let _ = tell(&mut text, &decision, &headers);
    // Who may not reach the page need not know where it is.
    if let Some(admin) = page.get().copied().filter(|admin| admin.ip().is_loopback()) {
        let _ = write!(text, "\nlive page  http://{}/\n", reachable(admin));
    }
    Ok(text)
}

fn tell(text: &mut String, decision: &Decision, headers: &HeaderMap) -> std::fmt::Result {
    let (outcome, source) = (decision.outcome(), decision.source());
    writeln!(
        text,
        "\ndecision   {outcome:?} by policy \"{}\" (asked: {source:?})",
        decision.policy()
    )?;
    for verdict in decision.verdicts() {
        let standing = verdict.standing();
        let (left, of) = (standing.remaining(), verdict.quota().capacity());
        let back = standing.reset();
        writeln!(
            text,
            "  limit \"{}\": {left} of {of} left, all are back in {back:.1?}",
            verdict.name()
        )?;
    }
    writeln!(text, "\nheaders that came here")?;
    for (name, value) in headers {
        let secret = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name);
        let value =
            if secret { "(not shown)".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        writeln!(text, "  {name}: {value}")?;
    }
    Ok(())
}
