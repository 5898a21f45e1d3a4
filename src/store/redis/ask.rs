//! One call to the server, from the connection that it takes to what its answer means for that.

use deadpool_redis::redis::{self, RedisError, Value};

use super::{call::Call, error, node::Node, pulse::WasLate, slot::Link};
use crate::store::{StoreError, StoreErrorKind};

impl Node {
    /// What the server answers to a call for so many requests, before the deadline.
    pub(super) async fn call(&self, call: &Call, requests: usize) -> Result<Value, StoreError> {
        let mut used = None;
        match self.pulse.within(self.deadline, self.ask(call, &mut used)).await {
            Ok(answer) => answer,
            Err(WasLate(late)) => {
                let mut error = self.late();
                if let Some(link) = used {
                    error = link.named(error);
                    self.slots.timed_out(&link, &error, requests, late);
                }
                Err(self.named(error))
            }
        }
    }

    pub(super) fn timeout(&self) -> StoreError {
        self.named(self.late())
    }

    /// The same error, about this server, unless it is about another one.
    pub(super) fn named(&self, error: StoreError) -> StoreError {
        error.about(self.slots.place().as_ref())
    }

    fn late(&self) -> StoreError {
        StoreError::new(
            StoreErrorKind::Timeout,
            format!("no answer from Redis within {:?}", self.deadline),
        )
    }

    /// Asks once, and a second time only after an answer that proves that nothing ran.
    ///
    /// What is rare is boxed: each call allocates the whole future, and allocators are slower above
    /// a kilobyte.
    pub(super) async fn ask(
        &self,
        call: &Call,
        used: &mut Option<Link>,
    ) -> Result<Value, StoreError> {
        let link = self.link(used).await?;
        let mut value = link.send(&call.command).await;
        if value.as_ref().is_err_and(error::is_no_script)
            && let Some(eval) = call.eval()
        {
            value = Box::pin(link.send(&eval)).await;
        }
        match value {
            Ok(value) => {
                self.slots.answered(link);
                Ok(value)
            }
            Err(cause) => Err(self.failed(link, cause)),
        }
    }

    /// A connection; without a wait, if there is one that was used just now.
    pub(super) async fn link<'a>(
        &self,
        used: &'a mut Option<Link>,
    ) -> Result<&'a mut Link, StoreError> {
        match self.slots.ready() {
            Some(link) if !link.idle => Ok(used.insert(link)),
            _ => Box::pin(self.find(used)).await,
        }
    }

    /// A connection that was not lost while nobody used it: a request that was sent over a lost one
    /// could not be sent again.
    pub(super) async fn find<'a>(
        &self,
        used: &'a mut Option<Link>,
    ) -> Result<&'a mut Link, StoreError> {
        loop {
            let link = match self.slots.ready() {
                Some(link) => link,
                None => self.slots.wait().await?,
            };
            let idle = link.idle;
            let mut link = used.insert(link).clone();
            if idle && let Err(cause) = link.send(&redis::cmd("PING")).await {
                let dropped = cause.is_unrecoverable_error();
                let error = link.named(error::classify(cause));
                if dropped {
                    self.slots.broken(&link, &error, true);
                    continue;
                }
            }
            return Ok(used.insert(link));
        }
    }

    pub(super) fn failed(&self, link: &Link, cause: RedisError) -> StoreError {
        let fatal = error::breaks_connection(&cause);
        let dropped = cause.is_unrecoverable_error();
        let error = link.named(error::classify(cause));
        if fatal {
            self.slots.broken(link, &error, dropped);
        } else if error.kind() == StoreErrorKind::Timeout {
            self.slots.timed_out(link, &error, 1, false);
        } else {
            self.slots.answered(link);
        }
        error
    }
}
