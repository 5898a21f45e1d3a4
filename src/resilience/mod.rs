//! What happens while a store does not answer.

mod breaker;
mod guard;
mod health;
mod monitor;

pub use self::{
    breaker::{Breaker, BreakerState},
    health::{Failure, Health},
};
pub(crate) use self::{guard::Guard, monitor::Monitor};
