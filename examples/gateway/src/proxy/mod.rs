//! A reverse proxy: takes a request, passes it on to an upstream, and its answer back, as they come.
//!
//! Of an answer, only the beginning has a deadline: what comes after it may be a stream of events that
//! is quiet for hours.

mod answer;
mod body;
mod client;
mod connect;
mod forwarded;
mod headers;
pub(crate) mod target;
mod tunnel;
mod upstream;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    body::{Body, HttpBody as _},
    extract::{ConnectInfo, Request},
    http::{
        HeaderValue, Response, StatusCode, Uri, Version,
        header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING},
        request::Parts,
        uri::{Authority, PathAndQuery, Scheme},
    },
};
use hyper::upgrade::OnUpgrade;
use rustls::ClientConfig;

pub(crate) use self::upstream::Upstream;
use self::{
    answer::Refusal,
    body::{Progress, Sent},
    client::{Client, Failure, Received},
    connect::Connector,
    forwarded::Way,
    tunnel::Tunnel,
    upstream::Protocol,
};
use crate::log::X_REQUEST_ID;

/// Passes requests on to one upstream.
#[derive(Clone)]
pub(crate) struct Proxy(Arc<Inner>);

struct Inner {
    settings: Upstream,
    scheme: Scheme,
    origin: Authority,
    host: Option<Authority>,
    client: Client,
    /// So that a failure is logged when it begins and when it is over, and not for each request.
    failing: AtomicBool,
}

impl Proxy {
    fn new(
        settings: Upstream,
        (protocol, tls): (Protocol, ClientConfig),
        origin: Authority,
        host: Option<Authority>,
    ) -> Self {
        let connector = Connector::new(tls, settings.connect_timeout);
        let client = Client::new(protocol, &origin, connector);
        let (scheme, failing) = (protocol.scheme(), AtomicBool::new(false));
        Self(Arc::new(Inner { settings, scheme, origin, host, client, failing }))
    }

    /// Answers a request that [`target::check`] has let in.
    pub(crate) async fn forward(self, request: Request) -> Response<Body> {
        match self.0.forward(request).await {
            Ok(response) => response,
            Err(refusal) => refusal.response(),
        }
    }
}

impl Inner {
    async fn forward(&self, request: Request) -> Result<Response<Body>, Refusal> {
        let (mut parts, body) = request.into_parts();
        if headers::goes_in_circles(&parts.headers) {
            return Err(Refusal::LOOP);
        }
        if body.size_hint().lower() > self.settings.max_body {
            return Err(Refusal::TOO_LARGE);
        }
        let tunnel = self.tunnel(&mut parts, &body);
        let grpc = |kind: &HeaderValue| kind.as_bytes().starts_with(b"application/grpc");
        let converses = parts.headers.get(CONTENT_TYPE).is_some_and(grpc);
        let patience = (!converses).then_some(self.settings.body_timeout);
        let again = parts.method.is_safe() && body.is_end_stream();

        let mut parts = self.outgoing(parts, tunnel.as_ref())?;
        let sized = headers::measure(&mut parts.headers, body.is_end_stream());
        let (body, progress) = Sent::new(body, self.settings.max_body, sized);
        let second = again.then(|| parts.clone());
        let limit = progress.overdue(self.settings.response_timeout, patience);
        let sent = async {
            let first = self.client.send(Request::from_parts(parts, body)).await;
            match (first, second) {
                // Over a connection that the upstream was about to close, most likely. To ask again
                // does no harm.
                (Err(failure), Some(parts)) if failure.refusal == Refusal::BROKEN => {
                    let (body, _) = Sent::new(Body::empty(), 0, true);
                    self.client.send(Request::from_parts(parts, body)).await
                }
                (first, _) => first,
            }
        };
        let response = tokio::select! {
            biased;
            sent = sent => sent.map_err(|failure| self.failed(failure, &progress))?,
            refusal = limit => return Err(self.overdue(refusal)),
        };
        self.well();
        incoming(response, tunnel)
    }

    /// What the upstream is sent in place of what the client has.
    fn outgoing(&self, client: Parts, tunnel: Option<&Tunnel>) -> Result<Parts, Refusal> {
        let peer = client.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        let named = target::host(client.version, &client.uri, &client.headers);
        let named = named.map_err(Refusal::bad_request)?.map(str::to_owned);
        let path = client.uri.path_and_query().cloned();

        let (mut parts, ()) = Request::new(()).into_parts();
        parts.version = self.client.version();
        parts.method = client.method;
        parts.headers = client.headers;
        let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let (peer, trusted) = (peer.unwrap_or(unknown), &self.settings.trusted);
        // Read before those fields go that the connection names, and written after.
        let way = Way::read(&parts.headers, peer, named.as_deref(), trusted);
        let id = parts.headers.remove(X_REQUEST_ID);
        headers::prepare(
            &mut parts.headers,
            client.version,
            parts.version,
            tunnel.map(|tunnel| &tunnel.protocol),
        );
        way.write(&mut parts.headers);
        parts.headers.extend(id.map(|id| (X_REQUEST_ID, id)));

        let host = match &self.host {
            Some(host) => host.clone(),
            None => named
                .as_deref()
                .and_then(|host| host.parse().ok())
                .unwrap_or_else(|| self.origin.clone()),
        };
        parts.headers.remove(HOST);
        let target = match &self.client {
            Client::Http1(_) => {
                let host = HeaderValue::from_str(host.as_str());
                parts.headers.insert(HOST, host.map_err(|_| Refusal::SENSELESS)?);
                &self.origin
            }
            Client::Http2(_) => &host,
        };
        let mut uri = Uri::default().into_parts();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = Some(target.clone());
        uri.path_and_query = path.or_else(|| Some(PathAndQuery::from_static("/")));
        parts.uri = Uri::from_parts(uri).map_err(|_| Refusal::SENSELESS)?;
        Ok(parts)
    }

    /// What a client needs that asks to go over to another protocol, if the upstream can.
    fn tunnel(&self, parts: &mut Parts, body: &Body) -> Option<Tunnel> {
        let client = parts.extensions.remove::<OnUpgrade>()?;
        let protocol = headers::upgrade(parts.version, &parts.headers)?;
        let possible = matches!(self.client, Client::Http1(_)) && body.is_end_stream();
        let held = parts.extensions.get().cloned();
        possible.then_some(Tunnel { client, protocol, held })
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Refusal {
        if let Some(refusal) = progress.refusal() {
            return refusal;
        }
        let cause: &dyn std::error::Error = &*failure.cause;
        let causes = std::iter::successors(Some(cause), |cause| cause.source());
        let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        self.log(failure.refusal, &text);
        failure.refusal
    }

    fn overdue(&self, refusal: Refusal) -> Refusal {
        if refusal.is_failure() {
            self.log(refusal, "a timeout");
        }
        refusal
    }

    fn log(&self, refusal: Refusal, cause: &str) {
        let upstream = &self.settings.url;
        if self.failing.swap(true, Ordering::Relaxed) {
            tracing::debug!(upstream, cause, ?refusal, "the upstream fails");
        } else {
            tracing::warn!(upstream, cause, "the upstream fails");
        }
    }

    fn well(&self) {
        if self.failing.load(Ordering::Relaxed) && self.failing.swap(false, Ordering::Relaxed) {
            tracing::info!(upstream = self.settings.url, "the upstream answers again");
        }
    }
}

/// Makes an answer of the upstream one to the client.
fn incoming(
    response: Response<Received>,
    tunnel: Option<Tunnel>,
) -> Result<Response<Body>, Refusal> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return tunnel.ok_or(Refusal::SENSELESS)?.open(response);
    }
    let (mut parts, body) = response.into_parts();
    // The version is that of the message on its way here. The server lowers its own if the client must.
    parts.version = Version::HTTP_11;
    target::framing(&parts.headers).map_err(|_| Refusal::SENSELESS)?;
    if parts.headers.contains_key(TRANSFER_ENCODING) {
        // The length that counts is that of the chunks.
        parts.headers.remove(CONTENT_LENGTH);
    }
    headers::strip(&mut parts.headers);
    let sized = headers::measure(&mut parts.headers, body.is_end_stream());
    // What the client library has put here is of no concern to layers outside.
    parts.extensions.clear();
    Ok(Response::from_parts(parts, body.into_body(sized)))
}
