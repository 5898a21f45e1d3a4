//! The command line.

mod values;

use std::{error::Error, fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{CommandFactory as _, Parser, error::ErrorKind};
use tollgate::{ClientIp, OnFailure, Quota, key::TrustError};

use crate::{admin::Place, log::Format};

/// Limits requests for each client address, to an upstream or, without one, to a demo page.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// Redis that keeps the limits, shared by all gateways that use it, such as
    /// `redis://127.0.0.1/`; without it they are kept in memory, for this process alone
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,

    /// Requests per period for each client address, such as `5/10s`, `100/m`, `1000/h`, `10000/d`
    #[arg(long, value_name = "N/PERIOD", default_value = "5/10s", value_parser = quota)]
    pub(crate) limit: Quota,

    /// Address or range of a proxy whose `X-Forwarded-For` is believed; may be given several times
    #[arg(long, value_name = "CIDR", value_parser = proxy)]
    pub(crate) trust: Vec<String>,

    /// What happens to requests while Redis does not answer: `allow`, `deny`, or `local`, which
    /// limits them in memory; `local:0.25` to a quarter of the limit
    #[arg(long, value_name = "HOW", default_value = "allow", value_parser = on_failure)]
    pub(crate) on_failure: OnFailure,

    /// Where requests go that are within the limit: `http://127.0.0.1:9000`, or
    /// `h2c://127.0.0.1:9000` if it speaks HTTP/2, as gRPC needs; with TLS `https://up.example` or
    /// `h2://up.example`
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,

    /// File of certificates in PEM by which the upstream's is verified, instead of by those that the
    /// system trusts
    #[arg(long, value_name = "PATH", requires = "upstream")]
    pub(crate) upstream_ca: Option<PathBuf>,

    /// Host that the upstream is told, instead of the one that the client has asked for
    #[arg(long, value_name = "HOST", requires = "upstream")]
    pub(crate) host: Option<String>,

    /// For how long a connection to the upstream may take to be there, such as `500ms`, `5s`
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    #[arg(requires = "upstream")]
    pub(crate) connect_timeout: Duration,

    /// For how long the upstream may take to begin its answer, such as `500ms`, `30s`, `2m`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    #[arg(requires = "upstream")]
    pub(crate) response_timeout: Duration,

    /// What the body of a request may have, such as `64k`, `100m`, `2g`
    #[arg(long, value_name = "SIZE", default_value = "100m", value_parser = values::size)]
    #[arg(requires = "upstream")]
    pub(crate) max_body: u64,

    /// Address and port of the admin listener, with metrics and a live page, or `off`; beyond this
    /// machine it needs a token [default: 127.0.0.1:9090, or a free port if that is taken]
    #[arg(long, value_name = "ADDR", value_parser = Place::parse)]
    pub(crate) admin: Option<Place>,

    /// File with the token that the admin listener asks for; or else the environment variable
    /// `TOLLGATE_ADMIN_TOKEN` has it
    #[arg(long, value_name = "PATH")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// How lines of the log look; `RUST_LOG` says which there are, such as `info,tollgate=debug`
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Pretty)]
    pub(crate) log_format: Format,

    /// Log a line for each request: method, path, status, time, address, and the request's id
    #[arg(long)]
    pub(crate) log_requests: bool,
}

/// Ends the process as a wrong argument does: with the message and status 2.
pub(crate) fn reject(message: impl fmt::Display) -> ! {
    Args::command().error(ErrorKind::ValueValidation, message).exit()
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "it must be an address and a port, such as 127.0.0.1:8080 or [::]:80")
}

fn quota(text: &str) -> Result<Quota, Box<dyn Error + Send + Sync>> {
    const FORM: &str = "it must be a number of requests, a slash, and a period in s, m, h or d, \
                        such as 5/10s or 100/m";
    let (quantity, period) = text.split_once('/').ok_or(FORM)?;
    let digits = period.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &period[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(FORM.into()),
    };
    let count = if digits.is_empty() { 1 } else { values::whole(digits).ok_or(FORM)? };
    // A number that has no place here is far out of the quota's bounds, which the message names.
    let period = Duration::from_secs(count.saturating_mul(unit));
    Ok(Quota::new(values::whole(quantity).ok_or(FORM)?, period)?)
}

fn proxy(text: &str) -> Result<String, TrustError> {
    ClientIp::x_forwarded_for([text]).map(|_| text.to_owned())
}

fn on_failure(text: &str) -> Result<OnFailure, &'static str> {
    const FORM: &str = "it must be allow, deny, local, or local: and a share, such as local:0.25";
    match text {
        "allow" => Ok(OnFailure::Allow),
        "deny" => Ok(OnFailure::Deny),
        "local" => Ok(OnFailure::Local { share: 1.0 }),
        _ => {
            let share = text.strip_prefix("local:").and_then(|share| share.parse().ok());
            Ok(OnFailure::Local { share: share.ok_or(FORM)? })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Result<Args, String> {
        let words = ["gateway"].into_iter().chain(line.split_whitespace());
        Args::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn without_arguments() {
        let args = args("").unwrap();
        assert_eq!(args.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(args.limit, Quota::new(5, Duration::from_secs(10)).unwrap());
        assert_eq!(args.on_failure, OnFailure::Allow);
        assert!(args.redis.is_none() && args.trust.is_empty());
        assert!(args.admin.is_none() && args.admin_token_file.is_none());
    }

    #[test]
    fn the_admin_listener() {
        let place = |text: &str| args(&format!("--admin {text}")).map(|args| args.admin.unwrap());
        assert_eq!(place("off"), Ok(Place::Nowhere));
        assert_eq!(place("[::1]:0"), Ok(Place::At("[::1]:0".parse().unwrap())));
        assert!(place("on").unwrap_err().contains("it must be off, or an address and a port"));
    }

    #[test]
    fn limits() {
        let limit = |text: &str| args(&format!("--limit {text}")).unwrap().limit;
        assert_eq!(limit("20/s"), Quota::per_second(20));
        assert_eq!(limit("100/1m"), Quota::per_minute(100));
        assert_eq!(limit("1000/h"), Quota::per_hour(1_000));
        assert_eq!(limit("10000/d"), Quota::per_day(10_000));
        assert_eq!(limit("3/90s"), Quota::new(3, Duration::from_secs(90)).unwrap());
    }

    #[test]
    fn upstreams() {
        let args = args("--upstream http://up --connect-timeout 500ms --max-body 2g").unwrap();
        assert_eq!(args.upstream.as_deref(), Some("http://up"));
        assert_eq!(args.connect_timeout, Duration::from_millis(500));
        assert_eq!(args.response_timeout, Duration::from_secs(60));
        assert_eq!(args.max_body, 2 << 30);
        assert!(super::Args::try_parse_from(["gateway", "--max-body", "1k"]).is_err());
        assert!(super::Args::try_parse_from(["gateway", "--upstream-ca", "ca.pem"]).is_err());
    }

    #[test]
    fn on_failure() {
        let how = |text: &str| args(&format!("--on-failure {text}")).unwrap().on_failure;
        assert_eq!(how("deny"), OnFailure::Deny);
        assert_eq!(how("local"), OnFailure::Local { share: 1.0 });
        assert_eq!(how("local:0.25"), OnFailure::Local { share: 0.25 });
    }
}
