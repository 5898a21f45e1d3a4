//! What the admin listener does about single keys.

#![cfg(test)]

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    admin::{LOCAL, metric, outcomes, post, start, state},
    support::{Gateway, Redis, eventually},
};

fn ask(admin: SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    let answer = post(admin, path, "x-tollgate-admin: test\r\n", &body.to_string());
    (answer.status, serde_json::from_str(&answer.body).unwrap_or(Value::Null))
}

fn statuses<const N: usize>(gateway: &Gateway) -> [u16; N] {
    [(); N].map(|()| gateway.get("/").status)
}

#[test]
fn a_key_is_looked_up_and_reset() {
    let (gateway, admin) = start(&[&LOCAL[..], &["--limit", "2/h"]].concat());
    assert_eq!(statuses(&gateway), [200, 200, 429]);
    let ask = |path: &str, key: &str, limit: &str| {
        ask(admin, path, &json!({"policy": "gateway", "limit": limit, "key": key}))
    };
    let (status, look) = ask("/key/look", "127.0.0.1", "requests");
    assert_eq!((status, &look["remaining"], &look["of"]), (200, &0.into(), &2.into()), "{look}");
    assert!(look["wait_seconds"].as_f64().is_some_and(|wait| (1_700.0..=1_800.0).contains(&wait)));
    assert_eq!(ask("/key/look", "ip:192.0.2.1", "requests").1["remaining"], 2);

    let (status, reset) = ask("/key/reset", "ip:127.0.0.1", "requests");
    assert_eq!((status, &reset["remaining"]), (200, &2.into()), "{reset}");
    assert_eq!(statuses(&gateway), [200, 200, 429]);
    assert_eq!(metric(admin, "allowed"), 4, "looks are no requests");
    eventually(|| outcomes(&state(admin)) == [4, 2]);
    assert_eq!(state(admin)["policies"].as_array().map(Vec::len), Some(1), "nor a policy");

    // The key of a limit that counts by two things at once.
    let (status, both) = ask("/key/look", r#"["127.0.0.1", "route:/"]"#, "requests");
    assert_eq!((status, &both["remaining"]), (200, &2.into()), "{both}");
    assert_eq!(both["key"], "ip:127.0.0.1,route:/");

    assert_eq!(ask("/key/reset", "127.0.0.1", "other").0, 404);
    let (status, error) = ask("/key/reset", "bob", "requests");
    assert_eq!(status, 400);
    assert!(error["error"].as_str().is_some_and(|text| text.contains("tenant:acme")), "{error}");
}

/// In memory, and in Redis.
#[test]
fn units_are_given_back() {
    let (_redis, url) = Redis::start();
    for store in [&[][..], &["--redis", &url]] {
        let (gateway, admin) = start(&[&LOCAL[..], &["--limit", "4/h"], store].concat());
        assert_eq!(statuses(&gateway), [200, 200, 200, 200, 429]);
        let whom = |units: Value| json!({"policy": "gateway", "limit": "requests", "key": "127.0.0.1", "units": units});
        // A number, or the text of a form.
        let (status, refund) = ask(admin, "/key/refund", &whom(1.into()));
        assert_eq!((status, &refund["remaining"]), (200, &1.into()), "{refund}");
        let (status, refund) = ask(admin, "/key/refund", &whom("2".into()));
        assert_eq!((status, &refund["remaining"]), (200, &3.into()), "{refund}");
        assert_eq!(statuses(&gateway), [200, 200, 200, 429]);
        let (status, refund) = ask(admin, "/key/refund", &whom(u64::MAX.into()));
        assert_eq!(
            (status, &refund["remaining"]),
            (200, &4.into()),
            "never more than all: {refund}"
        );
        assert_eq!(statuses(&gateway), [200, 200, 200, 200, 429]);

        for wrong in
            [0.into(), "0".into(), "".into(), (-1).into(), 1.5.into(), "x".into(), Value::Null]
        {
            let (status, error) = ask(admin, "/key/refund", &whom(wrong.clone()));
            assert_eq!(status, 400, "{wrong}");
            assert!(error["error"].as_str().is_some_and(|text| text.contains("units")), "{wrong}");
        }
        let missing = json!({"policy": "gateway", "limit": "requests", "key": "127.0.0.1"});
        assert_eq!(ask(admin, "/key/refund", &missing).0, 400);
        let mut other = whom(1.into());
        other["limit"] = "other".into();
        assert_eq!(ask(admin, "/key/refund", &other).0, 404);
        let refused = post(admin, "/key/refund", "", &whom(1.into()).to_string());
        assert_eq!(refused.status, 403, "another site cannot");
        assert_eq!(statuses(&gateway), [429]);
    }
}
