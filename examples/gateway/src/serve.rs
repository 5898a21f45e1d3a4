//! Serving, and ending without breaking off what is in flight.

use std::{future::IntoFuture as _, io, net::SocketAddr, time::Duration};

use axum::Router;
use tokio::{net::TcpListener, signal, sync::oneshot, time::sleep};

/// How long requests in flight may take to end, once the process is asked to.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until SIGINT or SIGTERM, and then until all requests that have begun are answered.
pub(crate) async fn until_signal(listener: TcpListener, app: Router) -> io::Result<()> {
    let (asked, drain) = oneshot::channel();
    let stop = ask_to_stop()?;
    let server = axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async {
            stop.await;
            tracing::info!("ending, after the requests in flight");
            let _ = asked.send(());
        });
    let overdue = async {
        let _ = drain.await;
        sleep(DRAIN).await;
    };
    tokio::select! {
        served = server.into_future() => served,
        () = overdue => {
            tracing::warn!("some requests have not ended within {DRAIN:?}");
            Ok(())
        }
    }
}

/// Ends when the process is asked to. From now on no such signal kills it.
#[cfg(unix)]
fn ask_to_stop() -> io::Result<impl Future<Output = ()>> {
    use signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn ask_to_stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = signal::ctrl_c().await;
    })
}
