//! Headers, and the secrets that come in them.

use tollgate::{ApiKey, Header, Key, KeyError, KeyExtractor};

use super::{extract, request, text};

#[test]
fn a_header_is_counted_under_its_own_kind() {
    let both = request(&[("x-tenant", b" acme "), ("x-user", b"acme")]);
    assert_eq!(text(&Header::new("X-Tenant").unwrap(), &both), "header.x-tenant:acme");
    assert_eq!(text(&Header::from_static("x-user"), &both), "header.x-user:acme");
}

#[test]
fn headers_with_odd_names_keep_kinds_of_their_own() {
    let both = request(&[("x-a!", b"1"), ("x-a*", b"1")]);
    let [one, other] = ["x-a!", "x-a*"].map(|name| text(&Header::new(name).unwrap(), &both));
    assert_ne!(one, other);
}

#[test]
fn a_header_that_could_mean_two_callers_is_refused() {
    let header = Header::from_static("x-tenant");
    for lines in [
        [("x-tenant", b"a".as_slice()), ("x-tenant", b"b")],
        [("x-tenant", b"a"), ("x-tenant", b"a")],
        [("x-tenant", b"a"), ("x-tenant", b"")],
        [("x-tenant", b"\xff"), ("x-other", b"")],
    ] {
        let error = extract(&header, &request(&lines)).unwrap_err();
        assert!(!error.is_missing() && !error.is_setup(), "{lines:?}: {error}");
    }
}

#[test]
fn a_name_that_is_none_is_refused_where_it_is_written() {
    for name in ["", "x tenant", "x-tenant:", "x-t\u{e9}nant"] {
        assert!(Header::new(name).is_err(), "{name}");
        assert!(ApiKey::try_header(name).is_err(), "{name}");
    }
    assert!(ApiKey::try_header("X-Api-Key").is_ok());
}

#[test]
#[should_panic = "\"x api key\""]
fn a_literal_that_is_no_header_name_panics_with_its_value() {
    let _ = ApiKey::header("x api key");
}

fn bearer(value: &[u8]) -> Result<Key, KeyError> {
    extract(&ApiKey::bearer(), &request(&[("authorization", value)]))
}

#[test]
fn spelling_and_spacing_of_the_scheme_make_no_new_bucket() {
    let key = bearer(b"Bearer s3cret").unwrap();
    for value in [
        "bearer s3cret",
        "BEARER s3cret",
        "bEaReR s3cret",
        "Bearer   s3cret",
        "Bearer\ts3cret",
        " \t Bearer \t s3cret \t ",
    ] {
        assert_eq!(bearer(value.as_bytes()).as_ref(), Ok(&key), "{value:?}");
    }
    for other in ["Bearer S3cret", "Bearer s3cret2", "Bearer s3cre", "Bearer Bearer"] {
        assert_ne!(bearer(other.as_bytes()).unwrap(), key, "{other:?}");
    }
}

#[test]
fn the_way_a_secret_is_sent_makes_no_new_bucket() {
    let header = request(&[("x-api-key", b" s3cret ")]);
    let key = extract(&ApiKey::header("X-Api-Key"), &header).unwrap();
    assert_eq!(bearer(b"Bearer s3cret").unwrap(), key);
}

#[test]
fn what_is_no_bearer_token_is_missing() {
    for value in ["", "Bearer", "Bearer ", "Basic czNjcmV0", "Bearers3cret", "Digest a", "s3cret"] {
        let error = bearer(value.as_bytes()).unwrap_err();
        assert!(error.is_missing(), "{value:?}: {error}");
        assert_eq!(error.status(), 401, "{value:?}");
    }
}

#[test]
fn a_token_that_a_verifier_could_read_otherwise_is_refused() {
    for value in ["Bearer s3cret x", "Bearer s3cret\tx", "Bearer s3cr\u{a0}et"] {
        let error = bearer(value.as_bytes()).unwrap_err();
        assert!(!error.is_missing() && !error.is_setup(), "{value:?}: {error}");
    }
    let lines = [("authorization", b"Bearer a".as_slice()), ("x-api-key", b"a")];
    for (extractor, line) in [ApiKey::bearer(), ApiKey::header("x-api-key")].iter().zip(lines) {
        let error = extract(extractor, &request(&[line, line])).unwrap_err();
        assert!(!error.is_missing() && !error.is_setup(), "{line:?}: {error}");
    }
}

#[test]
fn no_secret_reaches_the_store_or_a_log() {
    let secret = "s3cret";
    let header = request(&[("x-api-key", secret.as_bytes())]);
    for extractor in [ApiKey::header("x-api-key"), ApiKey::header("x-api-key").hash_key("pepper")] {
        let key = extract(&extractor, &header).unwrap();
        let (kind, digest) = key.as_str().split_once(':').unwrap();
        assert_eq!(kind, "apikey");
        assert_eq!(digest.len(), 32, "128 bits");
        assert!(digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{digest}");
        let shown = format!("{key:?} {extractor:?}");
        let bytes = format!("{:?}", "pepper".as_bytes());
        assert!(!shown.contains(secret) && !shown.contains("pepper") && !shown.contains(&bytes));
        assert!(!shown.contains(digest), "{shown}");
    }
}

#[test]
fn a_new_version_hashes_secrets_as_the_old_one_did() {
    let header = request(&[("x-api-key", b"s3cret")]);
    let plain = ApiKey::header("x-api-key");
    assert_eq!(text(&plain, &header), "apikey:6f1c24f5728a4ebe34a9f5c28bae2ba1");
    assert_eq!(text(&plain.hash_key("pepper"), &header), "apikey:38537e5a06d09e5024a5402fa3f177ac");
}

#[test]
fn instances_with_one_hash_key_share_a_limit_and_others_do_not() {
    let header = request(&[("x-api-key", b"s3cret")]);
    let keyed = |secret: &str| text(&ApiKey::header("x-api-key").hash_key(secret), &header);
    assert_eq!(keyed("pepper"), keyed("pepper"));
    assert_ne!(keyed("pepper"), keyed("salt"));
    assert_ne!(keyed(""), text(&ApiKey::header("x-api-key"), &header));
}

#[test]
fn the_length_of_a_header_does_not_reach_the_store() {
    let [long, longer] = [1 << 20, (1 << 20) + 1].map(|length| vec![b'a'; length]);
    let [long, longer] = [long, longer].map(|value| request(&[("x-api-key", &value)]));
    let (secret, open) = (ApiKey::header("x-api-key"), Header::from_static("x-api-key"));
    for extractor in [Box::new(secret) as Box<dyn KeyExtractor>, Box::new(open.clone())] {
        let [one, other] = [&long, &longer].map(|request| text(&extractor, request));
        assert!(one.len() < 64, "{one}");
        assert_ne!(one, other);
    }
    let escaped = vec![b'%'; 128];
    assert!(text(&open, &request(&[("x-api-key", &escaped)])).len() < 512);
}
