//! Callers that never pause, some of which go away before they are answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Request, Response};
use tokio::time::{sleep, timeout};
use tollgate::{Decision, Outcome, RateLimit, Rejection, Source};
use tower::ServiceExt as _;

use crate::{
    HANG,
    books::{Books, End},
    policies::{Caller, Handler, KEYS, MANY, NAMES, WIDE},
};

pub(crate) async fn keep_calling(
    services: Arc<[RateLimit<Handler>]>,
    books: Arc<Books>,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        let policy = fastrand::usize(..NAMES.len());
        let key = fastrand::usize(..if policy == WIDE { MANY } else { KEYS });
        let call = call(services[policy].clone(), Caller(key));
        books.begun(policy);
        let begun = Instant::now();
        let end = match fastrand::u8(..64) {
            0 => timeout(soon(), call).await.unwrap_or(End::Dropped),
            1 => aborted(call).await,
            // As soon as it has to wait: what Redis answers at once is else hardly ever dropped.
            2 => timeout(Duration::ZERO, call).await.unwrap_or(End::Dropped),
            _ => timeout(HANG, call).await.unwrap_or(End::Hung),
        };
        books.ended(policy, end, begun);
        // A call that never waits must not keep the others from theirs.
        tokio::task::yield_now().await;
    }
}

/// A call on a task of its own, which is ended at some time.
async fn aborted(call: impl Future<Output = End> + Send + 'static) -> End {
    let task = tokio::spawn(call);
    sleep(soon()).await;
    task.abort();
    match task.await {
        Ok(end) => end,
        Err(error) if error.is_cancelled() => End::Dropped,
        Err(_) => End::Unexpected,
    }
}

fn soon() -> Duration {
    Duration::from_micros(fastrand::u64(..20_000))
}

async fn call(service: RateLimit<Handler>, caller: Caller) -> End {
    let mut request = Request::new(());
    request.extensions_mut().insert(caller);
    match service.oneshot(request).await {
        Ok(response) => end_of(&response),
        Err(never) => match never {},
    }
}

/// How a request ended, by its answer.
pub(crate) fn end_of<B>(response: &Response<B>) -> End {
    let extensions = response.extensions();
    if let Some(Rejection::StoreFailed(kind)) = extensions.get() {
        return if response.status() == 503 { End::Failed(*kind) } else { End::Unexpected };
    }
    let Some(decision) = extensions.get::<Decision>() else { return End::Unexpected };
    match (response.status().as_u16(), decision.outcome(), decision.source()) {
        (200, Outcome::Allowed, Source::Redis) => End::Redis,
        (200, Outcome::Allowed, Source::Lease) => End::Lease,
        (200, Outcome::Allowed, Source::Fallback) => End::Local,
        (200, Outcome::FailedOpen, Source::None) => End::Open,
        (429, Outcome::Denied, Source::Redis) => End::Denied,
        (429, Outcome::Denied, Source::Cache) => End::Remembered,
        (429, Outcome::Denied, Source::Fallback) => End::DeniedLocally,
        _ => End::Unexpected,
    }
}
