//! A server that answers what a test wants it to.

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What becomes of a connection that sent a command.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// It gets this.
    Reply(Vec<u8>),
    /// It gets this, and is closed.
    Cut(Vec<u8>),
    /// It gets this, and then zeros for as long as it lives.
    Stream(Vec<u8>),
}

/// Listens on a loopback port, on the runtime that started it, until it is dropped.
#[derive(Debug)]
pub(crate) struct FakeServer {
    port: u16,
    listening: JoinHandle<()>,
}

impl FakeServer {
    /// Starts a server that does with each command what `act` says.
    pub(crate) async fn start(act: impl Fn(&[String]) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let act = Arc::new(act);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let act = Arc::clone(&act);
                tokio::spawn(async move { serve(client, &*act).await });
            }
        });
        Self { port, listening }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// What Redis answers to a client that gets ready.
pub(crate) fn ready(command: &[String]) -> Act {
    let name = command[0].as_str();
    Act::Reply(match (name, command.get(2).map(String::as_str)) {
        ("PING", _) => b"+PONG\r\n".to_vec(),
        ("HELLO", _) => hello("redis", "7.0.15"),
        ("INFO", _) => bulk("# Server\r\nredis_version:7.0.15\r\n"),
        ("SCRIPT", _) => bulk("0123456789012345678901234567890123456789"),
        ("EVALSHA", Some("0")) => b"*1\r\n:1700000000000000\r\n".to_vec(),
        ("EVAL", Some("0")) => b":1\r\n".to_vec(),
        _ => b"+OK\r\n".to_vec(),
    })
}

/// An answer to `HELLO`.
pub(crate) fn hello(server: &str, version: &str) -> Vec<u8> {
    let words = ["server", server, "version", version, "proto"].map(bulk).concat();
    [b"*6\r\n".to_vec(), words, b":2\r\n".to_vec()].concat()
}

pub(crate) fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

async fn serve(
    client: TcpStream,
    act: &(dyn Fn(&[String]) -> Act + Send + Sync),
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut client = BufReader::new(client);
    loop {
        match act(&command(&mut client).await?) {
            Act::Reply(bytes) => client.write_all(&bytes).await?,
            Act::Cut(bytes) => {
                client.write_all(&bytes).await?;
                return client.shutdown().await;
            }
            Act::Stream(bytes) => {
                client.write_all(&bytes).await?;
                loop {
                    client.write_all(&[0; 4096]).await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }
}

async fn command(client: &mut BufReader<TcpStream>) -> io::Result<Vec<String>> {
    let count = number(client).await?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(client).await? + 2];
        client.read_exact(&mut word).await?;
        word.truncate(word.len() - 2);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    Ok(words)
}

/// The number of a line, behind its first character.
async fn number(client: &mut BufReader<TcpStream>) -> io::Result<usize> {
    let mut line = String::new();
    client.read_line(&mut line).await?;
    line.get(1..).unwrap_or_default().trim().parse().map_err(io::Error::other)
}
