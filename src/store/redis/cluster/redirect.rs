use std::error::Error as _;

use deadpool_redis::redis::{ErrorKind, RedisError, ServerErrorKind};

use super::address::Address;
use crate::store::StoreError;

/// What a node answers instead of an answer. It proves that nothing ran, so the request may be sent again.
pub(super) enum Redirect {
    /// The slot is somewhere else.
    Moved(Option<Address>),
    /// The slot is on its way to another node, and these keys are not here any more.
    Ask(Option<Address>),
    /// The slot is on its way, and some of the keys are here, and some are not.
    TryAgain,
    /// Nobody serves the slot, or the cluster serves nobody.
    Down,
}

impl Redirect {
    /// What an error of the node at `asked` comes to, if it is a redirection.
    pub(super) fn of(error: &StoreError, asked: &Address) -> Option<Self> {
        let cause = error.source()?.downcast_ref::<RedisError>()?;
        let ErrorKind::Server(kind) = cause.kind() else { return None };
        let node = || Address::parse(cause.redirect_node()?.0, asked);
        match kind {
            ServerErrorKind::Moved => Some(Self::Moved(node())),
            ServerErrorKind::Ask => Some(Self::Ask(node())),
            ServerErrorKind::TryAgain => Some(Self::TryAgain),
            ServerErrorKind::ClusterDown => Some(Self::Down),
            _ => None,
        }
    }
}
