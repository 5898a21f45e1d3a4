//! The tower layer, and the answers that it gives.

mod answer;
mod body;
mod future;
mod headers;
mod layer;
pub mod respond;
mod service;

pub(crate) use self::answer::turn_away;
pub use self::{
    body::ResponseBody,
    future::ResponseFuture,
    headers::{HeaderFormat, ResetFormat},
    layer::RateLimitLayer,
    service::RateLimit,
};
