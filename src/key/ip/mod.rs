mod client;
mod forwarded;
mod host;
mod peer;
mod prefix;
mod source;
mod trust;

use self::prefix::Prefixes;
pub(crate) use self::trust::network;
pub use self::{client::ClientIp, peer::PeerIp, prefix::PrefixError, trust::TrustError};
