//! Answers that come before a client has sent all of its body.
//!
//! To close a connection from which something is unread makes the system forget what was written to it:
//! a client that sends first and reads then would find no answer, but a broken connection. So what
//! nobody wants of a body is read on for a while, and thrown away.
//!
//! In HTTP/2 a stream ends without its connection, but then it is reset, upon which many clients forget the
//! answer. To read on gives them room to send the rest.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Request, header::EXPECT},
};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::{runtime::Handle, time::timeout};

use super::heads::Heads;

const LONGEST: Duration = Duration::from_secs(10);
const MOST: usize = 64 << 20;

pub(super) fn wrap(request: Request<Incoming>, heads: &Heads) -> Request<Body> {
    // The client sends nothing until it is asked to, which reading would do.
    let asks = request.headers().contains_key(EXPECT);
    request.map(|body| {
        if body.is_end_stream() {
            return Body::new(body);
        }
        Body::new(Lingering { body: Some(body), comes: !asks, heads: heads.clone() })
    })
}

struct Lingering {
    body: Option<Incoming>,
    comes: bool,
    heads: Heads,
}

impl HttpBody for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.comes = true;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if polled.is_ready() {
            self.heads.no_part();
        }
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| self.comes && !body.is_end_stream());
        if let (Some(body), Ok(runtime)) = (unread, Handle::try_current()) {
            runtime.spawn(timeout(LONGEST, discard(body, self.heads.clone())));
        }
    }
}

async fn discard(mut body: Incoming, heads: Heads) {
    let mut left = MOST;
    while let Some(Ok(frame)) = body.frame().await {
        heads.no_part();
        let size = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(size) else { return };
        left = rest;
    }
}
