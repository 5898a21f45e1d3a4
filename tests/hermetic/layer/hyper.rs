//! Around a plain hyper service, over a real connection.

use std::{convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tokio::net::TcpListener;
use tollgate::{PeerIp, Quota, RateLimitLayer};
use tower::{ServiceBuilder, service_fn, util::MapRequestLayer};

use crate::support::{field, memory};

/// Serves until the test ends; each connection has a service of its own, as hyper's users write it.
async fn serve(layer: RateLimitLayer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let know_peer = MapRequestLayer::new(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(peer);
                request
            });
            let echo = service_fn(async |request: Request<Incoming>| {
                let body =
                    request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
                Ok::<_, Infallible>(Response::new(Full::new(body.unwrap_or_default())))
            });
            let service = ServiceBuilder::new().layer(know_peer).layer(layer.clone()).service(echo);
            let connection = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            tokio::spawn(connection);
        }
    });
    address
}

fn post(address: SocketAddr, body: Bytes, close: bool) -> Request<Full<Bytes>> {
    let request = Request::post(format!("http://{address}/"));
    let request = if close { request.header("connection", "close") } else { request };
    request.body(Full::new(body)).unwrap()
}

#[tokio::test]
async fn connections_share_the_limit_and_clients_read_the_answer() {
    let layer = RateLimitLayer::new(PeerIp, Quota::per_minute(3), memory().0);
    let address = serve(layer).await;
    let client = Client::builder(TokioExecutor::new()).build_http();
    for left in ["2", "1", "0"] {
        // Each on a connection of its own.
        let response = client.request(post(address, Bytes::from("hello"), true)).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(field(response.headers(), "x-ratelimit-remaining"), Some(left));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    }
    let response = client.request(post(address, Bytes::from("hello"), false)).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(response.headers(), "retry-after"), Some("20"));
    assert_eq!(field(response.headers(), "content-length"), Some("17"));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "too many requests");
}

#[tokio::test]
async fn a_client_in_the_middle_of_an_upload_sees_its_denial() {
    let layer = RateLimitLayer::new(PeerIp, Quota::per_minute(1), memory().0);
    let address = serve(layer).await;
    let client = Client::builder(TokioExecutor::new()).build_http();
    client.request(post(address, Bytes::new(), false)).await.unwrap();
    for size in [1, 1 << 10, 1 << 16, 1 << 18, 1 << 22] {
        let body = Bytes::from(vec![b'x'; size]);
        let response = client.request(post(address, body, true)).await.unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{size}");
        let text = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "too many requests", "{size}");
    }
}
