//! Peers that have no address.

use http::Request;
use tollgate::{ClientIp, PeerIp};

use super::with_lines;
use crate::key::{extract, text};

fn from_socket(header: &'static str, lines: &[&str]) -> Request<()> {
    with_lines(Request::new(()), header, lines)
}

#[test]
fn a_unix_socket_is_believed_only_if_it_was_listed() {
    let lines = ["6.6.6.6, 192.0.2.7, 10.0.0.2"];
    let request = from_socket("x-forwarded-for", &lines);
    let with = ClientIp::x_forwarded_for(["10.0.0.0/8", " unix: "]).unwrap();
    assert_eq!(text(&with, &request), "ip:192.0.2.7");
    let without = ClientIp::x_forwarded_for(["10.0.0.0/8", "0.0.0.0/1", "::/1"]).unwrap();
    for extractor in [without.clone(), without.reject_unknown(), ClientIp::peer()] {
        let error = extract(&extractor, &request).unwrap_err();
        assert!(error.is_setup());
        assert!(error.message().contains("\"unix:\""), "{error}");
    }
    assert!(extract(&PeerIp, &request).unwrap_err().is_setup());
}

#[test]
fn a_unix_socket_alone_may_be_trusted() {
    let list = ClientIp::x_forwarded_for(["unix:"]).unwrap();
    let request = from_socket("x-forwarded-for", &["6.6.6.6, 192.0.2.7"]);
    assert_eq!(text(&list, &request), "ip:192.0.2.7");
    let forwarded = ClientIp::forwarded(["unix:"]).unwrap();
    let request = from_socket("forwarded", &["for=\", for=192.0.2.7"]);
    assert_eq!(text(&forwarded, &request), "ip:192.0.2.7");
    let single = ClientIp::header("x-real-ip", ["unix:"]).unwrap();
    let request = from_socket("x-real-ip", &["192.0.2.7"]);
    assert_eq!(text(&single, &request), "ip:192.0.2.7");
    // Whoever has an address is not on that socket.
    let request = super::forwarded("127.0.0.1", &["192.0.2.7"]);
    assert_eq!(text(&list, &request), "ip:127.0.0.1");
}

#[test]
fn a_count_of_proxies_holds_on_a_unix_socket_too() {
    let list = ClientIp::x_forwarded_for_hops(1).unwrap();
    let request = from_socket("x-forwarded-for", &["6.6.6.6, 192.0.2.7"]);
    assert_eq!(text(&list, &request), "ip:192.0.2.7");
    let forwarded = ClientIp::forwarded_hops(1).unwrap();
    let request = from_socket("forwarded", &["for=6.6.6.6, for=192.0.2.7"]);
    assert_eq!(text(&forwarded, &request), "ip:192.0.2.7");
}

#[test]
fn what_does_not_tell_the_client_is_rejected_where_there_is_no_peer_to_count() {
    let extractors = [
        ClientIp::x_forwarded_for(["unix:", "10.0.0.0/8"]).unwrap(),
        ClientIp::x_forwarded_for_hops(2).unwrap(),
    ];
    for extractor in extractors {
        for lines in [&[][..], &["unknown"], &["10.0.0.2"], &["192.0.2.7", ""], &["unix:"]] {
            let request = from_socket("x-forwarded-for", lines);
            for extractor in [extractor.clone(), extractor.clone().reject_unknown()] {
                let error = extract(&extractor, &request).unwrap_err();
                assert_eq!(error.status(), 400, "{lines:?}");
                assert!(!error.is_missing() && !error.is_setup(), "{lines:?}");
            }
        }
    }
}

/// The way that axum's own example does it: a type of the service's for what is known of the peer.
#[cfg(all(unix, feature = "axum"))]
#[tokio::test]
async fn axum_serves_a_proxy_on_a_unix_socket() {
    use axum::{Router, extract::connect_info::Connected, routing::get, serve::IncomingStream};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{UnixListener, UnixStream},
    };
    use tollgate::{Quota, RateLimitLayer};

    #[derive(Clone)]
    struct UdsConnectInfo;

    impl Connected<IncomingStream<'_, UnixListener>> for UdsConnectInfo {
        fn connect_info(_: IncomingStream<'_, UnixListener>) -> Self {
            Self
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let client = ClientIp::header("x-real-ip", ["unix:"]).unwrap();
    let layer = RateLimitLayer::new(client, Quota::per_minute(1), crate::support::memory().0);
    let app = Router::new().route("/", get(|| async { "hello" })).layer(layer);
    let service = app.into_make_service_with_connect_info::<UdsConnectInfo>();
    let server = tokio::spawn(async move { axum::serve(listener, service).await });

    let status = async |line: &str| {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{line}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("x-real-ip: 192.0.2.7\r\n").await, "200");
    assert_eq!(status("x-real-ip: 192.0.2.7\r\n").await, "429");
    assert_eq!(status("x-real-ip: 192.0.2.8\r\n").await, "200");
    assert_eq!(status("").await, "400");
    server.abort();
}
