//! API keys that are known beforehand.

use http::{HeaderName, Request};
use tollgate::{
    ApiKeyLayer, ApiKeys, KeyExtractor, RequestHead, Tier, key, key::KnownKey, respond,
};

use super::{Inner, Lines, request, send};
use crate::support::field;

fn keys() -> ApiKeys {
    ApiKeys::builder()
        .key(ApiKeys::digest("acme one"), "acme", Tier::new("pro"))
        .key(ApiKeys::digest("acme-two"), "acme", Tier::new("pro"))
        .key(ApiKeys::digest("bob-key"), "bob", None)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_known_key_reaches_the_service_with_its_owner_and_tier() {
    let layer = ApiKeyLayer::new(keys());
    let inner = Inner::default();
    let cases = [
        ("acme one", "owner acme, tier pro"),
        (" acme-two\t", "owner acme, tier pro"),
        ("bob-key", "owner bob"),
    ];
    for (value, caller) in cases {
        let answer = send(&layer, &inner, request(&[("x-api-key", value)])).await;
        assert_eq!((answer.status.as_u16(), &*answer.body), (200, caller));
    }
    assert_eq!(inner.calls(), 3);
}

#[tokio::test]
async fn a_key_that_is_unknown_or_absent_is_turned_away() {
    let layer = ApiKeyLayer::new(keys());
    let inner = Inner::default();
    let digest = ApiKeys::digest("bob-key");
    let long = "k".repeat(100_000);
    for value in ["other", "Bob-Key", "bob-key2", "bob-ke", &digest, &long] {
        let answer = send(&layer, &inner, request(&[("x-api-key", value)])).await;
        assert_eq!((answer.status.as_u16(), answer.challenge()), (401, Some("ApiKey")));
        assert_eq!(answer.body, "the API key is not known");
        assert_eq!(field(&answer.headers, "cache-control"), Some("no-store"));
    }
    let absent: [Lines<'_>; 3] =
        [&[], &[("x-api-key", " ")], &[("authorization", "Bearer bob-key")]];
    for lines in absent {
        let answer = send(&layer, &inner, request(lines)).await;
        assert_eq!((answer.status.as_u16(), answer.challenge()), (401, Some("ApiKey")));
        assert_eq!(answer.body, "the request carries no API key");
    }
    assert_eq!(inner.calls(), 0);
}

#[tokio::test]
async fn a_key_that_is_sent_twice_is_a_bad_request() {
    let layers = [
        ApiKeyLayer::new(keys()),
        ApiKeyLayer::new(keys()).optional(),
        ApiKeyLayer::new(keys()).unknown_as_anonymous(),
    ];
    for layer in layers {
        let inner = Inner::default();
        let twice = request(&[("x-api-key", "bob-key"), ("x-api-key", "bob-key")]);
        assert_eq!(send(&layer, &inner, twice).await.status, 400);
        assert_eq!(inner.calls(), 0);
    }
}

#[tokio::test]
async fn a_key_may_be_optional_and_an_unknown_one_anonymous() {
    let optional = ApiKeyLayer::new(keys()).optional();
    let anonymous = ApiKeyLayer::new(keys()).unknown_as_anonymous();
    let cases: [(Lines<'_>, u16, u16); 3] = [
        (&[], 200, 200),
        (&[("x-api-key", "other")], 401, 200),
        (&[("x-api-key", "bob-key")], 200, 200),
    ];
    for (lines, first, second) in cases {
        let inner = Inner::default();
        let answers = [
            send(&optional, &inner, request(lines)).await,
            send(&anonymous, &inner, request(lines)).await,
        ];
        let statuses = answers.each_ref().map(|answer| answer.status.as_u16());
        assert_eq!(statuses, [first, second], "{lines:?}");
        let known = lines.first().is_some_and(|line| line.1 == "bob-key");
        assert_eq!(answers[1].body, if known { "owner bob" } else { "" });
    }
}

#[tokio::test]
async fn an_owner_whom_nobody_knows_is_removed() {
    let forged = |lines| {
        let mut request: Request<()> = request(lines);
        request.extensions_mut().insert(KnownKey::new("mallory"));
        request
    };
    let inner = Inner::default();
    for layer in
        [ApiKeyLayer::new(keys()).optional(), ApiKeyLayer::new(keys()).unknown_as_anonymous()]
    {
        assert_eq!(send(&layer, &inner, forged(&[])).await.body, "");
        let known = forged(&[("x-api-key", "bob-key")]);
        assert_eq!(send(&layer, &inner, known).await.body, "owner bob");
    }
    let anonymous = ApiKeyLayer::new(keys()).unknown_as_anonymous();
    assert_eq!(send(&anonymous, &inner, forged(&[("x-api-key", "other")])).await.body, "");
}

#[tokio::test]
async fn keys_come_in_the_header_that_is_named_or_as_a_bearer() {
    let inner = Inner::default();
    let header = ApiKeyLayer::new(keys()).header(HeaderName::from_static("x-token"));
    let answer = send(&header, &inner, request(&[("X-Token", "bob-key")])).await;
    assert_eq!(answer.body, "owner bob");
    let answer = send(&header, &inner, request(&[("x-api-key", "bob-key")])).await;
    assert_eq!(answer.status, 401);

    let bearer = ApiKeyLayer::new(keys()).bearer();
    let answer = send(&bearer, &inner, request(&[("authorization", "bearer  bob-key")])).await;
    assert_eq!(answer.body, "owner bob");
    let answer = send(&bearer, &inner, request(&[("authorization", "Bearer other")])).await;
    assert_eq!(answer.challenge(), Some("Bearer error=\"invalid_token\""));
    let answer = send(&bearer, &inner, request(&[("authorization", "Basic bob-key")])).await;
    assert_eq!((answer.status.as_u16(), answer.challenge()), (401, Some("Bearer")));
}

#[tokio::test]
async fn answers_come_as_problems() {
    let layer = ApiKeyLayer::new(keys()).respond(respond::Problem);
    let answer = send(&layer, &Inner::default(), request(&[])).await;
    assert_eq!(field(&answer.headers, "content-type"), Some("application/problem+json"));
}

#[test]
fn a_digest_is_the_same_in_each_version() {
    let digest = ApiKeys::digest("s3cret");
    assert_eq!(digest, "46228115385e42422f7eecf8d6cf07fab28f53730d6c07d199c95d1899898274");
    // Nothing in a store can be told by it: keys there are hashed otherwise.
    let key = tollgate::ApiKey::bearer().key("s3cret");
    assert!(!digest.contains(&key.as_str()["apikey:".len()..]));
}

#[test]
fn a_set_of_keys_that_cannot_be_meant_says_why_and_shows_no_secret() {
    let digest = ApiKeys::digest("bob-key");
    let error = |digest: &str, owner: &str| {
        let builder = ApiKeys::builder().key(ApiKeys::digest("bob-key"), "bob", None);
        builder.key(digest, owner.to_owned(), Tier::new("pro")).build().unwrap_err().to_string()
    };
    let no_digest = ["", "plain-secret", &digest[1..], &format!("{digest}0")];
    for text in no_digest.into_iter().chain([&*digest.replace(|_| true, "x"), &*"é".repeat(32)]) {
        let error = error(text, "acme");
        assert!(error.contains("\"acme\"") && error.contains(&text.len().to_string()), "{error}");
        assert!(text.is_empty() || !error.contains(text), "{error}");
    }
    for same in [digest.clone(), digest.to_uppercase()] {
        let error = error(&same, "acme");
        assert!(error.contains("\"acme\"") && error.contains("\"bob\""), "{error}");
    }
    let nobody = error(&ApiKeys::digest("other"), "");
    assert!(nobody.contains(&ApiKeys::digest("other")), "{nobody}");
}

#[test]
fn what_is_shown_has_owners_and_no_digests() {
    let shown = format!("{:?}", ApiKeyLayer::new(keys()));
    assert!(shown.contains("acme") && shown.contains("bob"), "{shown}");
    let raw = ApiKeys::digest("bob-key");
    assert!(!shown.contains(&raw[..8]), "{shown}");
    assert_eq!((keys().len(), keys().is_empty()), (3, false));
}

#[test]
fn all_keys_of_one_owner_count_together_and_nobody_counts_as_nobody() {
    let mut request = Request::new(());
    let known = key::known_key();
    let error = known.extract(RequestHead::new(&request)).unwrap_err();
    assert!(error.is_missing() && error.status() == 401);
    request.extensions_mut().insert(KnownKey::new(""));
    assert!(known.extract(RequestHead::new(&request)).unwrap_err().is_missing());
    request.extensions_mut().insert(KnownKey::new("acme"));
    let keys = known.extract(RequestHead::new(&request)).unwrap();
    assert_eq!(keys[0].as_str(), "owner:acme");
}
