//! A TCP proxy that misbehaves on demand.

mod pump;
mod settings;

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use self::{
    pump::{Direction, pump},
    settings::Settings,
};
use super::port::free_port;

/// Stands between a client and a server on the loopback interface.
///
/// It runs on the runtime that started it, forwards faithfully until told otherwise, and closes
/// everything when dropped. Each setting also affects connections that are already open.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    /// Empty while connections are refused.
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    upstream: u16,
    accepted: AtomicU64,
    settings: watch::Sender<Settings>,
}

impl Proxy {
    /// Starts a proxy in front of the server on the loopback port `upstream`.
    pub(crate) async fn start(upstream: u16) -> Self {
        let shared = Arc::new(Shared {
            upstream,
            accepted: AtomicU64::new(0),
            settings: watch::Sender::default(),
        });
        loop {
            let port = free_port();
            if let Ok(listener) = bind(port).await {
                let listening = Some(tokio::spawn(accept(listener, Arc::clone(&shared))));
                return Self { port, shared, listening };
            }
        }
    }

    /// The port that clients connect to.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The URL for a client, without a password.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// How many connections were accepted so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Delays everything by `delay`, in each direction. Throughput is not affected.
    pub(crate) fn delay(&self, delay: Duration) {
        self.set(|settings| settings.delay = [delay; 2]);
    }

    /// Delays what clients send.
    pub(crate) fn delay_requests(&self, delay: Duration) {
        self.set(|settings| settings.delay[Direction::Request as usize] = delay);
    }

    /// Delays what the server answers.
    pub(crate) fn delay_replies(&self, delay: Duration) {
        self.set(|settings| settings.delay[Direction::Reply as usize] = delay);
    }

    /// Adds between nothing and `jitter` to each chunk's delay. The order is kept.
    pub(crate) fn jitter(&self, jitter: Duration) {
        self.set(|settings| settings.jitter = jitter);
    }

    /// Closes all open connections. New ones are accepted.
    pub(crate) fn cut(&self) {
        self.set(|settings| settings.generation += 1);
    }

    /// Forwards half of the next chunk that the server sends on any connection, then closes that
    /// connection.
    pub(crate) fn cut_next_reply_midway(&self) {
        self.set(|settings| settings.cut_midway = true);
    }

    /// Lets requests through and loses the replies.
    ///
    /// Connections that lost a reply are closed when this ends: what followed would be taken for
    /// the answer to an earlier request, and TCP loses nothing from the middle of a stream.
    pub(crate) fn swallow_replies(&self, on: bool) {
        self.set(|settings| settings.swallow_replies = on);
    }

    /// Accepts connections and forwards nothing. What was sent meanwhile arrives when this ends.
    pub(crate) fn black_hole(&self, on: bool) {
        self.set(|settings| settings.black_hole = on);
    }

    /// Forwards nothing more on the connection of this number, counted from 1 as they were accepted.
    pub(crate) fn silence(&self, connection: u64) {
        self.set(|settings| settings.silent = Some(connection));
    }

    /// Stops to listen, or listens again on the same port. Open connections stay open.
    pub(crate) async fn refuse(&mut self, on: bool) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            // The listener is closed once the task is gone.
            _ = listening.await;
        }
        if !on {
            let listener = bind(self.port).await.expect("the proxy's port is still free");
            self.listening = Some(tokio::spawn(accept(listener, Arc::clone(&self.shared))));
        }
    }

    fn set(&self, change: impl FnOnce(&mut Settings)) {
        self.shared.settings.send_modify(change);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
        self.cut();
    }
}

async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = shared.accepted.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::spawn(connect(client, number, Arc::clone(&shared)));
    }
}

/// Serves one connection until either side closes it or it is cut.
async fn connect(client: TcpStream, number: u64, shared: Arc<Shared>) -> io::Result<()> {
    let mut settings = shared.settings.subscribe();
    let generation = settings.borrow().generation;
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.upstream)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        biased;
        _ = settings.wait_for(|now| now.generation != generation) => Ok(()),
        ended = pump(Direction::Request, number, from_client, to_server, &shared.settings) => ended,
        ended = pump(Direction::Reply, number, from_server, to_client, &shared.settings) => ended,
    }
}
