use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a response: the service's own, or that of an answer without the service.
    #[derive(Debug)]
    pub struct ResponseBody<R> {
        #[pin]
        kind: Kind<R>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = KindProjection]
    enum Kind<R> {
        Service { #[pin] body: R },
        Answer { bytes: Option<Bytes> },
    }
}

impl<R> ResponseBody<R> {
    pub(crate) const fn service(body: R) -> Self {
        Self { kind: Kind::Service { body } }
    }

    pub(crate) fn answer(bytes: Bytes) -> Self {
        Self { kind: Kind::Answer { bytes: Some(bytes).filter(|bytes| !bytes.is_empty()) } }
    }
}

/// Layers that answer themselves, such as `CorsLayer` and `TimeoutLayer`, need an empty body.
impl<R: Default> Default for ResponseBody<R> {
    fn default() -> Self {
        Self::service(R::default())
    }
}

impl<R: Body<Data = Bytes>> Body for ResponseBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.project().kind.project() {
            KindProjection::Service { body } => body.poll_frame(cx),
            KindProjection::Answer { bytes } => Poll::Ready(bytes.take().map(Frame::data).map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Service { body } => body.is_end_stream(),
            Kind::Answer { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Service { body } => body.size_hint(),
            Kind::Answer { bytes } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}
