//! A blocking connection that speaks just enough of the Redis protocol.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// What the server answered: text, or the text of its error.
///
/// Integers are in decimal, the elements of an array on a line each, and nil is `(nil)`.
pub(crate) type Reply = Result<String, String>;

/// What the server answered, in its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nil,
    Integer(i64),
    Text(String),
    Error(String),
    Array(Vec<Self>),
}

impl Value {
    fn into_text(self) -> String {
        match self {
            Self::Nil => "(nil)".to_owned(),
            Self::Integer(integer) => integer.to_string(),
            Self::Text(text) | Self::Error(text) => text,
            Self::Array(values) => {
                values.into_iter().map(Self::into_text).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// One connection. Connecting, and each read and write, takes at most ten seconds.
///
/// It blocks the thread: use it towards servers, not towards a proxy on the same runtime.
#[derive(Debug)]
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// Connects to a loopback port, and logs in if there is a password.
    pub(crate) fn open(port: u16, password: Option<&str>) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut connection = Self(BufReader::new(stream));
        if let Some(password) = password {
            // A test may have changed the password; the next command then says so.
            _ = connection.call(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// Sends a command and waits for the reply.
    pub(crate) fn call(&mut self, args: &[&str]) -> io::Result<Reply> {
        self.send(args)?;
        self.receive()
    }

    /// Sends a command and does not wait, for one that blocks the server.
    pub(crate) fn send(&mut self, args: &[&str]) -> io::Result<()> {
        let mut request = format!("*{}\r\n", args.len());
        for arg in args {
            request.push_str(&format!("${}\r\n{arg}\r\n", arg.len()));
        }
        self.0.get_mut().write_all(request.as_bytes())
    }

    /// Waits for the reply to an earlier [`send`](Self::send).
    pub(crate) fn receive(&mut self) -> io::Result<Reply> {
        Ok(match self.value()? {
            Value::Error(error) => Err(error),
            value => Ok(value.into_text()),
        })
    }

    /// Sends a command of any bytes and waits for the reply, which keeps its form.
    pub(crate) fn ask<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        let mut request = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args.iter().map(AsRef::as_ref) {
            request.extend(format!("${}\r\n", arg.len()).as_bytes());
            request.extend(arg);
            request.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&request)?;
        self.value()
    }

    fn value(&mut self) -> io::Result<Value> {
        let line = self.line()?;
        let Some((kind, rest)) = line.split_at_checked(1) else {
            return Err(io::Error::other("an empty line where a reply should begin"));
        };
        match kind {
            "+" => Ok(Value::Text(rest.to_owned())),
            ":" => Ok(Value::Integer(rest.parse().map_err(io::Error::other)?)),
            "-" => Ok(Value::Error(rest.to_owned())),
            "$" | "*" if rest == "-1" => Ok(Value::Nil),
            "$" => Ok(Value::Text(self.bulk(length(rest)?)?)),
            "*" => (0..length(rest)?)
                .map(|_| self.value())
                .collect::<io::Result<_>>()
                .map(Value::Array),
            _ => Err(io::Error::other(format!("not a reply: {line}"))),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn bulk(&mut self, length: usize) -> io::Result<String> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn length(text: &str) -> io::Result<usize> {
    text.parse().map_err(io::Error::other)
}
