use std::{
    fmt, iter,
    num::NonZeroU64,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Answer, StoreError};

/// A store's answer, there already or to come.
///
/// An answer that is there costs no allocation, so that a store in memory is called directly.
pub struct Reply<T = Answer> {
    state: State<T>,
    watched: Option<Watched>,
}

enum State<T> {
    Now(Option<Result<T, StoreError>>),
    Later(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>),
}

/// Hears what became of replies.
pub(crate) trait Watch: Send + Sync {
    /// The answer has come, or nobody waits for it any more.
    fn heard(&self, tickets: &Tickets, answer: Option<Result<(), &StoreError>>);
}

/// A point in time, and how late this process had been by then in what calls wait for, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) time: u64,
    pub(crate) lateness: u64,
}

/// What a call was given when it was handed to a store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticket {
    /// The part of the store that it is handed to.
    pub(crate) shard: u32,
    /// When that was.
    pub(crate) asked: Moment,
    /// Answers that had come by then.
    pub(crate) answers: u64,
    /// Its number, if it is there to find out whether the store answers again.
    pub(crate) probe: Option<NonZeroU64>,
}

/// One for each part of the store that a call goes to: of most calls, one.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    first: Ticket,
    more: Option<Box<Tickets>>,
}

impl Tickets {
    pub(crate) const fn new(first: Ticket) -> Self {
        Self { first, more: None }
    }

    pub(crate) fn push(&mut self, ticket: Ticket) {
        let more = self.more.take();
        self.more = Some(Box::new(Self { first: ticket, more }));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Ticket> {
        iter::successors(Some(self), |tickets| tickets.more.as_deref()).map(|tickets| tickets.first)
    }
}

struct Watched {
    watch: Arc<dyn Watch>,
    tickets: Tickets,
    told: bool,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.told {
            self.watch.heard(&self.tickets, None);
        }
    }
}

impl<T> Reply<T> {
    /// An answer that is there.
    #[must_use]
    pub const fn now(answer: Result<T, StoreError>) -> Self {
        Self { state: State::Now(Some(answer)), watched: None }
    }

    /// An answer that will come.
    pub fn later(answer: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Self {
        Self { state: State::Later(Box::pin(answer)), watched: None }
    }

    /// The answer, if it is there without waiting; otherwise the reply again.
    ///
    /// # Errors
    ///
    /// The reply itself, if the answer is still to come.
    pub fn try_now(self) -> Result<Result<T, StoreError>, Self> {
        match self.state {
            State::Now(Some(answer)) => Ok(answer),
            state => Err(Self { state, ..self }),
        }
    }

    /// The same reply, of which `watch` hears once it has come. One that is there already is not watched.
    pub(crate) fn watched(self, watch: impl FnOnce() -> Arc<dyn Watch>, tickets: Tickets) -> Self {
        match self.state {
            state @ State::Now(_) => Self { state, watched: None },
            state @ State::Later(_) => {
                Self { state, watched: Some(Watched { watch: watch(), tickets, told: false }) }
            }
        }
    }
}

impl<T: Unpin> Future for Reply<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match &mut self.state {
            State::Now(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            State::Later(answer) => answer.as_mut().poll(cx),
        };
        if let Poll::Ready(answer) = &answer
            && let Some(mut watched) = self.watched.take()
        {
            watched.told = true;
            watched.watch.heard(&watched.tickets, Some(answer.as_ref().map(drop)));
        }
        answer
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Now(_) => "Reply::now",
            State::Later(_) => "Reply::later",
        })
    }
}
