//! The command line.

mod forms;

use std::{fmt, net::SocketAddr, path::PathBuf};

use clap::{CommandFactory as _, Parser, error::ErrorKind};

use crate::{
    config::{Edits, Size, Source, Time},
    log::Format,
};

const EXIT: &str = "\
Exit status: 0 if it ended as it was asked to, with SIGTERM or SIGINT, and all requests in flight were
answered; 1 if some took too long and were cut off, if it was asked a second time, which ends it at once,
or if the configuration cannot be used or a port cannot be had; 2 if the command line cannot be read.

Environment: TOLLGATE_REDIS_URL, TOLLGATE_ADMIN_TOKEN and TOLLGATE_JWT_<NAME>_SECRET go before what the
configuration says; RUST_LOG says what is logged, such as `info,tollgate=debug`.";

/// Limits requests for each client address, or as a file says, to an upstream or, without one, to a
/// demo page.
#[derive(Parser)]
#[command(version, after_help = EXIT)]
pub(crate) struct Args {
    /// What to do, as a file says; --print-config shows one, with all that it can say
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["limit", "trust", "on_failure", "upstream"])]
    config: Option<PathBuf>,

    /// Says whether the configuration can be used, and if not, in which line and why
    #[arg(long, conflicts_with_all = ["print_config", "explain", "digest"])]
    pub(crate) check: bool,

    /// Tells which route a request would take, and what it would meet there
    #[arg(long, num_args = 2, value_names = ["METHOD", "PATH"])]
    #[arg(conflicts_with_all = ["print_config", "digest"])]
    pub(crate) explain: Option<Vec<String>>,

    /// Prints the configuration, with what the other arguments say
    #[arg(long, conflicts_with = "digest")]
    pub(crate) print_config: bool,

    /// Reads an API key from the standard input, and prints its digest for the configuration
    #[arg(long)]
    pub(crate) digest: bool,

    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", value_parser = forms::address)]
    listen: Option<SocketAddr>,

    /// Redis that keeps the limits, shared by all gateways that use it, such as
    /// `redis://127.0.0.1/`, `redis+cluster://a:7000,b:7000` or `redis+sentinel://a,b,c/mymaster`; without it
    /// they are kept in memory, for this process alone
    #[arg(long, value_name = "URL")]
    redis: Option<String>,

    /// Requests per period for each client address, such as `5/10s`, `100/m`, `1000/h`, `10000/d`
    /// [default: 5/10s]
    #[arg(long, value_name = "N/PERIOD", value_parser = forms::quota)]
    limit: Option<String>,

    /// Address or range of a proxy whose `X-Forwarded-For` is believed; may be given several times
    #[arg(long, value_name = "CIDR", value_parser = forms::proxy)]
    trust: Vec<String>,

    /// What happens to requests while Redis does not answer: `allow`, `deny`, or `local`, which
    /// limits them in memory; `local:0.25` to a quarter of the limit [default: allow]
    #[arg(long, value_name = "HOW", value_parser = forms::on_failure)]
    on_failure: Option<String>,

    /// Where requests go that are within the limit: `http://127.0.0.1:9000`, or
    /// `h2c://127.0.0.1:9000` if it speaks HTTP/2, as gRPC needs; with TLS `https://`, `h2://`
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Host that the upstream is told, instead of the one that the client has asked for
    #[arg(long, value_name = "HOST", requires = "upstream")]
    host: Option<String>,

    /// For how long a connection to the upstream may take to be there, such as `500ms`, `5s`
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = forms::same::<Time>, requires = "upstream")]
    connect_timeout: Option<String>,

    /// For how long the upstream may take to begin its answer, such as `500ms`, `30s`, `2m`
    /// [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = forms::same::<Time>, requires = "upstream")]
    response_timeout: Option<String>,

    /// What the body of a request may have, such as `64k`, `100m`, `2g` [default: 100m]
    #[arg(long, value_name = "SIZE", value_parser = forms::same::<Size>, requires = "upstream")]
    max_body: Option<String>,

    /// File of certificates, in PEM, that the upstream's must come from; without it, the system's
    #[arg(long, value_name = "PATH", requires = "upstream")]
    upstream_ca: Option<PathBuf>,

    /// Address and port of the admin listener, with metrics and a live page, or `off`; beyond this
    /// machine it needs a token [default: 127.0.0.1:9090, or a free port if that is taken]
    #[arg(long, value_name = "ADDR", value_parser = forms::place)]
    admin: Option<String>,

    /// File with the token that the admin listener asks for; or else the environment variable
    /// `TOLLGATE_ADMIN_TOKEN` has it
    #[arg(long, value_name = "PATH")]
    admin_token_file: Option<PathBuf>,

    /// How the log looks [default: pretty]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<Format>,

    /// Logs a line for each request
    #[arg(long)]
    log_requests: bool,
}

impl Args {
    /// The configuration that they ask for.
    pub(crate) fn source(&self) -> Source {
        let mut edits = Edits::default();
        if let Some(address) = self.listen {
            edits.set("listen", address.to_string());
        }
        for (at, path) in
            [("admin.token_file", &self.admin_token_file), ("upstream.main.ca", &self.upstream_ca)]
        {
            if let Some(path) = path {
                // As it is from here, not from the file.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                edits.set(at, path.display().to_string());
            }
        }
        if let Some(format) = self.log_format {
            edits.set("log.format", format.name());
        }
        if self.log_requests {
            edits.set("log.requests", true);
        }
        for (at, given) in [
            ("redis.url", &self.redis),
            ("policy.0.limit.0.quota", &self.limit),
            ("policy.0.on_failure", &self.on_failure),
            ("upstream.main.url", &self.upstream),
            ("upstream.main.host", &self.host),
            ("upstream.main.connect_timeout", &self.connect_timeout),
            ("upstream.main.response_timeout", &self.response_timeout),
            ("upstream.main.max_body", &self.max_body),
            ("admin.listen", &self.admin),
        ] {
            if let Some(text) = given {
                edits.set(at, text.as_str());
            }
        }
        if !self.trust.is_empty() {
            edits.set("client_ip.header", "x-forwarded-for");
            edits.list("client_ip.trusted", &self.trust);
        }
        if self.upstream.is_some() {
            // Who may read its answers is for the upstream to say.
            edits.remove("route.1.cors");
        }
        Source::new(self.config.clone(), edits)
    }
}

/// Ends the process as a wrong argument does: with the message and status 2.
pub(crate) fn reject(message: impl fmt::Display) -> ! {
    Args::command().error(ErrorKind::ValueValidation, message).exit()
}
