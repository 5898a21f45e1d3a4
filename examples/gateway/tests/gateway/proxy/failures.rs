//! Upstreams that fail, and clients that go away.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use axum::body::{Body, Bytes};
use hyper::{Request, Response, body::Incoming};
use socket2::{Domain, Socket, Type};

use super::support::{Mirror, channel, exchange, gateway, http2, statuses, upstream};
use crate::{port::free_port, support::Gateway};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A failure is told without what is behind the gateway.
fn fails(gateway: &Gateway, status: u16, reason: &str) {
    let answer = exchange(gateway, GET);
    assert_eq!(statuses(&answer), [status], "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body, format!("{reason}\n"));
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert!(!answer.contains("127.0.0.1"), "{answer}");
    assert_eq!(statuses(&exchange(gateway, GET.replace("GET /", "GET /healthz"))), [200]);
}

#[test]
fn nobody_there() {
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://127.0.0.1:{}", free_port()), &[]);
        fails(&gateway, 502, "the upstream cannot be reached");
        gateway.terminate();
        let (_, log) = gateway.wait();
        assert!(log.contains("refused"), "the log says more: {log}");
    }
}

/// Listens, and accepts none, so that the system takes no more connections.
fn full() -> (Socket, Vec<Socket>, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
    socket.listen(0).expect("it listens");
    let address = socket.local_addr().expect("an address");
    let waiting = (0..4).map(|_| {
        let client = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        client.set_nonblocking(true).expect("it can be");
        let _ = client.connect(&address);
        client
    });
    let waiting = waiting.collect();
    (socket, waiting, address.as_socket().expect("an address"))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a timeout is measured")]
fn nobody_takes_the_connection() {
    let (_socket, _waiting, address) = full();
    for scheme in ["http", "h2c"] {
        let gateway = gateway(&format!("{scheme}://{address}"), &["--connect-timeout", "500ms"]);
        let begun = Instant::now();
        // Each for itself: none waits until others have failed.
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| fails(&gateway, 504, "the upstream cannot be reached in time"));
            }
        });
        let taken = begun.elapsed();
        assert!((500..1_500).contains(&taken.as_millis()), "{scheme}: {taken:?}");
    }
}

#[test]
fn nobody_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let gateway = gateway(&url, &["--response-timeout", "300ms"]);
    fails(&gateway, 504, "the upstream does not answer in time");
    // Nor does it read: the body is never all there.
    let head =
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 60000000\r\n\r\n";
    let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
    let mut other = stream.try_clone().expect("a handle");
    thread::spawn(move || {
        let _ = other.write_all(head.as_bytes());
        let _ = other.write_all(&vec![b'x'; 60_000_000]);
    });
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 504");
}

/// Closes each connection once a request has come.
#[test]
fn who_breaks_off_is_asked_again_if_that_does_no_harm() {
    let rude = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", rude.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in rude.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let gateway = gateway(&url, &[]);
    fails(&gateway, 502, "the upstream broke off before it answered");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let post = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(statuses(&exchange(&gateway, post)), [502]);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[test]
fn nonsense_is_not_passed_on() {
    for nonsense in [
        "SSH-2.0-x\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(nonsense.as_bytes());
            }
        });
        let answer = exchange(&gateway(&url, &[]), GET);
        assert_eq!(statuses(&answer), [502], "{nonsense}: {answer}");
    }
}

/// What was promised and did not come is not made to look whole.
#[test]
fn an_upstream_that_dies_in_the_middle() {
    let mirror = Mirror::answering("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    let gateway = gateway(&mirror.url, &[]);
    let answer = exchange(&gateway, GET);
    assert!(answer.contains("hello") && !answer.contains("\r\n0\r\n"), "{answer}");
}

#[test]
fn an_upstream_that_comes_back() {
    let port = free_port();
    let gateway = gateway(&format!("http://127.0.0.1:{port}"), &[]);
    fails(&gateway, 502, "the upstream cannot be reached");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten().take(1) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            // Stays, and is killed with the connection in the pool.
            thread::sleep(Duration::from_millis(300));
        }
    });
    assert_eq!(statuses(&exchange(&gateway, GET)), [200]);
    thread::sleep(Duration::from_millis(500));
    fails(&gateway, 502, "the upstream cannot be reached");
    gateway.terminate();
    let (_, log) = gateway.wait();
    assert_eq!(log.matches("the upstream fails").count(), 2, "once for each time: {log}");
    assert!(log.contains("the upstream answers again"), "{log}");
}

/// Says when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_cancels_its_request() {
    for scheme in ["http", "h2c"] {
        let (began, begun) = mpsc::channel();
        let (sender, ended) = mpsc::channel();
        let address = upstream(move |request: Request<Incoming>| {
            let (began, dropped) = (began.clone(), Dropped(sender.clone()));
            async move {
                let _ = began.send(());
                if request.uri().path() == "/headers" {
                    std::future::pending::<()>().await;
                }
                let (body, sent) = channel();
                let _ = body.send(Bytes::from_static(b"first")).await;
                tokio::spawn(async move {
                    let _dropped = dropped;
                    body.closed().await;
                });
                Response::new(sent)
            }
        })
        .await;
        let gateway = gateway(&format!("{scheme}://{address}"), &[]);
        for path in ["/headers", "/body"] {
            let mut stream = TcpStream::connect(gateway.address).expect("it accepts");
            let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("it reads");
            begun.recv_timeout(Duration::from_secs(5)).expect("it is asked");
            if path == "/body" {
                stream.read_exact(&mut [0; 64]).expect("the beginning of an answer");
            }
            assert!(ended.try_recv().is_err(), "{scheme}{path} ended by itself");
            drop(stream);
            let cancelled = ended.recv_timeout(Duration::from_secs(5));
            assert!(cancelled.is_ok(), "{scheme}{path} goes on");

            let mut client = http2(&gateway).await;
            let request = Request::get(format!("http://a{path}")).body(Body::empty());
            let response = tokio::spawn(client.send_request(request.expect("a request")));
            begun.recv_timeout(Duration::from_secs(5)).expect("it is asked");
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(ended.try_recv().is_err(), "{scheme}{path} ended by itself");
            response.abort();
            drop(response.await);
            let cancelled = ended.recv_timeout(Duration::from_secs(5));
            assert!(cancelled.is_ok(), "{scheme}{path}, HTTP/2, goes on");
        }
    }
}
