//! What tokens say, and what becomes of it.

use std::{
    convert::Infallible,
    future::ready,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tollgate::{
    Claims, JwtKeys, JwtLayer, KeyExtractor, ManualClock, RequestHead, Tier, Timestamp, key,
};
use tower::{Layer, ServiceExt, service_fn};

use super::{
    Inner, NOW, SECRET, alice, bearing, builder, but, layer, passes, refuses, request, send,
    signed, without,
};

const AUDIENCE: &str = "the token is for another audience";
const ISSUER: &str = "the token is from another issuer";

#[tokio::test]
async fn a_token_for_somebody_else_is_refused() {
    let layer = layer(JwtKeys::hs256(SECRET));
    for other in [json!("other"), json!("API"), json!(""), json!([]), json!(["other", "api "])] {
        refuses(&layer, &signed(&but("aud", other)), AUDIENCE).await;
    }
    refuses(&layer, &signed(&without("aud")), AUDIENCE).await;
    for ours in [json!("api"), json!(["api"]), json!(["other", "api"])] {
        passes(&layer, &signed(&but("aud", ours))).await;
    }
    for wrong in [json!(7), json!({"api": true}), json!([["api"]])] {
        refuses(&layer, &signed(&but("aud", wrong)), "the token is malformed").await;
    }
}

#[tokio::test]
async fn where_nobody_says_who_we_are_a_token_for_somebody_is_for_somebody_else() {
    let layer = JwtLayer::<Claims>::new(JwtKeys::hs256(SECRET)).clock(ManualClock::new());
    let layer = layer.build().unwrap();
    refuses(&layer, &signed(&alice()), AUDIENCE).await;
    refuses(&layer, &signed(&but("aud", json!([]))), AUDIENCE).await;
    passes(&layer, &signed(&without("aud"))).await;
}

#[tokio::test]
async fn a_token_of_another_issuer_is_refused() {
    let layer = layer(JwtKeys::hs256(SECRET));
    for other in ["https://id.example/", "https://evil.example", "HTTPS://ID.EXAMPLE", ""] {
        refuses(&layer, &signed(&but("iss", json!(other))), ISSUER).await;
    }
    refuses(&layer, &signed(&without("iss")), ISSUER).await;
    let list = but("iss", json!(["https://id.example"]));
    refuses(&layer, &signed(&list), "the token is malformed").await;
}

#[tokio::test]
async fn any_of_several_issuers_and_audiences_will_do() {
    let layer = builder(JwtKeys::hs256(SECRET)).issuer("second").audience("web").build().unwrap();
    passes(&layer, &signed(&alice())).await;
    passes(&layer, &signed(&but("iss", json!("second")))).await;
    passes(&layer, &signed(&but("aud", json!("web")))).await;
    refuses(&layer, &signed(&but("iss", json!("third"))), ISSUER).await;
}

/// What the service finds in the extensions of a request.
async fn found<C>(layer: &JwtLayer<C>, request: Request<()>) -> Option<C>
where
    C: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let found = Arc::new(Mutex::new(None));
    let inside = Arc::clone(&found);
    let service = service_fn(move |request: Request<()>| {
        *inside.lock().unwrap() = request.extensions().get::<C>().cloned();
        ready(Ok::<_, Infallible>(Response::new(String::new())))
    });
    let Ok(_) = layer.layer(service).oneshot(request).await;
    found.lock().unwrap().take()
}

#[tokio::test]
async fn all_claims_are_there() {
    let mut claims = alice();
    claims["nbf"] = json!(NOW);
    claims["iat"] = json!(NOW as f64 - 0.5);
    claims["jti"] = json!("t1");
    claims["plan"] = json!("pro");
    claims["depth"] = json!({"a": [1]});
    let claims = found(&layer(JwtKeys::hs256(SECRET)), bearing(&signed(&claims))).await.unwrap();
    let time = Timestamp::from_micros;
    assert_eq!((&*claims.sub, &*claims.iss, &*claims.jti), ("alice", "https://id.example", "t1"));
    assert_eq!(claims.aud, ["api"]);
    assert_eq!(claims.exp, time((NOW + 600) * 1_000_000));
    assert_eq!(claims.nbf, Some(time(NOW * 1_000_000)));
    assert_eq!(claims.iat, Some(time(NOW * 1_000_000 - 500_000)));
    assert_eq!(claims.text("plan"), Some("pro"));
    assert_eq!(claims.text("depth"), None);
    assert_eq!(claims.rest["depth"], json!({"a": [1]}));
    assert_eq!(claims.rest.len(), 2);
}

#[tokio::test]
async fn a_token_without_a_subject_has_no_key() {
    let mut request = Request::new(());
    let token = bearing(&signed(&without("sub")));
    request.extensions_mut().insert(found(&layer(JwtKeys::hs256(SECRET)), token).await.unwrap());
    let subject = key::claim(|claims: &Claims| &claims.sub);
    let error = subject.extract(RequestHead::new(&request)).unwrap_err();
    assert!(error.is_missing() && error.status() == 401);
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Own {
    sub: String,
    org: u64,
}

#[tokio::test]
async fn claims_are_read_into_a_type_of_ones_own() {
    let layer = JwtLayer::<Own>::new(JwtKeys::hs256(SECRET)).audience("api");
    let layer = layer.clock(ManualClock::new()).build().unwrap();
    let own = found(&layer, bearing(&signed(&but("org", json!(7))))).await;
    assert_eq!(own, Some(Own { sub: "alice".into(), org: 7 }));
    for lacking in [alice(), but("org", json!("seven"))] {
        let inner = Inner::default();
        let answer = send(&layer, &inner, bearing(&signed(&lacking))).await;
        super::is_refusal(&answer, "the token lacks claims that are needed here");
        assert_eq!(inner.calls(), 0);
    }
}

#[tokio::test]
async fn claims_that_nobody_has_verified_are_removed() {
    let optional = builder(JwtKeys::hs256(SECRET)).optional().build().unwrap();
    let forged = |mut request: Request<()>| {
        let mut claims = Claims::default();
        claims.sub = "mallory".into();
        request.extensions_mut().insert(claims);
        request
    };
    let inner = Inner::default();
    for lines in [&[][..], &[("authorization", "Basic YTpi")], &[("authorization", "Bearer ")]] {
        let answer = send(&optional, &inner, forged(request(lines))).await;
        assert_eq!((answer.status.as_u16(), &*answer.body), (200, ""), "{lines:?}");
    }
    let answer = send(&optional, &inner, forged(bearing(&signed(&alice())))).await;
    assert_eq!(answer.body, "subject alice");
}

#[tokio::test]
async fn claims_say_which_tier_a_caller_has() {
    let tiered = builder(JwtKeys::hs256(SECRET))
        .optional()
        .tier(|claims: &Claims| claims.text("plan").map(Tier::new))
        .build()
        .unwrap();
    let always = builder(JwtKeys::hs256(SECRET)).tier(|_: &Claims| Tier::new("basic"));
    let always = always.build().unwrap();
    let inner = Inner::default();
    let pro = bearing(&signed(&but("plan", json!("pro"))));
    assert_eq!(send(&tiered, &inner, pro).await.body, "subject alice, tier pro");
    let plain = || bearing(&signed(&alice()));
    assert_eq!(send(&tiered, &inner, plain()).await.body, "subject alice");
    assert_eq!(send(&always, &inner, plain()).await.body, "subject alice, tier basic");
}
