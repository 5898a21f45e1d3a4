//! A gateway that shows what tollgate does: it limits requests, in memory or in a Redis that several gateways
//! share, and passes them on to upstreams or answers with a demo page, as its command line or a file says.

mod admin;
mod app;
mod args;
#[cfg(test)]
#[path = "../tests/gateway/authority.rs"]
mod authority;
mod banner;
mod config;
mod demo;
mod file;
mod jwks;
mod log;
mod proxy;
mod reload;
mod routes;
mod serve;
mod store;
mod tls;

use std::{
    error::Error,
    fmt,
    io::{self, Read as _, Write as _},
    process::{self, ExitCode},
};

use clap::Parser as _;
use tokio::net::TcpListener;
use tollgate::{ApiKeys, Limiter, MemoryStore, PolicyHandle};

use crate::{
    admin::Admin,
    app::App,
    args::Args,
    config::{Config, Source},
    reload::Reload,
    routes::{Around, Routes},
};

fn main() -> ExitCode {
    let args = Args::parse();
    let source = args.source();
    let done = if args.digest {
        digest()
    } else if args.print_config {
        source.text().map_err(Into::into).and_then(|text| print(&text))
    } else {
        run(&args, source)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(args: &Args, source: Source) -> Result<(), Box<dyn Error>> {
    let config = source.read().unwrap_or_else(|error| refuse(&source, &error));
    if !args.check && args.explain.is_none() {
        log::start(config.file.log.format)?;
        return serve(source, config).await;
    }
    // What is not right now may be right later; here only what never can be is wrong.
    store::check(&config).unwrap_or_else(|error| refuse(&source, &error));
    admin::check(&config).unwrap_or_else(|error| refuse(&source, &error));
    let around = Around::new(Limiter::new(MemoryStore::new()));
    let routes =
        Routes::build(config, &around, None).unwrap_or_else(|error| refuse(&source, &error));
    match args.explain.as_deref() {
        Some([method, path]) => print(&routes.explain(method, path)?),
        _ => print(&format!("{}: it can be used; {}\n", routes.name(), routes.summary())),
    }
}

async fn serve(source: Source, config: Config) -> Result<(), Box<dyn Error>> {
    let limiter = store::limiter(&config).await.unwrap_or_else(|error| refuse(&source, &error));
    let listen = config.file.listen;
    let admin = Admin::prepare(&config).unwrap_or_else(|error| refuse(&source, &*error));
    let mut around = Around::new(limiter.clone());
    around.watch = admin.as_ref().map(Admin::watch).unwrap_or_default();
    let routes =
        Routes::build(config, &around, None).unwrap_or_else(|error| refuse(&source, &error));
    // Ports are taken once all else is right.
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|cause| format!("cannot listen on {listen}: {cause}"))?;
    let admin = match admin {
        Some(admin) => Some(admin.bind().await?),
        None => None,
    };
    if let Some(admin) = &admin {
        around.show_page(admin.address());
    }
    let banner = banner::text(&routes, listener.local_addr()?, around.page());
    let policies = PolicyHandle::new(routes.policies());
    let app = App::new(routes);
    let admin = admin.map(|admin| admin.serve(&limiter, &policies));
    let reload = Reload { source, app: app.clone(), policies, around }.start()?;
    // Who reads that it runs may end it at once.
    let stop = serve::asked_to_stop()?;
    // That nobody listens is no reason to end.
    let _ = print(&banner);
    let ended = serve::until(stop, listener, app.router()).await;
    reload.abort();
    if let Some(admin) = admin {
        admin.abort();
    }
    limiter.shutdown().await;
    if ended { Ok(()) } else { Err("requests in flight were cut off".into()) }
}

/// Ends the process because of what it is told to do: by a file, or else by its command line.
fn refuse(source: &Source, error: &(impl fmt::Display + ?Sized)) -> ! {
    if !source.is_file() {
        args::reject(error);
    }
    eprintln!("error: {error}");
    process::exit(1)
}

/// Prints the digest of the API key that comes in, so that it does not stand in a list of processes.
fn digest() -> Result<(), Box<dyn Error>> {
    let mut key = Vec::new();
    io::stdin().read_to_end(&mut key)?;
    let key = key.trim_ascii();
    if key.is_empty() {
        return Err("there is no key on the standard input".into());
    }
    print(&format!("{}\n", ApiKeys::digest(key)))
}

fn print(text: &str) -> Result<(), Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
