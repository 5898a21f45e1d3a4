//! When tokens are valid.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate::{JwtKeys, ManualClock, Timestamp};

use super::{NOW, SECRET, alice, builder, but, passes, refuses, signed, without};
use crate::support::secs;

const EXPIRED: &str = "the token has expired";
const NOT_YET: &str = "the token is not valid yet";
const MALFORMED: &str = "the token is malformed";

fn at(micros: u64) -> ManualClock {
    ManualClock::at(Timestamp::from_micros(micros))
}

const SECOND: u64 = 1_000_000;

#[tokio::test]
async fn a_token_expires_at_its_second_and_the_leeway() {
    let token = signed(&but("exp", json!(NOW)));
    for leeway in [0, 1, 60, 600] {
        let end = (NOW + leeway) * SECOND;
        for (now, valid) in
            [(end - SECOND, true), (end - 1, true), (end, false), (end + SECOND, false)]
        {
            let layer = builder(JwtKeys::hs256(SECRET)).leeway(secs(leeway)).clock(at(now));
            let layer = layer.build().unwrap();
            if valid {
                passes(&layer, &token).await;
            } else {
                refuses(&layer, &token, EXPIRED).await;
            }
        }
    }
}

#[tokio::test]
async fn a_token_begins_at_its_second_less_the_leeway() {
    let token = signed(&but("nbf", json!(NOW)));
    for leeway in [0, 1, 60, 600] {
        let start = (NOW - leeway) * SECOND;
        for (now, valid) in [(start - SECOND, false), (start - 1, false), (start, true)] {
            let layer = builder(JwtKeys::hs256(SECRET)).leeway(secs(leeway)).clock(at(now));
            let layer = layer.build().unwrap();
            if valid {
                passes(&layer, &token).await;
            } else {
                refuses(&layer, &token, NOT_YET).await;
            }
        }
    }
}

#[tokio::test]
async fn the_leeway_is_a_minute_unless_it_is_set() {
    let clock = at((NOW + 59) * SECOND);
    let layer = builder(JwtKeys::hs256(SECRET)).clock(clock.clone()).build().unwrap();
    let token = signed(&but("exp", json!(NOW)));
    passes(&layer, &token).await;
    clock.advance(Duration::from_secs(1));
    refuses(&layer, &token, EXPIRED).await;
}

#[tokio::test]
async fn a_token_that_never_expires_is_refused() {
    let layer = builder(JwtKeys::hs256(SECRET)).build().unwrap();
    let why = "the token has no time at which it expires";
    refuses(&layer, &signed(&without("exp")), why).await;
}

#[tokio::test]
async fn what_is_no_number_of_seconds_is_no_time() {
    let layer = builder(JwtKeys::hs256(SECRET)).build().unwrap();
    let far = NOW + 600;
    let values: [Value; 10] = [
        json!(far.to_string()),
        json!("2099-01-01T00:00:00Z"),
        json!(""),
        json!(null),
        json!(true),
        json!([far]),
        json!({"seconds": far}),
        json!(-1),
        json!(-1.5),
        json!(i64::MIN),
    ];
    for value in values {
        for name in ["exp", "nbf"] {
            refuses(&layer, &signed(&but(name, value.clone())), MALFORMED).await;
        }
    }
}

#[tokio::test]
async fn a_time_may_have_a_fraction_or_lie_past_all_clocks() {
    let clock = at(NOW * SECOND + 499_999);
    let builder = || builder(JwtKeys::hs256(SECRET)).leeway(Duration::ZERO).clock(clock.clone());
    let layer = builder().build().unwrap();
    let token = signed(&but("exp", json!(NOW as f64 + 0.5)));
    passes(&layer, &token).await;
    clock.advance(Duration::from_micros(1));
    refuses(&layer, &token, EXPIRED).await;

    for never in [json!(u64::MAX), json!(1e300), json!(f64::MAX)] {
        passes(&layer, &signed(&but("exp", never.clone()))).await;
        refuses(&layer, &signed(&but("nbf", never)), NOT_YET).await;
    }
    refuses(&layer, &signed(&but("exp", json!(0))), EXPIRED).await;
    refuses(&layer, &signed(&but("exp", json!(0.9))), EXPIRED).await;
}

#[tokio::test]
async fn a_time_that_is_said_twice_is_refused() {
    use jsonwebtoken::{Algorithm, crypto};

    use super::{encode, hmac};

    let layer = builder(JwtKeys::hs256(SECRET)).build().unwrap();
    // Which of the two counts is not agreed upon (RFC 7519 §4).
    let text = alice().to_string().replace('{', &format!("{{\"exp\":{},", NOW - 9_999));
    let payload = base64::Engine::encode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, text);
    let message = format!("{}.{payload}", encode(&json!({"alg": "HS256"})));
    let signature = crypto::sign(message.as_bytes(), &hmac(SECRET), Algorithm::HS256).unwrap();
    refuses(&layer, &format!("{message}.{signature}"), MALFORMED).await;
}

#[tokio::test]
async fn the_system_tells_the_time_unless_somebody_else_does() {
    let builder = super::JwtLayer::<tollgate::Claims>::new(JwtKeys::hs256(SECRET)).audience("api");
    let layer = builder.build().unwrap();
    refuses(&layer, &signed(&but("exp", json!(NOW))), EXPIRED).await;
    passes(&layer, &signed(&but("exp", json!(NOW * 100)))).await;
}
