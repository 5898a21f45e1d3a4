//! Whom a limit counts.

#![allow(clippy::unwrap_used, reason = "only tests themselves are excused, not their helpers")]

mod forged;
mod identity;
mod ip;
mod secret;

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderValue, Request, StatusCode};
use tollgate::{
    ApiKey, Global, Header, Key, KeyError, KeyExtractor, Keys, PeerIp, RequestHead,
    key::{self, Or},
};

/// A request with these header lines.
fn request(lines: &[(&'static str, &[u8])]) -> Request<()> {
    let mut request = Request::new(());
    for (name, value) in lines {
        request.headers_mut().append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    request
}

fn extract(extractor: &impl KeyExtractor, request: &Request<()>) -> Result<Key, KeyError> {
    let keys = extractor.extract(RequestHead::new(request))?;
    assert_eq!(keys.len(), 1, "one key: {keys:?}");
    Ok(keys[0].clone())
}

fn text(extractor: &impl KeyExtractor, request: &Request<()>) -> String {
    extract(extractor, request).unwrap().as_str().into()
}

/// An extractor that always says the same.
struct Fixed(Result<Key, KeyError>);

impl KeyExtractor for Fixed {
    fn extract(&self, _: RequestHead<'_>) -> Result<Keys, KeyError> {
        self.0.clone().map(Into::into)
    }
}

const MISSING: KeyError = KeyError::missing("missing");
const INVALID: KeyError = KeyError::invalid("invalid");
const SETUP: KeyError = KeyError::setup("setup");

fn found(identity: &str) -> Fixed {
    Fixed(Ok(Key::from(identity)))
}

#[derive(Clone)]
struct Claims {
    iss: String,
    sub: String,
    org: u64,
}

fn authenticated(iss: &str, sub: &str) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(Claims { iss: iss.into(), sub: sub.into(), org: 7 });
    request
}

#[test]
fn a_head_hands_out_what_the_request_holds() {
    let mut request = request(&[("x-tenant", b" acme\t"), ("x-utf8", "jos\u{e9}".as_bytes())]);
    *request.method_mut() = http::Method::PUT;
    *request.uri_mut() = "/mail?page=2".parse().unwrap();
    request.extensions_mut().insert(7_u64);
    let check = |head: RequestHead<'_>| {
        assert_eq!(head.method(), "PUT");
        assert_eq!(head.uri().path(), "/mail");
        assert_eq!(head.headers().len(), 2);
        assert_eq!(head.extensions().get(), Some(&7_u64));
        assert_eq!(head.extension(), Some(&7_u64));
        assert_eq!(head.extension::<u8>(), None);
        assert_eq!(head.header("X-Tenant"), Some("acme"));
        assert_eq!(head.header("x-utf8"), Some("jos\u{e9}"));
    };
    check(RequestHead::new(&request));
    check(RequestHead::from_parts(&request.into_parts().0));
}

#[test]
fn text_outlives_the_view_of_the_request_it_came_from() {
    fn tenant(request: &Request<()>) -> Option<&str> {
        RequestHead::new(request).header("x-tenant")
    }
    assert_eq!(tenant(&request(&[("x-tenant", b"acme")])), Some("acme"));
}

#[test]
fn a_header_is_text_only_if_sent_once_and_readable() {
    let lines: [&[(&str, &[u8])]; 3] =
        [&[], &[("x-tenant", b"\xff")], &[("x-tenant", b"a"), ("x-tenant", b"a")]];
    for lines in lines {
        assert_eq!(RequestHead::new(&request(lines)).header("x-tenant"), None, "{lines:?}");
    }
}

#[test]
fn a_head_in_a_log_shows_no_secret() {
    let mut request = request(&[("authorization", b"Bearer hush"), ("x-api-key", b"hush")]);
    *request.uri_mut() = "/reset?token=hush".parse().unwrap();
    request.extensions_mut().insert("hush");
    let shown = format!("{:?}", RequestHead::new(&request));
    assert!(!shown.contains("hush"), "{shown}");
    assert!(shown.contains("authorization") && shown.contains("/reset"), "{shown}");
}

#[test]
fn closures_become_extractors_without_annotations() {
    let owned = key::from_fn(|head| head.header("x-tenant").map(str::to_ascii_lowercase));
    let number = key::from_fn(|head| head.extension::<u64>().copied());
    let whole = key::from_fn(|head| Some(Key::new("tenant", head.header("x-tenant")?)));
    let borrowed = key::from_borrowed(|head| head.header("x-tenant"));
    let path = key::from_borrowed(|head| Some(head.uri().path()));
    let claim = key::claim(|claims: &Claims| &claims.sub);

    let mut request = request(&[("x-tenant", b"Acme")]);
    request.extensions_mut().insert(7_u64);
    assert_eq!(text(&owned, &request), "id:acme");
    assert_eq!(text(&number, &request), "id:7");
    assert_eq!(text(&whole, &request), "tenant:Acme");
    assert_eq!(text(&borrowed, &request), "id:Acme");
    assert_eq!(text(&path, &request), "id:/");
    assert_eq!(text(&claim, &authenticated("a", "b")), "claim:b");
}

#[test]
fn extractors_are_erased_and_shared() {
    let boxed: Box<dyn KeyExtractor> = Box::new(Global);
    let shared: Arc<dyn KeyExtractor> = Arc::new(boxed);
    assert_eq!(text(&shared, &Request::new(())), "global:all");
}

type Case<'a> = (Box<dyn KeyExtractor>, &'a [&'a Request<()>], StatusCode);

#[test]
fn callers_without_a_credential_never_share_an_empty_key() {
    let nothing = Request::new(());
    let empty = request(&[("x-tenant", b"  "), ("authorization", b"Bearer ")]);
    let anonymous = authenticated("", "");
    let cases: [Case<'_>; 7] = [
        (
            Box::new(key::from_fn(|head| head.header("x-tenant").map(String::from))),
            &[&nothing, &empty],
            StatusCode::BAD_REQUEST,
        ),
        (
            Box::new(key::from_fn(|head| Some(Key::new("tenant", head.header("x-tenant")?)))),
            &[&nothing, &empty],
            StatusCode::BAD_REQUEST,
        ),
        (
            Box::new(key::from_borrowed(|head| head.header("x-tenant"))),
            &[&nothing, &empty],
            StatusCode::BAD_REQUEST,
        ),
        (Box::new(Header::from_static("x-tenant")), &[&nothing, &empty], StatusCode::BAD_REQUEST),
        (Box::new(ApiKey::header("x-tenant")), &[&nothing, &empty], StatusCode::UNAUTHORIZED),
        (Box::new(ApiKey::bearer()), &[&nothing, &empty], StatusCode::UNAUTHORIZED),
        (
            Box::new(key::claim(|claims: &Claims| &claims.sub)),
            &[&nothing, &anonymous],
            StatusCode::UNAUTHORIZED,
        ),
    ];
    for (index, (extractor, requests, status)) in cases.iter().enumerate() {
        for request in *requests {
            let error = extract(extractor, request).unwrap_err();
            assert!(error.is_missing(), "{index}: {error}");
            assert_eq!(error.status(), *status, "{index}: {error}");
        }
    }
}

#[test]
fn an_identity_that_ends_in_a_colon_is_not_empty() {
    for identity in [":", "a:", "::"] {
        let extractor = key::from_fn(move |_| Some(identity));
        assert_eq!(text(&extractor, &Request::new(())), format!("id:{identity}"));
    }
}

#[test]
fn claims_of_two_issuers_or_of_two_kinds_never_meet() {
    let caller = (
        key::claim(|claims: &Claims| &claims.iss).kind("issuer"),
        key::claim(|claims: &Claims| &claims.sub),
    );
    let keys = [("a", "b"), ("b", "a"), ("a", "c"), ("c", "b")]
        .map(|(iss, sub)| text(&caller, &authenticated(iss, sub)));
    assert_eq!(keys[0], "issuer:a,claim:b");
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "{key}");
    }

    let organisation = key::claim(|claims: &Claims| &claims.org).kind("organisation");
    assert_eq!(text(&organisation, &authenticated("a", "7")), "organisation:7");
    let subject = key::claim(|claims: &Claims| claims.sub.as_str());
    assert_eq!(text(&subject, &authenticated("a", "7")), "claim:7");
}

#[test]
fn only_a_missing_key_falls_through_to_the_other() {
    let nothing = Request::new(());
    assert_eq!(text(&found("first").or(found("second")), &nothing), "id:first");
    assert_eq!(text(&Fixed(Err(MISSING)).or(found("second")), &nothing), "id:second");
    assert_eq!(extract(&Fixed(Err(INVALID)).or(found("second")), &nothing), Err(INVALID));
    assert_eq!(extract(&Fixed(Err(SETUP)).or(found("second")), &nothing), Err(SETUP));
    assert_eq!(extract(&Or::new(Fixed(Err(MISSING)), Fixed(Err(SETUP))), &nothing), Err(SETUP));
}

#[test]
fn a_malformed_credential_does_not_choose_another_bucket() {
    let caller = ApiKey::bearer().or(PeerIp);
    let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
    let with_peer = |mut request: Request<()>| {
        request.extensions_mut().insert(peer);
        request
    };
    let basic = with_peer(request(&[("authorization", b"Basic czNjcmV0")]));
    assert_eq!(text(&caller, &basic), "ip:192.0.2.7");
    let twice = [("authorization", b"Bearer a".as_slice()), ("authorization", b"Bearer b")];
    let error = extract(&caller, &with_peer(request(&twice))).unwrap_err();
    assert!(!error.is_missing());
}

#[test]
fn tuples_count_every_combination_and_stop_at_the_first_error() {
    let nothing = Request::new(());
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| move || found(name));
    assert_eq!(text(&(a(), b()), &nothing), "id:a,id:b");
    assert_eq!(text(&(a(), b(), c()), &nothing), "id:a,id:b,id:c");
    assert_eq!(text(&(a(), b(), c(), d()), &nothing), "id:a,id:b,id:c,id:d");
    assert_eq!(extract(&(a(), Fixed(Err(MISSING))), &nothing), Err(MISSING));
    assert_eq!(extract(&(Fixed(Err(SETUP)), Fixed(Err(MISSING))), &nothing), Err(SETUP));
    assert_eq!(extract(&(a(), b(), c(), Fixed(Err(INVALID))), &nothing), Err(INVALID));
}

#[test]
fn everybody_shares_the_global_key() {
    let one = request(&[("x-api-key", b"a")]);
    assert_eq!(extract(&Global, &one), extract(&Global, &Request::new(())));
    assert_eq!(text(&Global, &one), "global:all");
}
