//! The tower layer, and the answers that it gives.

mod body;
mod future;
mod headers;
mod layer;
pub mod respond;
mod service;

pub use self::{
    body::ResponseBody,
    future::ResponseFuture,
    headers::{HeaderFormat, ResetFormat},
    layer::RateLimitLayer,
    service::RateLimit,
};
