//! Keys that somebody invents, to get a fresh limit for each.

use std::net::SocketAddr;

use http::Request;
use tollgate::{
    ApiKeyLayer, ApiKeys, KeyExtractor, MemoryStore, PeerIp, Quota, RateLimitLayer, key,
};
use tower::{Service, ServiceBuilder, ServiceExt};

use super::Inner;
use crate::support::memory;

const REQUESTS: usize = 100_000;
const ADDRESSES: usize = 3;

/// A request with a key that was never seen before, of one of a few addresses.
fn invented(number: usize) -> Request<()> {
    let key = ApiKeys::digest(number.to_string());
    let mut request = Request::get("/").header("x-api-key", key).body(()).unwrap();
    let last = u8::try_from(number % ADDRESSES).unwrap();
    request.extensions_mut().insert(SocketAddr::from(([192, 0, 2, last], 4711)));
    request
}

fn keys() -> ApiKeys {
    ApiKeys::builder().key(ApiKeys::digest("known"), "acme", None).build().unwrap()
}

/// How many requests pass, and how many keys the store then has.
async fn flood(auth: ApiKeyLayer) -> (usize, usize, usize) {
    let (store, _clock): (MemoryStore, _) = memory();
    let caller = key::known_key().or(PeerIp);
    let limit = RateLimitLayer::new(caller, Quota::per_day(50), store.clone());
    let inner = Inner::default();
    let mut service = ServiceBuilder::new().layer(auth).layer(limit).service(inner.clone());
    let mut unknown = 0;
    for number in 0..REQUESTS {
        let Ok(response) = service.ready().await.unwrap().call(invented(number)).await;
        unknown += usize::from(response.status() == 401);
    }
    (inner.calls(), unknown, store.len())
}

#[tokio::test]
async fn keys_that_are_turned_away_make_no_keys_in_the_store() {
    let (passed, unknown, stored) = flood(ApiKeyLayer::new(keys())).await;
    assert_eq!((passed, unknown, stored), (0, REQUESTS, 0));
}

#[tokio::test]
async fn keys_that_are_anonymous_count_by_their_address() {
    let (passed, unknown, stored) = flood(ApiKeyLayer::new(keys()).unknown_as_anonymous()).await;
    assert_eq!((passed, unknown, stored), (ADDRESSES * 50, 0, ADDRESSES));
}
