use bytes::Bytes;
use http::{HeaderValue, Response};

use super::{Respond, answer, grpc, message};
use crate::{key::RequestHead, limiter::Rejection};

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Answers with a short text. gRPC clients, told by their content type, are answered in gRPC's way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Respond for Text {
    fn respond(&self, rejection: &Rejection, head: RequestHead<'_>) -> Response<Bytes> {
        if grpc::asks(head) {
            return grpc::answer(rejection);
        }
        let text = Bytes::from_static(message(rejection).as_bytes());
        answer(rejection, PLAIN, text)
    }
}
