use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderValue, Response};

use super::{Respond, answer, grpc, message, status};
use crate::{decision::Decision, key::RequestHead, limiter::Rejection};

const JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const REDUCED_CAPACITY: &str =
    "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// Answers with problem details (RFC 9457), of the types that
/// draft-ietf-httpapi-ratelimit-headers-11 names. gRPC clients, told by their content type, are
/// answered in gRPC's way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Problem;

impl Respond for Problem {
    fn respond(&self, rejection: &Rejection, head: RequestHead<'_>) -> Response<Bytes> {
        if grpc::asks(head) {
            return grpc::answer(rejection);
        }
        answer(rejection, JSON, document(rejection).into())
    }
}

/// Nothing in it needs escaping: names of limits are plain, and messages are ours or an extractor's.
fn document(rejection: &Rejection) -> String {
    let status = status(rejection).as_u16();
    let kind = match rejection {
        Rejection::Limited(_) => QUOTA_EXCEEDED,
        Rejection::StoreFailed(_) => REDUCED_CAPACITY,
        Rejection::NoKey(_) | Rejection::Blocked => "about:blank",
    };
    let mut text = String::with_capacity(256);
    // Writing to memory does not fail.
    let _ = write!(text, r#"{{"type":"{kind}","status":{status},"title":""#);
    for char in message(rejection).chars() {
        match char {
            '"' | '\\' => text.extend(['\\', char]),
            control if control.is_control() => text.push(' '),
            plain => text.push(plain),
        }
    }
    text.push('"');
    let decided = match rejection {
        Rejection::Limited(decision) => Some(Some(decision)),
        // Both types have this member; nobody knows which limits would have been violated.
        Rejection::StoreFailed(_) => Some(None),
        Rejection::NoKey(_) | Rejection::Blocked => None,
    };
    if let Some(decision) = decided {
        text.push_str(r#","violated-policies":["#);
        let verdicts = decision.into_iter().flat_map(Decision::by_limit);
        let violated = verdicts.filter_map(|keys| keys.iter().find(|verdict| verdict.denies()));
        for (at, verdict) in violated.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, r#"{comma}"{}""#, verdict.name());
        }
        text.push(']');
    }
    text.push('}');
    text
}
