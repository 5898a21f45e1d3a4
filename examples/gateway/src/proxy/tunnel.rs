//! Connections that go over to another protocol, such as WebSocket.

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue, Response,
        header::{CONNECTION, UPGRADE},
    },
};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::{answer::Refusal, client::Received, headers};
use crate::serve::Held;

/// The client's side of a tunnel to be.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) protocol: HeaderValue,
    /// Keeps the process from ending while the tunnel is in use.
    pub(super) held: Option<Held>,
}

impl Tunnel {
    /// Passes on that the upstream goes over, and then what either side says until both have ended.
    pub(super) fn open(self, response: Response<Received>) -> Result<Response<Body>, Refusal> {
        let agreed = headers::upgrade(response.version(), response.headers());
        let same = |protocol: &HeaderValue| {
            protocol.as_bytes().eq_ignore_ascii_case(self.protocol.as_bytes())
        };
        if !agreed.as_ref().is_some_and(same) {
            return Err(Refusal::SENSELESS);
        }
        let (mut parts, _) = response.into_parts();
        let Some(upstream) = parts.extensions.remove::<OnUpgrade>() else {
            return Err(Refusal::SENSELESS);
        };
        headers::strip(&mut parts.headers);
        go_over(&mut parts.headers, self.protocol);
        let (client, held) = (self.client, self.held);
        tokio::spawn(async move {
            let ends = tokio::try_join!(client, upstream);
            let (Ok((client, upstream)), _held) = (ends, held) else { return };
            let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
            if let Err(error) = copy_bidirectional(&mut client, &mut upstream).await {
                tracing::debug!(%error, "a tunnel has broken");
            }
        });
        Ok(Response::from_parts(parts, Body::empty()))
    }
}

fn go_over(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}
