//! What is logged, and the ids of requests, by which lines of several services are found together.

mod access;
mod id;
mod requests;

use std::{
    env,
    error::Error,
    io::{self, IsTerminal as _},
};

use clap::ValueEnum;
use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer as _, filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

pub(crate) use self::{id::X_REQUEST_ID, requests::Requests};

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// For people, in colours on a terminal
    #[default]
    Pretty,
    /// An object for each line
    Json,
}

impl Format {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pretty => "pretty",
            Self::Json => "json",
        }
    }
}

/// Logs to the standard error what `RUST_LOG` asks for, such as `info,tollgate=debug`.
pub(crate) fn start(format: Format) -> Result<(), Box<dyn Error>> {
    let wanted = env::var("RUST_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = wanted.parse::<Targets>();
    let filter = filter.map_err(|cause| format!("RUST_LOG={wanted}: {cause}"))?;
    // A line that is wanted is nothing without its request.
    let filter = filter.with_target(requests::SPANS, LevelFilter::ERROR);
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        Format::Pretty => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        Format::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry().with(lines).with(filter).init();
    Ok(())
}
