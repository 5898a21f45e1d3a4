//! Questions to the server that are no part of what is measured.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

/// A connection that waits for each answer.
pub(crate) struct Probe(BufReader<TcpStream>);

impl Probe {
    /// To the server at `redis://host:port`.
    pub(crate) fn connect(url: &str) -> Self {
        let address = url.trim_start_matches("redis://");
        let stream = TcpStream::connect(address).expect("the server was started");
        Self(BufReader::new(stream))
    }

    /// The answer to a command in one line: a text or a number.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        write!(self.0.get_mut(), "{command}\r\n").expect("the server reads");
        let mut head = String::new();
        self.0.read_line(&mut head).expect("the server answers");
        let Some(length) = head.strip_prefix('$') else { return head[1..].trim().to_owned() };
        // An absent value has the length -1.
        let Ok(length) = length.trim().parse::<usize>() else { return String::new() };
        let mut text = vec![0; length + 2];
        self.0.read_exact(&mut text).expect("the server answers");
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    /// A field of a section of `INFO`.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> String {
        let info = self.ask(&format!("INFO {section}"));
        let mut fields = info.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, _)| *name == field)
            .map(|(_, value)| value.to_owned())
            .unwrap_or_default()
    }
}
