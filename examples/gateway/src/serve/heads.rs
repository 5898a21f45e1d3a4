//! How long a connection of HTTP/1.1 waits for a head.
//!
//! The server library has one time for that, which runs while nothing has come of the head as well.
//! Balancers keep connections for a minute, and would meet resets; a head must not take as long. So its
//! timer is one that knows what has been read.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::rt::{Sleep, Timer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, sleep_until},
};

use super::{FIRST, HEAD};

/// For how long a connection is kept without a request.
const IDLE: Duration = Duration::from_secs(75);

/// What is known of the heads of a connection.
#[derive(Clone)]
pub(super) struct Heads(Arc<Mutex<State>>);

struct State {
    /// When the wait for the next one began.
    since: Instant,
    /// When the first byte of it came.
    begun: Option<Instant>,
    /// Whether what was read last may end with a part of one.
    part: bool,
    served: bool,
    ending: Option<Instant>,
}

impl Heads {
    pub(super) fn new() -> Self {
        let (since, begun, part, served, ending) = (now(), None, false, false, None);
        Self(Arc::new(Mutex::new(State { since, begun, part, served, ending })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There has been one.
    pub(super) fn heard(&self) {
        self.state().served = true;
    }

    /// What was read last was of a body.
    pub(super) fn no_part(&self) {
        self.state().part = false;
    }

    /// From now on, connections without a request are kept for a moment only.
    pub(super) fn end(&self) {
        self.state().ending = Some(now());
    }

    pub(super) fn is_ending(&self) -> bool {
        self.state().ending.is_some()
    }

    /// Whether the connection ends by itself, once it is ending.
    pub(super) fn will_end(&self) -> bool {
        self.state().served
    }

    fn read(&self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let mut state = self.state();
        state.begun.get_or_insert_with(now);
        // What is whole ends with a line.
        state.part = *last != b'\n';
    }

    fn wait(&self) {
        let mut state = self.state();
        state.since = now();
        state.begun = (state.part || !state.served).then_some(state.since);
    }

    fn deadline(&self) -> Instant {
        let state = self.state();
        match (state.begun, state.ending) {
            (Some(begun), _) => begun + HEAD,
            // A client that has just read an answer may have sent its next request.
            (None, Some(ending)) => state.since.max(ending) + FIRST,
            (None, None) => state.since + IDLE,
        }
    }
}

/// The library asks it for a time when the wait for a head begins, and for nothing else.
impl Timer for Heads {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Sleep>> {
        self.wait();
        Box::pin(Wait { heads: self.clone(), sleep: Box::pin(sleep_until(self.deadline())) })
    }

    fn sleep_until(&self, _: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(HEAD)
    }
}

struct Wait {
    heads: Heads,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Sleep for Wait {}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.heads.deadline();
        if self.sleep.deadline() != deadline {
            self.sleep.as_mut().reset(deadline);
        }
        self.sleep.as_mut().poll(context)
    }
}

/// A connection that tells what is read from it.
pub(super) struct Watched {
    pub(super) stream: TcpStream,
    pub(super) heads: Heads,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.heads.read(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[expect(clippy::disallowed_methods, reason = "deadlines of connections are no part of a limit")]
fn now() -> Instant {
    Instant::now()
}
