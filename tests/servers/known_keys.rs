//! API keys that somebody invents, to get a fresh limit for each.

#![cfg(test)]

use std::{convert::Infallible, future::ready, net::SocketAddr, time::Duration};

use http::{Request, Response};
use tollgate::{
    ApiKeyLayer, ApiKeys, KeyExtractor, Limiter, PeerIp, Policy, Quota, RateLimitLayer, RedisStore,
    key,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::support::RedisServer;

const REQUESTS: usize = 20_000;
const ADDRESSES: usize = 3;

/// The statuses of a flood of invented keys: how many are 200, 401 and 429.
async fn flood(auth: ApiKeyLayer, server: &RedisServer) -> [usize; 3] {
    // The time to answer is not what this is about.
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let store = store.connect().await.expect("a server");
    let limiter = Limiter::builder(store).breaker(None).build();
    let caller = key::known_key().or(PeerIp);
    let limit = tollgate::Limit::new("daily", Quota::per_day(50));
    let policy = Policy::new("api").limit(caller, limit).build().expect("a policy");
    let service = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
    let limit = RateLimitLayer::with_policy(policy, &limiter);
    let mut service = ServiceBuilder::new().layer(auth).layer(limit).service(service);
    let mut statuses = [0; 3];
    for number in 0..REQUESTS {
        let invented = ApiKeys::digest(number.to_string());
        let request = Request::get("/").header("x-api-key", invented).body(());
        let mut request = request.expect("a request");
        let last = u8::try_from(number % ADDRESSES).expect("few");
        request.extensions_mut().insert(SocketAddr::from(([192, 0, 2, last], 4711)));
        let Ok(service) = service.ready().await;
        let Ok(response) = service.call(request).await;
        let place = [200, 401, 429].iter().position(|status| response.status() == *status);
        statuses[place.expect("an answer")] += 1;
    }
    statuses
}

fn keys() -> ApiKeys {
    let keys = ApiKeys::builder().key(ApiKeys::digest("known"), "acme", None);
    keys.build().expect("keys")
}

#[tokio::test]
async fn keys_that_are_turned_away_make_no_keys_on_the_server() {
    let server = RedisServer::start().await;
    assert_eq!(flood(ApiKeyLayer::new(keys()), &server).await, [0, REQUESTS, 0]);
    assert_eq!(server.command(&["DBSIZE"]), "0");
}

#[tokio::test]
async fn keys_that_are_anonymous_make_one_key_for_each_address_on_the_server() {
    let server = RedisServer::start().await;
    let passed = ADDRESSES * 50;
    let statuses = flood(ApiKeyLayer::new(keys()).unknown_as_anonymous(), &server).await;
    assert_eq!(statuses, [passed, 0, REQUESTS - passed]);
    assert_eq!(server.command(&["DBSIZE"]), ADDRESSES.to_string());
}
