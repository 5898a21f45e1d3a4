use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use super::{Answer, StoreError};

/// A store's answer, there already or to come.
///
/// An answer that is there costs no allocation, so that a store in memory is called directly.
pub struct Reply<T = Answer>(State<T>);

enum State<T> {
    Now(Option<Result<T, StoreError>>),
    Later(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>),
}

impl<T> Reply<T> {
    /// An answer that is there.
    #[must_use]
    pub const fn now(answer: Result<T, StoreError>) -> Self {
        Self(State::Now(Some(answer)))
    }

    /// An answer that will come.
    pub fn later(answer: impl Future<Output = Result<T, StoreError>> + Send + 'static) -> Self {
        Self(State::Later(Box::pin(answer)))
    }

    /// The answer, if it is there without waiting; otherwise the reply again.
    ///
    /// # Errors
    ///
    /// The reply itself, if the answer is still to come.
    pub fn try_now(self) -> Result<Result<T, StoreError>, Self> {
        match self.0 {
            State::Now(Some(answer)) => Ok(answer),
            state => Err(Self(state)),
        }
    }
}

impl<T: Unpin> Future for Reply<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Now(answer) => match answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Pending,
            },
            State::Later(answer) => answer.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Now(_) => "Reply::now",
            State::Later(_) => "Reply::later",
        })
    }
}
