//! What is printed at the start.

use std::{
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tollgate::OnFailure;

use crate::args::Args;

/// Tells on the standard output what runs, and what to try. That nobody listens is no reason to end.
pub(crate) fn print(args: &Args, listening: SocketAddr, admin: Option<SocketAddr>) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text(args, listening, admin).as_bytes()).and_then(|()| stdout.flush());
}

fn text(args: &Args, listening: SocketAddr, admin: Option<SocketAddr>) -> String {
    let url = format!("http://{}/", reachable(listening));
    let (quantity, period) = (args.limit.quantity(), args.limit.period());
    let client = if args.trust.is_empty() {
        "the address that it connects from".to_owned()
    } else {
        format!("its X-Forwarded-For, as told by {}", args.trust.join(", "))
    };
    let counted = match &args.redis {
        Some(_) => format!(
            "in Redis, shared by all gateways that use it; while it does not answer, {}",
            on_failure(args.on_failure)
        ),
        None => {
            "in memory, for this process alone; --redis redis://127.0.0.1/ shares it".to_owned()
        }
    };
    let upstream = match &args.upstream {
        Some(upstream) => format!("{upstream}; bodies of at most {} bytes", args.max_body),
        None => {
            "a demo page; --upstream http://127.0.0.1:9000 puts limits before a service".to_owned()
        }
    };
    let admin = match admin {
        Some(admin) => format!("http://{}/, and /metrics there", reachable(admin)),
        None => "off".to_owned(),
    };
    format!(
        "\
tollgate-gateway listens on http://{listening}
  limit    {quantity} requests per {period:?} for each client, told apart by {client}
  counted  {counted}
  serves   {upstream}
  admin    {admin}

Try, in another terminal:
  curl -i {url}
  for i in 1 2 3 4 5 6 7; do curl -i {url}; done
  examples/gateway/try.sh {url}
  curl -i {url}healthz
  curl -i {url}readyz

The first answers say how many requests are left, a denial says how long to wait (Retry-After), and
the last two, the checks of health and readiness, are never limited. Ctrl-C ends.
"
    )
}

fn on_failure(how: OnFailure) -> String {
    match how {
        OnFailure::Deny => "requests are answered 503".to_owned(),
        OnFailure::Local { share } => format!("in memory, with {share} of the limit"),
        _ => "requests pass uncounted".to_owned(),
    }
}

/// The address under which this machine reaches a listener, which may listen on all it has.
pub(crate) fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        given => given,
    };
    SocketAddr::new(ip, listening.port())
}
