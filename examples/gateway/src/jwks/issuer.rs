//! A server of key sets for tests, and time that stands still.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
    sync::watch,
    task::{spawn_blocking, yield_now},
};
use tokio_rustls::TlsAcceptor;

use super::Settings;

/// Keys of these names, for HS256.
pub(super) fn set(names: &[&str]) -> String {
    let key = |name: &&str| {
        let secret = "c2VjcmV0IG9mIHRoaXJ0eS10d28gYnl0ZXMgb3IgbW9yZQ";
        format!(r#"{{"kty":"oct","alg":"HS256","kid":"{name}","k":"{secret}"}}"#)
    };
    format!(r#"{{"keys":[{}]}}"#, names.iter().map(key).collect::<Vec<_>>().join(","))
}

pub(super) fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Answers all requests alike.
pub(super) struct Issuer {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Mutex<String>,
    heard: Mutex<String>,
    asked: AtomicUsize,
    /// Whether answers are held back.
    held: watch::Sender<bool>,
}

impl Issuer {
    pub(super) async fn start(answer: &str) -> Self {
        Self::with(None, answer).await
    }

    pub(super) async fn secure(acceptor: TlsAcceptor, answer: &str) -> Self {
        Self::with(Some(acceptor), answer).await
    }

    async fn with(acceptor: Option<TlsAcceptor>, answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answer: Mutex::new(answer.to_owned()),
            heard: Mutex::default(),
            asked: AtomicUsize::new(0),
            held: watch::Sender::new(false),
        });
        let all = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, shared) = (acceptor.clone(), Arc::clone(&all));
                tokio::spawn(async move {
                    match acceptor {
                        None => shared.serve(stream).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                shared.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, shared }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings::new(&format!("http://{}/keys?tenant=1", self.address)).unwrap()
    }

    pub(super) fn answer(&self, text: &str) {
        text.clone_into(&mut self.shared.answer.lock().unwrap());
    }

    pub(super) fn hold(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// The last request.
    pub(super) fn heard(&self) -> String {
        self.shared.heard.lock().unwrap().clone()
    }

    /// How many requests there were.
    pub(super) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }
}

impl Shared {
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut head = String::new();
        let mut buffer = [0; 1024];
        while !head.contains("\r\n\r\n") {
            let Ok(size @ 1..) = stream.read(&mut buffer).await else { return };
            head.push_str(&String::from_utf8_lossy(&buffer[..size]));
        }
        *self.heard.lock().unwrap() = head;
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        let answer = self.answer.lock().unwrap().clone();
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

/// Keeps time from going on by itself while real connections are waited for.
pub(super) struct Still {
    _until_dropped: mpsc::Sender<()>,
}

impl Still {
    pub(super) fn begin() -> Self {
        tokio::time::pause();
        let (sender, receiver) = mpsc::channel();
        // It does not while such a task runs.
        spawn_blocking(move || receiver.recv().is_ok());
        Self { _until_dropped: sender }
    }
}

/// Waits until `done`, without time.
pub(super) async fn eventually(mut done: impl FnMut() -> bool) {
    for _ in 0..20_000 {
        if done() {
            return;
        }
        yield_now().await;
        thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not happen");
}
