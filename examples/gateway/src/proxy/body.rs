//! The body of a request on its way to the upstream.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    BoxError,
    body::{Body, Bytes, HttpBody},
    http::HeaderMap,
};
use http_body::{Frame, SizeHint};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use super::{answer::Refusal, headers};

/// Passes a body on as it comes, up to a size, and tells how far it is.
pub(super) struct Sent {
    body: Body,
    left: u64,
    sized: bool,
    progress: Arc<Progress>,
}

impl Sent {
    pub(super) fn new(body: Body, most: u64, sized: bool) -> (Self, Arc<Progress>) {
        let stage = if body.is_end_stream() { Stage::Done } else { Stage::Upstream };
        let progress = Arc::new(Progress {
            stage: Mutex::new((stage, now())),
            done: Notify::new(),
            too_large: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        });
        (Self { body, left: most, sized, progress: Arc::clone(&progress) }, progress)
    }

    fn pass(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BoxError> {
        match frame.into_data() {
            Ok(data) => {
                let size = u64::try_from(data.len()).unwrap_or(u64::MAX);
                let Some(left) = self.left.checked_sub(size) else {
                    self.progress.too_large.store(true, Ordering::Relaxed);
                    return Err("the body is too large".into());
                };
                self.left = left;
                Ok(Frame::data(data))
            }
            Err(frame) => Ok(match frame.into_trailers() {
                Ok(trailers) => Frame::trailers(clean(&trailers)),
                Err(other) => other,
            }),
        }
    }
}

fn clean(trailers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in trailers.iter().filter(|(name, _)| headers::may_trail(name)) {
        kept.append(name, value.clone());
    }
    kept
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let stage = match &polled {
            Poll::Pending => Stage::Client,
            Poll::Ready(Some(Ok(_))) if !self.body.is_end_stream() => Stage::Upstream,
            Poll::Ready(_) => Stage::Done,
        };
        self.progress.enter(stage);
        polled.map(|frame| {
            frame.map(|frame| match frame {
                Ok(frame) => self.pass(frame),
                Err(error) => {
                    self.progress.unreadable.store(true, Ordering::Relaxed);
                    Err(error.into())
                }
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { self.body.size_hint() } else { SizeHint::default() }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.progress.enter(Stage::Done);
    }
}

#[expect(clippy::disallowed_methods, reason = "deadlines of connections are no part of a limit")]
fn now() -> Instant {
    Instant::now()
}

/// Who is awaited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client, to send more.
    Client,
    /// The upstream, to take more.
    Upstream,
    /// The upstream, to answer.
    Done,
}

/// How far a body is, for those that wait for the answer.
pub(super) struct Progress {
    stage: Mutex<(Stage, Instant)>,
    done: Notify,
    too_large: AtomicBool,
    unreadable: AtomicBool,
}

impl Progress {
    fn enter(&self, next: Stage) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let again = stage.0 == next && next != Stage::Upstream;
        if !again {
            *stage = (next, now());
        }
        drop(stage);
        if !again && next == Stage::Done {
            self.done.notify_one();
        }
    }

    /// What is wrong with the body, if that is why a request failed.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        if self.too_large.load(Ordering::Relaxed) {
            Some(Refusal::TOO_LARGE)
        } else {
            self.unreadable.load(Ordering::Relaxed).then_some(Refusal::UNREADABLE)
        }
    }

    /// Ends when the upstream has neither taken more of the body nor answered for `upstream`, or the
    /// client has sent nothing for `client`, which a client that converses may do.
    pub(super) async fn overdue(&self, upstream: Duration, client: Option<Duration>) -> Refusal {
        loop {
            let (stage, since) = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
            let now = now();
            let (allowed, refusal) = match stage {
                Stage::Client => (client, Refusal::SLOW),
                Stage::Upstream | Stage::Done => (Some(upstream), Refusal::SILENT),
            };
            let deadline = allowed.map(|allowed| since + allowed);
            if deadline.is_some_and(|deadline| deadline <= now) {
                return refusal;
            }
            // That the client goes on and the upstream does not is seen by looking again.
            let look = deadline.map_or(now + upstream, |deadline| deadline.min(now + upstream));
            if stage == Stage::Done {
                sleep_until(look).await;
            } else {
                let _ = timeout_at(look, self.done.notified()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAM: Duration = Duration::from_secs(5);
    const CLIENT: Duration = Duration::from_secs(60);

    /// What is overdue after the stages that a body has been in, each for some seconds; and when.
    async fn overdue(stages: &[(Stage, u64)], client: Option<Duration>) -> (Refusal, Duration) {
        let (sent, progress) = Sent::new(Body::from("x"), 1, true);
        let begun = now();
        let stages = async {
            for (stage, seconds) in stages {
                progress.enter(*stage);
                tokio::time::sleep(Duration::from_secs(*seconds)).await;
            }
            std::future::pending::<()>().await;
        };
        let refusal = tokio::select! {
            refusal = progress.overdue(UPSTREAM, client) => refusal,
            () = stages => Refusal::LOOP,
        };
        drop(sent);
        (refusal, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_awaited_is_overdue() {
        let seconds = Duration::from_secs;
        let silent = overdue(&[(Stage::Done, 0)], Some(CLIENT)).await;
        assert_eq!(silent.0, Refusal::SILENT);
        assert_eq!(silent.1.as_secs(), 5);
        let slow = overdue(&[(Stage::Client, 0)], Some(CLIENT)).await;
        assert_eq!((slow.0, slow.1.as_secs()), (Refusal::SLOW, 60));
        // The time of the upstream begins when it has all.
        let late = overdue(&[(Stage::Client, 50), (Stage::Done, 0)], Some(CLIENT)).await;
        assert_eq!((late.0, late.1.as_secs()), (Refusal::SILENT, 55));
        // One that takes no more is found out within twice its time.
        let stuck = overdue(&[(Stage::Client, 51), (Stage::Upstream, 0)], Some(CLIENT)).await;
        assert_eq!(stuck.0, Refusal::SILENT);
        assert!((seconds(56)..=seconds(61)).contains(&stuck.1), "{stuck:?}");
        // Each part that comes counts anew.
        let parts = [(Stage::Client, 50), (Stage::Upstream, 1)].repeat(3);
        assert_eq!(overdue(&parts, Some(CLIENT)).await.0, Refusal::SILENT);
        // Who converses may be quiet for as long as it likes.
        let quiet = [(Stage::Client, 1_000), (Stage::Done, 0)];
        assert_eq!(overdue(&quiet, None).await.1.as_secs(), 1_005);
    }
}
