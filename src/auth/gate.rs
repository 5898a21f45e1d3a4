use std::pin::Pin;

use http::Extensions;

use crate::{
    http::respond::Respond,
    key::{KeyError, RequestHead},
};

/// What a layer of this module does for each request. Nobody else can implement it.
pub trait Gate: Clone + Send + Sync + 'static {
    /// Who calls.
    type Identity;
    /// What has to be looked up elsewhere.
    type Found: Send;

    /// Looks at the credential of a request.
    fn check(&self, head: RequestHead<'_>) -> Check<Self>;

    /// Looks at it again, once there is what had to be looked up.
    ///
    /// # Errors
    ///
    /// If the request is to be turned away.
    fn resume(&self, head: RequestHead<'_>, found: Self::Found) -> Checked<Self>;

    /// Puts what is known of the caller into a request that may pass, and nothing else of that kind.
    fn admit(&self, identity: Option<Self::Identity>, extensions: &mut Extensions);

    /// Answers what is turned away.
    fn responder(&self) -> &dyn Respond;
}

/// Who calls, if the request may pass.
pub(super) type Checked<G> = Result<Option<<G as Gate>::Identity>, KeyError>;

/// The way to what has to be looked up.
pub(super) type Looking<G> = Pin<Box<dyn Future<Output = <G as Gate>::Found> + Send>>;

/// How far a check has come.
#[expect(missing_debug_implementations, reason = "it is nowhere to be seen")]
pub enum Check<G: Gate> {
    /// To its end.
    Done(Checked<G>),
    /// Something has to be looked up.
    Look(Looking<G>),
}
