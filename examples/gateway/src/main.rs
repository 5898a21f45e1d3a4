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
mod log;
mod proxy;
mod serve;
mod tls;

use std::{error::Error, process::ExitCode};

use clap::Parser as _;
use tokio::net::TcpListener;
use tollgate::{Limiter, MemoryStore, PolicyHandle};

use crate::{admin::Admin, args::Args, log::Requests};

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
    log::start(args.log_format)?;
    // What cannot be right at any time is the command line's fault, and ends here.
    let policy = app::policy(args).unwrap_or_else(|error| args::reject(error));
    let proxy = app::proxy(args).unwrap_or_else(|error| args::reject(error));
    let trusted = app::trusted(args).unwrap_or_else(|error| args::reject(error));
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
    let app = app::router(&policies, &limiter, proxy, (watch, admin_at))
        .layer(Requests::new(trusted, args.log_requests));
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
