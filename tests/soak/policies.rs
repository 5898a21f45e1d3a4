//! The policies under test, and what they admit.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use tollgate::{
    Algorithm, Decision, Key, Limit, Limiter, Lockout, OnFailure, Outcome, Policy, PolicyBuilder,
    Quota, RateLimit, RateLimitLayer, Source, StoreErrorKind, key,
};
use tower::{Layer as _, Service};

use crate::books::Books;

/// Keys of each policy, but the wide one.
pub(crate) const KEYS: usize = 4;
/// Keys of the wide one.
pub(crate) const MANY: usize = 20_000;
/// What this process may admit by itself, of a quota.
const SHARE: f64 = 0.25;

/// A policy by its place.
pub(crate) const NAMES: [&str; 6] = ["open", "closed", "local", "leased", "handles", "wide"];
pub(crate) const OPEN: usize = 0;
pub(crate) const CLOSED: usize = 1;
pub(crate) const LOCAL: usize = 2;
pub(crate) const LEASED: usize = 3;
pub(crate) const HANDLES: usize = 4;
pub(crate) const WIDE: usize = 5;

/// Whose request it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller(pub(crate) usize);

/// The most that passes of one key: so much at once, and so much per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) at_once: f64,
    pub(crate) per_second: f64,
}

impl Bound {
    /// In this time, of a server that began anew so often.
    pub(crate) fn most(self, lives: u64, time: Duration) -> f64 {
        self.at_once * lives as f64 + self.per_second * time.as_secs_f64()
    }
}

/// What Redis admits of one key of a policy, by the limit that binds. In a time `t`, a log of `q` units
/// per period `p` admits at most `q · (t / p + 1)`.
pub(crate) fn shared_bound(policy: usize) -> Bound {
    let (at_once, per_second) = match policy {
        OPEN => (1e6, 1e6),
        // Of the log; the bucket's is wider.
        CLOSED => (10.0, 5.0),
        LOCAL => (4.0, 4.0),
        LEASED => (200.0, 500.0),
        HANDLES => (60.0, 90.0),
        // Of all keys.
        _ => (2.0 * MANY as f64, 2.0 * MANY as f64 / 60.0),
    };
    Bound { at_once, per_second }
}

/// What this process admits by itself.
pub(crate) fn local_bound(policy: usize) -> Option<Bound> {
    let Bound { at_once, per_second } = shared_bound(policy);
    match policy {
        LOCAL => Some(Bound { at_once: at_once * SHARE, per_second: per_second * SHARE }),
        // At least one unit at once, of each key.
        WIDE => Some(Bound { at_once: MANY as f64, per_second: per_second * SHARE }),
        _ => None,
    }
}

fn caller() -> impl key::KeyExtractor {
    key::from_fn(|head| head.extension::<Caller>().map(|it| Key::new("caller", it.0.to_string())))
}

fn policy(at: usize) -> PolicyBuilder {
    let policy = Policy::new(NAMES[at]);
    match at {
        OPEN => policy
            .limit(caller(), Limit::new("bucket", Quota::per_second(1_000_000)))
            .limit(
                caller(),
                Limit::new("hour", Quota::per_hour(1_000_000_000))
                    .algorithm(Algorithm::FixedWindow),
            )
            .on_failure(OnFailure::Allow),
        CLOSED => policy
            .limit(
                caller(),
                Limit::new("log", Quota::new(10, Duration::from_secs(2)).expect("a quota"))
                    .algorithm(Algorithm::SlidingLog),
            )
            .limit(
                caller(),
                Limit::new("bucket", Quota::per_second(8).burst(4))
                    .lockout(Lockout::new(Duration::from_secs(1)).after(5)),
            )
            .on_failure(OnFailure::Deny),
        LOCAL => policy
            .limit(caller(), Limit::new("bucket", Quota::per_second(4)))
            .on_failure(OnFailure::Local { share: SHARE }),
        LEASED => policy
            .limit(caller(), Limit::new("bucket", Quota::per_second(500).burst(200)).lease(100))
            .on_failure(OnFailure::Deny),
        HANDLES => policy
            .limit(
                caller(),
                Limit::new("bucket", Quota::per_second(90).burst(60)).cost(3).lease(30),
            )
            .limit(
                caller(),
                Limit::new("counter", Quota::per_minute(1_000_000))
                    .algorithm(Algorithm::SlidingCounter)
                    .cost(3),
            )
            .limit(caller(), Limit::new("trial", Quota::per_second(5)).shadow())
            .on_failure(OnFailure::Deny),
        _ => policy.limit(caller(), Limit::new("bucket", Quota::per_minute(2))).on_failure(
            OnFailure::by(|kind| match kind {
                StoreErrorKind::Timeout => OnFailure::Deny,
                _ => OnFailure::Local { share: SHARE },
            }),
        ),
    }
}

/// A limited service for each policy.
pub(crate) fn services(limiter: &Limiter, books: &Arc<Books>) -> Arc<[RateLimit<Handler>]> {
    let service = |at: usize| {
        let policy = policy(at).build().expect("a policy");
        let handler = Handler { policy: at, books: Arc::clone(books) };
        RateLimitLayer::with_policy(policy, limiter).layer(handler)
    };
    (0..NAMES.len()).map(service).collect()
}

/// The service behind a limiter.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    policy: usize,
    books: Arc<Books>,
}

impl Service<Request<()>> for Handler {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let Self { policy, books } = self.clone();
        let Caller(key) = *request.extensions().get().expect("a caller");
        let decision = request.extensions().get::<Decision>().expect("a decision").clone();
        let units = decision.verdicts().first().map_or(0, |verdict| verdict.cost());
        books.entered(policy, key, decision.source(), units);
        Box::pin(async move {
            if policy == HANDLES {
                handle(&books, key, &decision).await;
            }
            Ok(Response::new(()))
        })
    }
}

/// Gives back, or takes more. What is given back is booked before: it counts also if the caller goes away.
async fn handle(books: &Books, key: usize, decision: &Decision) {
    let done = match fastrand::u8(..4) {
        0 => {
            books.gave_back(HANDLES, key, 3);
            decision.refund().await
        }
        1 => {
            books.gave_back(HANDLES, key, 2);
            decision.settle("bucket", 1).await.map(drop)
        }
        2 => decision.charge("bucket", 2).await.map(|more| {
            if more.outcome() == Outcome::Allowed {
                books.entered_again(HANDLES, key, 2);
            }
        }),
        _ => Ok(()),
    };
    if let Err(error) = done {
        books.handle_failed(error.kind());
    }
}

/// Whether a store that all share has admitted it.
pub(crate) fn is_shared(source: Source) -> bool {
    matches!(source, Source::Redis | Source::Lease)
}
