//! Being asked to end, and to read the configuration again.

use std::io;

use tokio::signal;

/// Ends when the process is asked to. From now on no such signal kills it.
#[cfg(unix)]
pub(crate) fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
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
pub(crate) fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = signal::ctrl_c().await;
    })
}

/// What asks to read the configuration again: SIGHUP, which from now on does not kill the process.
pub(crate) struct Reloads(#[cfg(unix)] signal::unix::Signal);

impl Reloads {
    pub(crate) async fn recv(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

pub(crate) fn asked_to_reload() -> io::Result<Reloads> {
    #[cfg(unix)]
    return signal::unix::signal(signal::unix::SignalKind::hangup()).map(Reloads);
    #[cfg(not(unix))]
    return Ok(Reloads());
}
