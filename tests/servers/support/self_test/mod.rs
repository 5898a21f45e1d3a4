//! Tests of the harness itself.

mod load;
mod log;
mod proxy;
mod server;
mod table;

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// An answer that is due comes within this time.
const SOON: Duration = Duration::from_secs(10);
/// Silence for so long means that no answer is under way.
const A_MOMENT: Duration = Duration::from_millis(200);

async fn connect(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
}

async fn send(stream: &mut TcpStream, command: &str) {
    stream.write_all(format!("{command}\r\n").as_bytes()).await.expect("a command is sent");
}

/// What arrives next; empty if the connection was closed.
async fn receive(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 1024];
    let read = timeout(SOON, stream.read(&mut buffer)).await.expect("something happens");
    String::from_utf8_lossy(&buffer[..read.unwrap_or(0)]).into_owned()
}

async fn ask(stream: &mut TcpStream, command: &str) -> String {
    send(stream, command).await;
    receive(stream).await
}

/// Whether nothing arrives and the connection stays open.
async fn is_silent(stream: &TcpStream) -> bool {
    timeout(A_MOMENT, stream.readable()).await.is_err()
}
