//! A proxy that reads what clients send, command by command, and may send something else.

use std::{
    fmt, io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
};

use super::port::free_port;

/// A command's words.
pub(crate) type Words = Vec<Vec<u8>>;

/// Changes a command on its way to the server.
pub(crate) type Rewrite = Arc<dyn Fn(&mut Words) + Send + Sync>;

/// Stands before a server, which is named after it was started and need not be there yet: so that it can
/// tell others this port as its own. It runs on the runtime that started it.
pub(crate) struct Front {
    port: u16,
    upstream: Arc<AtomicU16>,
    listening: JoinHandle<()>,
}

impl Front {
    pub(crate) async fn start(rewrite: Rewrite) -> Self {
        let upstream = Arc::new(AtomicU16::new(0));
        loop {
            let port = free_port();
            let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await else {
                continue;
            };
            let listening = tokio::spawn(accept(listener, Arc::clone(&upstream), rewrite));
            return Self { port, upstream, listening };
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Leads to the server on this loopback port from now on.
    pub(crate) fn lead_to(&self, port: u16) {
        self.upstream.store(port, Ordering::SeqCst);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("port", &self.port).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, upstream: Arc<AtomicU16>, rewrite: Rewrite) {
    while let Ok((client, _)) = listener.accept().await {
        let port = upstream.load(Ordering::SeqCst);
        tokio::spawn(serve(client, port, Arc::clone(&rewrite)));
    }
}

/// Serves one connection until either side closes it.
async fn serve(client: TcpStream, port: u16, rewrite: Rewrite) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        ended = forward(from_client, to_server, &rewrite) => ended,
        ended = tokio::io::copy(&mut from_server, &mut to_client) => ended.map(|_| ()),
    }
}

async fn forward(from: OwnedReadHalf, to: OwnedWriteHalf, rewrite: &Rewrite) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::new(from), BufWriter::new(to));
    loop {
        let line = line(&mut from).await?;
        match line.strip_prefix(b"*") {
            Some(count) => {
                let mut words = Words::new();
                for _ in 0..number(count)? {
                    words.push(word(&mut from).await?);
                }
                rewrite(&mut words);
                to.write_all(format!("*{}\r\n", words.len()).as_bytes()).await?;
                for word in words {
                    to.write_all(format!("${}\r\n", word.len()).as_bytes()).await?;
                    to.write_all(&word).await?;
                    to.write_all(b"\r\n").await?;
                }
            }
            // A command in plain words.
            None => to.write_all(&[&line[..], b"\r\n"].concat()).await?,
        }
        if from.buffer().is_empty() {
            to.flush().await?;
        }
    }
}

async fn line(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).await?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(line.to_vec()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn word(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let length = line(from).await?;
    let length = number(length.strip_prefix(b"$").unwrap_or_default())?;
    let mut word = vec![0; length + 2];
    from.read_exact(&mut word).await?;
    word.truncate(length);
    Ok(word)
}

fn number(text: &[u8]) -> io::Result<usize> {
    let text = str::from_utf8(text).map_err(io::Error::other)?;
    text.parse().map_err(io::Error::other)
}
