//! The page that is served where nothing else is.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, Uri},
};
use tollgate::{Decision, Outcome};

use crate::banner::reachable;

/// What the page knows of the gateway.
#[derive(Clone)]
pub(crate) struct Demo {
    /// Where the live page is.
    pub(crate) live: Arc<OnceLock<SocketAddr>>,
    /// Headers that API keys come in.
    pub(crate) keys: Arc<[HeaderName]>,
}

/// What may be in the name of a header whose value nobody else should see.
const SECRET: [&str; 8] =
    ["key", "token", "secret", "auth", "cookie", "pass", "session", "signature"];

/// Tells what is left, and what the page got: the decision and the headers.
pub(crate) async fn page(
    State(demo): State<Demo>,
    decision: Option<Extension<Decision>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<String, StatusCode> {
    if uri.path() == "/favicon.ico" {
        return Err(StatusCode::NOT_FOUND);
    }
    let decision = decision.map(|Extension(decision)| decision);
    let decision = decision.filter(|decision| decision.outcome() != Outcome::Skipped);
    let mut text = match decision.as_ref().map(Decision::binding) {
        None => "hello, no limit applies here\n".to_owned(),
        Some(Some(verdict)) => {
            let (left, of) = (verdict.standing().remaining(), verdict.quota().capacity());
            format!("hello, {left} of {of} requests left\n")
        }
        Some(None) => "hello, nobody counts: the limits cannot be checked right now\n".to_owned(),
    };
    // Writing to memory does not fail.
    if let Some(decision) = &decision {
        let _ = tell(&mut text, decision);
    }
    let _ = show(&mut text, &headers, &demo.keys);
    // Who may not reach the page need not know where it is.
    if let Some(admin) = demo.live.get().copied().filter(|admin| admin.ip().is_loopback()) {
        let _ = write!(text, "\nlive page  http://{}/\n", reachable(admin));
    }
    Ok(text)
}

fn tell(text: &mut String, decision: &Decision) -> std::fmt::Result {
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
    Ok(())
}

fn show(text: &mut String, headers: &HeaderMap, keys: &[HeaderName]) -> std::fmt::Result {
    writeln!(text, "\nheaders that came here")?;
    for (name, value) in headers {
        let secret = keys.contains(name) || SECRET.iter().any(|part| name.as_str().contains(part));
        let value =
            if secret { "(not shown)".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        writeln!(text, "  {name}: {value}")?;
    }
    Ok(())
}
