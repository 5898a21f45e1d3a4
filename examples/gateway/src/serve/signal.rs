//! Being asked to end, and to read the configuration again.

use std::{io, process};

use tokio::signal;

/// Ends when the process is asked to. From now on no such signal kills it, but a second one ends it at
/// once.
#[cfg(unix)]
pub(crate) fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    use signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut asked = async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    Ok(async move {
        asked().await;
        tokio::spawn(async move {
            asked().await;
            leave();
        });
    })
}

#[cfg(not(unix))]
pub(crate) fn asked_to_stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = signal::ctrl_c().await;
        tokio::spawn(async {
            let _ = signal::ctrl_c().await;
            leave();
        });
    })
}

/// Whoever asks twice does not want to wait.
fn leave() -> ! {
    tracing::warn!("asked to end again: requests in flight are cut off");
    process::exit(1)
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
