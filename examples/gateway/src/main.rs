//! A gateway that shows what tollgate does: it limits requests for each client address, in memory or in a
//! Redis that several gateways share, and passes them on to an upstream or answers with a demo page.

mod admin;
mod app;
mod args;
#[cfg(test)]
#[path = "../tests/gateway/authority.rs"]
mod authority;
mod banner;
mod demo;
#[cfg_attr(not(test), expect(dead_code, reason = "nothing says yet where keys are"))]
mod jwks;
mod proxy;
mod serve;
mod tls;

use std::{
    env,
    error::Error,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use clap::Parser as _;
use tokio::net::TcpListener;
use tollgate::{Limiter, MemoryStore, PolicyHandle};
use tracing_subscriber::{
    filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{admin::Admin, args::Args};

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    log()?;
    // What cannot be right at any time is the command line's fault, and ends here.
    let policy = app::policy(args).unwrap_or_else(|error| args::reject(error));
    let proxy = app::proxy(args).unwrap_or_else(|error| args::reject(error));
    let limiter = match &args.redis {
        Some(url) => app::redis(url)
            .await
            .unwrap_or_else(|error| args::reject(format_args!("--redis: {error}"))),
        None => Limiter::new(MemoryStore::new()),
    };
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|cause| format!("cannot listen on {}: {cause}", args.listen))?;
    let admin = Admin::bind(args).await?;
    let admin_at = admin.as_ref().map(Admin::address);
    let watch = admin.as_ref().map(Admin::watch).unwrap_or_default();
    let policies = PolicyHandle::new(policy);
    let app = app::router(&policies, &limiter, proxy, (watch, admin_at));
    let admin = admin.map(|admin| admin.serve(&limiter, &policies));
    // Who reads that it runs may end it at once.
    let stop = serve::asked_to_stop()?;
    banner::print(args, listener.local_addr()?, admin_at);
    serve::until(stop, listener, app).await;
    if let Some(admin) = admin {
        admin.abort();
    }
    limiter.shutdown().await;
    Ok(())
}

/// Logs to the standard error what `RUST_LOG` asks for, such as `info,tollgate=debug`.
fn log() -> Result<(), Box<dyn Error>> {
    let wanted = env::var("RUST_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = wanted.parse::<Targets>();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry()
        .with(lines)
        .with(filter.map_err(|cause| format!("RUST_LOG={wanted}: {cause}"))?)
        .init();
    Ok(())
}
